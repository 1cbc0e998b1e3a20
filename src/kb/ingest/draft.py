"""Turn a note or a file into the content that the store keeps, both for new and for updated notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import file_digest, sha256
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import ModelChanged, Unreadable
from kb.api.fields import NOTE
from kb.api.limits import MAX_TITLE
from kb.api.omissions import phrase, together
from kb.embed.protocol import Embedder
from kb.formats.text.extracted import Attachment, Extracted
from kb.index.words.document_names import with_aliases
from kb.index.words.language import guessed
from kb.ingest.chunk import CHUNK_BYTES, INDEXED_BYTES, STORED_BYTES, Chunker
from kb.markdown.front_matter import fact_of, front_matter
from kb.markdown.signs import embed_name, plain_line
from kb.parser.sandbox import Sandbox
from kb.store.rows import Chunk, Content, NewChunk, VectorSpace, unchanged

NOT_READ = "Not read: "
"""The beginning of a document's last line if parts of its file were not read."""

TITLE_CHARS = 80
"""The maximum length of a title that kb makes of a note's first line."""

TITLE_LINES = 100
"""The number of lines in which the first line with words is searched for."""

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MARKS = re.compile(r"^(?:[*_\->]+(?: |$)|[> ]|#+(?![^\s#]))+|(?:(?:^| )[#*_\->]+)+$")
"""Markdown marks at both ends of a line; a # directly before a word is a tag and stays."""

MAX_DEPTH = 3
"""How deep files may be nested: a message in a message in a message."""

MAX_ATTACHMENTS = 100
"""The maximum number of files inside one file that become documents."""

MOST_SHORT_PASSAGES = 10_000
BYTES_PER_PASSAGE = 64
"""A file may have this number of passages, and one more for each of so many bytes: each takes the model's time."""

SHORT_TEXT = 64
"""The length in characters of a text that may repeat so often that the model must not read it each time."""

SLICE = 64
"""The number of chunks embedded at a time."""


@dataclass(frozen=True, slots=True)
class Draft(Content):
    """A document without vectors; `inputs` are the texts for the model, one per chunk.

    `attachments` were found inside its file. `known` are the indexes of the chunks whose vectors the store has. `space`
    is the space of the model whose window the chunks fit.
    """

    inputs: Sequence[str] = ()
    attachments: Sequence[Attachment] = ()
    known: Collection[int] = ()

    @property
    def new(self) -> list[int]:
        """The indexes of the chunks that need vectors."""
        return [index for index in range(len(self.chunks)) if index not in self.known]

    def knowing(self, before: Sequence[Chunk]) -> Draft:
        """Return the draft of a document that has the chunks `before`: chunks that stay keep their vectors."""
        return replace(self, known=unchanged(before, self.chunks).keys())

    def content(self, vectors: NDArray[np.float32] | None = None) -> Content:
        """Return the content, with the vectors of the `new` chunks or without."""
        fields = {name: getattr(self, name) for name in OF_CONTENT}
        if vectors is not None and (new := self.new):
            fields["vectors"] = np.zeros((len(self.chunks), vectors.shape[1]), np.float32) if self.known else vectors
            fields["vectors"][new] = vectors
        return Content(**fields)


OF_CONTENT = tuple(field.name for field in fields(Content))
NO_VECTORS = np.empty((0, 0), np.float32)


def draft_note(
    text: str,
    title: str | None,
    embedder: Embedder,
    content_hash: str | None = None,
    checkpoint: Callable[[], None] = lambda: None,
    before: Sequence[Chunk] = (),
) -> Draft:
    """Return the draft of a note; without any title, it is listed under its first line.

    Args:
        embedder: the model.
        content_hash: the SHA-256 of the text, if known.
        checkpoint: is called regularly and may stop the work by raising an error.
        before: the chunks before an edit. Those that stay have no input for the model.
    """
    content_hash = content_hash or sha256(text.encode()).hexdigest()
    embedder = embedder.current
    matter = front_matter(text)
    name = title or (matter.title or "")[:MAX_TITLE] or None
    passages = Chunker(embedder, checkpoint).split_edited(text, name, before)
    draft = _draft(NOTE, name or first_line(text[matter.length :]), content_hash, passages)
    space = VectorSpace.of(embedder.spec)
    return replace(
        draft,
        own_tags=matter.tags,
        date=matter.date,
        title_given=title is not None,
        space=space,
        omitted={"front_matter": 1} if matter.is_lost else {},
        body_hash=body_hash(text),
    )


def draft_file(
    path: Path,
    filename: str,
    title: str | None,
    embedder: Embedder,
    sandbox: Sandbox,
    content_hash: str | None = None,
    checkpoint: Callable[[], None] = lambda: None,
    *,
    depth: int = 0,
) -> Draft:
    """Return the draft of a file.

    Args:
        filename: the sender's name for it.
        title: the title that somebody gave it.
        embedder: the model.
        sandbox: reads the file.
        content_hash: the SHA-256 of its bytes, if known.
        checkpoint: is called regularly and may stop the work by raising an error.
        depth: how many files it is nested in; nested files may be many, so each has lower limits.

    Raises:
        Unreadable: no text can be extracted, or only beyond the limits; the message has the reason.
        Stopped: the sandbox was stopped.
    """
    limits, size, is_part = sandbox.limits, path.stat().st_size, depth > 0
    doc_type, extracted = sandbox.extract(path, filename, is_part=is_part)
    attachments = extracted.attachments[: most_attachments(depth)]
    left_out = len(extracted.attachments) - len(attachments)
    extracted = with_line(replace(extracted, omitted=together(extracted.omitted, {"files": left_out})))
    name = title or extracted.title or Path(filename).stem[:MAX_TITLE]
    embedder = embedder.current
    passages = Chunker(embedder, checkpoint).split(extracted, with_aliases(name, extracted.aliases))
    most = MOST_SHORT_PASSAGES + size // BYTES_PER_PASSAGE
    bounded = _bounded(passages, limits.index_bytes(size, is_part=is_part), limits.too_large_index, most)
    draft = _draft(doc_type, name, content_hash or _digest(path), bounded)
    if not draft.chunks:
        raise Unreadable("The file contains no text.")
    return replace(
        draft,
        attachments=attachments,
        own_tags=extracted.tags,
        date=extracted.date,
        filename=filename,
        title_given=title is not None,
        space=VectorSpace.of(embedder.spec),
        omitted=extracted.omitted,
        message_ids=extracted.message_ids,
    )


def body_hash(text: str) -> str:
    """Return the SHA-256 of a note's text without the title, date and tags in its front matter."""
    return sha256(fact_of(text).encode()).hexdigest()


def body_hash_of(doc_type: str, chunks: Iterable[NewChunk | Chunk]) -> str | None:
    """Return the `body_hash` of a stored note; None for a file."""
    return body_hash("".join(chunk.text for chunk in chunks)) if doc_type == NOTE else None


def most_attachments(depth: int) -> int:
    """Return the maximum number of files inside a file at this depth that become documents."""
    return MAX_ATTACHMENTS if depth < MAX_DEPTH else 0


def embed_draft(draft: Draft, embedder: Embedder, checkpoint: Callable[[], None] = lambda: None) -> Content:
    """Return a draft with its vectors; `checkpoint` is called before each slice."""
    [content] = embedded_contents([draft], list(embed_slices([draft], embedder, checkpoint)))
    return content


def embed_slices(
    drafts: Sequence[Draft], embedder: Embedder, checkpoint: Callable[[], None] = lambda: None
) -> Iterator[NDArray[np.float32]]:
    """Embed the new chunks of the drafts, a slice at a time.

    Raises:
        ModelChanged: a draft was made for another model.
    """
    embedder = embedder.current
    if any(draft.space not in (None, VectorSpace.of(embedder.spec)) for draft in drafts):
        raise ModelChanged
    inputs = [draft.inputs[index] for draft in drafts for index in draft.new]
    known: dict[str, NDArray[np.float32]] = {}
    for start in range(0, len(inputs), SLICE):
        checkpoint()
        texts = inputs[start : start + SLICE]
        if max(map(len, texts)) > SHORT_TEXT:
            yield embedder.embed_passages(texts)
            continue
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known |= zip(new, embedder.embed_passages(new) if new else NO_VECTORS, strict=True)
        yield np.stack([known[text] for text in texts])
        known = {text: known[text] for text in texts}  # empty entries mostly follow each other


def embedded_contents(drafts: Sequence[Draft], slices: Sequence[NDArray[np.float32]]) -> list[Content]:
    vectors = np.concatenate(slices) if slices else NO_VECTORS
    ends = np.cumsum([len(draft.new) for draft in drafts])
    return [draft.content(own) for draft, own in zip(drafts, np.split(vectors, ends[:-1]), strict=True)]


def first_line(text: str) -> str:
    """Return the first line with words, without Markdown marks and at most as long as a title.

    If there are only embedded files, it is the name of the first.
    """
    written = islice(filter(str.strip, text.splitlines()), TITLE_LINES)
    lines = [" ".join(UNPRINTABLE.sub(" ", line[: 10 * TITLE_CHARS]).split()) for line in written]
    shown = (MARKS.sub("", " ".join(plain_line(line).split())) for line in lines)
    line = next(filter(None, chain(shown, map(embed_name, lines))), "(untitled)")
    return line if len(line) <= TITLE_CHARS else line[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _draft(doc_type: str, title: str, content_hash: str, passages: Iterable[tuple[NewChunk, str]]) -> Draft:
    chunks, inputs = list[NewChunk](), list[str]()
    for chunk, text in passages:
        chunks.append(chunk)
        inputs.append(text)
    language = guessed([chunk.text for chunk in chunks])
    return Draft(doc_type, title, content_hash, chunks, NO_VECTORS, inputs=inputs, language=language)


def _bounded(
    passages: Iterable[tuple[NewChunk, str]], room: float, too_large: str, most: int
) -> Iterator[tuple[NewChunk, str]]:
    """Yield the passages while their number, and their size in the database, estimated slightly high, fit."""
    header = ""
    for number, (chunk, text) in enumerate(passages, 1):
        if number > most:
            raise Unreadable(f"The file has more than {most:,} passages of a few letters each. Split it.")
        room -= CHUNK_BYTES + STORED_BYTES * len(chunk.text.encode()) + INDEXED_BYTES * len(chunk.header)
        if chunk.header != header:
            header = chunk.header
            room -= STORED_BYTES * len(header)
        if room < 0:
            raise Unreadable(too_large)
        yield chunk, text


def with_line(extracted: Extracted) -> Extracted:
    """Return a document with a last line that lists the parts not read, if any; it belongs to the last section."""
    if not extracted.omitted or not extracted.sections:
        return extracted
    *others, last = extracted.sections
    text = f"{extracted.text.rstrip()}\n\n{NOT_READ}{phrase(extracted.omitted)}\n"
    if last.start > len(text):
        return extracted
    return replace(extracted, text=text, sections=(*others, replace(last, end=len(text))))
