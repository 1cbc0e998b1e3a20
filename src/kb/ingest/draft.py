"""From a note or a file to what the store keeps of it. Notes that are added and notes that are updated go this way."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb.api.errors import Unreadable
from kb.formats.registry import READERS, Extracted, Section
from kb.ingest.chunk import cut
from kb.store.rows import Content, NewChunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kb.embed.protocol import Embedder
    from kb.formats.registry import Attachment
    from kb.parser.sandbox import Sandbox

NOTE = "note"
DOC_TYPES = frozenset({NOTE, *READERS})
TITLE_CHARS = 80
"""How much of a note's first line stands for its title."""

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")

SLICE = 64
"""How many chunks are embedded between two signs of life."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that lacks only its vectors: `inputs` is what the model shall read, one text a chunk.

    `attachments` came inside its file; `own_tags` and `date` are what it says of itself.
    """

    doc_type: str
    title: str
    content_hash: str
    chunks: Sequence[NewChunk]
    inputs: Sequence[str]
    attachments: Sequence[Attachment] = ()
    own_tags: Sequence[str] = ()
    date: str | None = None
    filename: str | None = None
    title_given: bool = False


def draft_note(text: str, title: str | None, embedder: Embedder) -> Draft:
    """A note; one without a title is listed under its first line."""
    extracted = Extracted(NOTE, title, text, (Section(0, len(text)),))
    content_hash = sha256(text.encode()).hexdigest()
    draft = _draft(extracted, title or first_line(text), title, content_hash, embedder)
    return replace(draft, title_given=title is not None)


def draft_file(path: Path, filename: str, title: str | None, embedder: Embedder, sandbox: Sandbox) -> Draft:
    """A file.

    Raises:
        Unreadable: no text can be got out of it, for the reason given.
        Stopped: the sandbox was stopped.
    """
    extracted = sandbox.extract(path, filename)
    name = title or extracted.title or Path(filename).stem
    with path.open("rb") as file:
        content_hash = file_digest(file, "sha256").hexdigest()
    header = f"{name} ({', '.join(extracted.aliases)})" if extracted.aliases else name
    draft = _draft(extracted, name, header, content_hash, embedder)
    if not draft.chunks:
        raise Unreadable("The file holds no text.")
    return replace(draft, filename=filename, title_given=title is not None)


def with_vectors(
    drafts: Sequence[Draft], embedder: Embedder, alive: Callable[[float], None] = lambda _: None
) -> list[Content]:
    """The drafts with their vectors. `alive` is told the share that is done, from time to time."""
    inputs = [text for draft in drafts for text in draft.inputs]
    vectors = np.empty((len(inputs), embedder.dimensions), np.float32)
    for start in range(0, len(inputs), SLICE):
        if start:
            alive(start / len(inputs))
        vectors[start : start + SLICE] = embedder.embed(inputs[start : start + SLICE])
    ends = np.cumsum([len(draft.inputs) for draft in drafts])
    return [
        Content(
            draft.doc_type,
            draft.title,
            draft.content_hash,
            draft.chunks,
            own,
            tuple(draft.own_tags),
            draft.date,
            draft.filename,
            draft.title_given,
        )
        for draft, own in zip(drafts, np.split(vectors, ends[:-1]), strict=True)
    ]


def first_line(text: str) -> str:
    """The first line with words in it, without Markdown's marks and not longer than a title."""
    lines = (" ".join(UNPRINTABLE.sub(" ", line).strip("#*_-> \t").split()) for line in text.splitlines())
    line = next(filter(None, lines), "(untitled)")
    return line if len(line) <= TITLE_CHARS else line[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"


def _draft(extracted: Extracted, name: str, header: str | None, content_hash: str, embedder: Embedder) -> Draft:
    pieces = list(cut(extracted, header, embedder))
    chunks, inputs = [chunk for chunk, _ in pieces], [text for _, text in pieces]
    attachments, own_tags, date = extracted.attachments, extracted.tags, extracted.date
    return Draft(extracted.doc_type, name, content_hash, chunks, inputs, attachments, own_tags, date)
