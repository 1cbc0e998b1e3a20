"""The title that a document has from the name of its file."""

from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from kb.api.errors import FilesUnavailable, NotFound
from kb.api.limits import MAX_TITLE
from kb.documents.originals import Originals
from kb.documents.restore_document import stored_content
from kb.documents.vectors_by_job import await_vectors
from kb.index.words.document_names import HEADING_MARK
from kb.markdown.front_matter import front_matter
from kb.store.protocol import Transaction
from kb.store.rows import NOBODY, Author, Chunk, Document

MARKDOWN: Final = "markdown"


def title_in_file(originals: Originals, document: Document) -> str | None:
    """Return the title in the front matter of a Markdown file, which is not part of the text that kb keeps of it."""
    if document.doc_type == MARKDOWN:
        with suppress(NotFound, FilesUnavailable), closing(originals.open(document)) as file:
            return front_matter(next(file.blocks, b"").decode(errors="replace")).title
    return None


def follow_file(
    tx: Transaction, document: Document, source_path: str, author: Author = NOBODY, own: str | None = None
) -> None:
    """Give a document whose file was renamed the file's new name, and with it its title, if that was the former name.

    A title of its own stays: one that somebody gave, or that is in the file. A job makes the new vectors.

    Args:
        own: the title in the file, as in `title_in_file`.
    """
    before, name = PurePosixPath(document.filename or ""), PurePosixPath(source_path)
    if not document.filename or name.name in ("", before.name):
        return
    chunks, title = tx.documents.chunks(document.id), name.stem[:MAX_TITLE]
    is_own = document.title_given or document.title in (own, *_headings(chunks))
    if is_own or document.title != before.stem[:MAX_TITLE]:
        tx.documents.rename(document.id, name.name)
        return
    titled = [replace(chunk, header=_retitled(chunk, document.title, title)) for chunk in chunks]
    tx.documents.replace(document.id, stored_content(replace(document, title=title, filename=name.name), titled))
    tx.documents.stamp(document.id, document.updated_at)
    await_vectors(tx, document.id, author)


def _headings(chunks: Iterable[Chunk]) -> set[str]:
    return {heading for chunk in chunks for heading in chunk.place.heading[:1]}


def _retitled(chunk: Chunk, before: str, title: str) -> str:
    """Return the header of a chunk under another title."""
    first = chunk.header.partition(HEADING_MARK)[0].removeprefix(before)
    return HEADING_MARK.join(dict.fromkeys([title + first, *chunk.place.heading]))
