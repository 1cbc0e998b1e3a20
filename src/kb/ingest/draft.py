"""From a note or a file to what the store keeps of it. Notes that are added and notes that are updated go this way."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb.api.errors import Unreadable
from kb.api.models import NOTE
from kb.formats.extracted import Extracted
from kb.formats.registry import FORMATS
from kb.ingest.chunk import Chunker
from kb.store.rows import Content, NewChunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kb.embed.protocol import Embedder
    from kb.formats.extracted import Attachment
    from kb.parser.sandbox import Sandbox

DOC_TYPES = frozenset({NOTE, *FORMATS})
TITLE_CHARS = 80
"""How much of a note's first line stands for its title."""

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")

SLICE = 64
"""How many chunks are embedded at a time."""


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


def draft_note(text: str, title: str | None, embedder: Embedder, content_hash: str | None = None) -> Draft:
    """Return a note; one without a title is listed under its first line.

    Args:
        text: what it says.
        title: its title.
        embedder: the model.
        content_hash: the SHA-256 of the text, where it is at hand.
    """
    content_hash = content_hash or sha256(text.encode()).hexdigest()
    draft = _draft(NOTE, Extracted.of_text(text), title or first_line(text), title, content_hash, embedder)
    return replace(draft, title_given=title is not None)


def draft_file(
    path: Path, filename: str, title: str | None, embedder: Embedder, sandbox: Sandbox, content_hash: str | None = None
) -> Draft:
    """Return a file's draft.

    Args:
        path: where the file is.
        filename: what its sender called it.
        title: the title that someone gave it.
        embedder: the model.
        sandbox: what reads it.
        content_hash: the SHA-256 of its bytes, where it is at hand.

    Raises:
        Unreadable: no text can be got out of it, for the reason given.
        Stopped: the sandbox was stopped.
    """
    doc_type, extracted = sandbox.extract(path, filename)
    name = title or extracted.title or Path(filename).stem
    header = f"{name} ({', '.join(extracted.aliases)})" if extracted.aliases else name
    draft = _draft(doc_type, extracted, name, header, content_hash or _digest(path), embedder)
    if not draft.chunks:
        raise Unreadable("The file holds no text.")
    return replace(draft, filename=filename, title_given=title is not None)


def embed_drafts(drafts: Sequence[Draft], embedder: Embedder) -> list[Content]:
    """Return the drafts with their vectors."""
    return contents_of(drafts, list(embed_slices(drafts, embedder)))


def embed_slices(drafts: Sequence[Draft], embedder: Embedder) -> Iterator[NDArray[np.float32]]:
    """Embed what the drafts hold, a slice at a time."""
    inputs = [text for draft in drafts for text in draft.inputs]
    for start in range(0, len(inputs), SLICE):
        yield embedder.embed_passages(inputs[start : start + SLICE])


def contents_of(drafts: Sequence[Draft], slices: Sequence[NDArray[np.float32]]) -> list[Content]:
    """Return the drafts with the vectors that `embed_slices` made of them."""
    vectors = np.concatenate(slices) if slices else np.empty((0, 0), np.float32)
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
    """Return the first line with words in it, without Markdown's marks and not longer than a title."""
    lines = (" ".join(UNPRINTABLE.sub(" ", line).strip("#*_-> \t").split()) for line in text.splitlines())
    line = next(filter(None, lines), "(untitled)")
    return line if len(line) <= TITLE_CHARS else line[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _draft(
    doc_type: str, extracted: Extracted, name: str, header: str | None, content_hash: str, embedder: Embedder
) -> Draft:
    passages = list(Chunker(embedder).split(extracted, header))
    chunks, inputs = [chunk for chunk, _ in passages], [text for _, text in passages]
    attachments, own_tags, date = extracted.attachments, extracted.tags, extracted.date
    return Draft(doc_type, name, content_hash, chunks, inputs, attachments, own_tags, date)
