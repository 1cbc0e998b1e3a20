"""Change the tags of a document; rename or delete a tag and the tags below it, also in the front matter of notes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kb.api.errors import Invalid, NotFound
from kb.api.fields import NOTE
from kb.api.limit_errors import check_document_tags
from kb.api.limits import MAX_TAG_CHARS
from kb.api.tag_tree import is_in_branch, meant_tag, renamed, stem
from kb.documents.lookup import existing_document
from kb.documents.vectors_by_job import await_vectors
from kb.documents.write_document import without_given_tags
from kb.documents.write_updated_note import given_title
from kb.embed.protocol import Embedder
from kb.ingest.active_model import again_if_model_changed
from kb.ingest.draft import draft_note
from kb.markdown.front_matter import with_renamed_tags
from kb.store.protocol import Store, Transaction
from kb.store.row_mapping import cursor_after
from kb.store.rows import NOBODY, Author, Chunk, Document, Filter, optional_fields

PAGE: Final = 1000


class RenamedTag(NamedTuple):
    """The number of documents whose tags changed, and of documents whose own text still sets the old tag."""

    documents: int
    from_text: int


def change_tags(
    store: Store, document_id: int, *, add: Sequence[str], remove: Sequence[str], author: Author = NOBODY
) -> Document:
    """Add tags to a document and remove others, in one step; return the document.

    Raises:
        NotFound: the document does not exist.
        TooManyTags: the document would have too many.
    """
    with store.write() as tx:
        before = set(existing_document(tx, document_id).tags)
        remove = [meant_tag(tag, before) for tag in remove]
        if before.difference(remove).union(add) != before:
            tx.history.keep(document_id, author)
            tx.documents.change_tags(document_id, add=add, remove=remove)
        document = existing_document(tx, document_id)
        check_document_tags(document.tags)
    return document


@again_if_model_changed
def rename_tag(
    store: Store,
    embedder: Embedder,
    old: str,
    new: str,
    checkpoint: Callable[[], None] = lambda: None,
    author: Author = NOBODY,
) -> RenamedTag:
    """Rename a tag and all tags below it, in all documents that the caller sees, in one transaction.

    kb also renames them in the front matter of notes. It does not change files, because others own them. The texts are
    cut before the transaction; a note whose text changes in the meantime keeps its text.

    Raises:
        NotFound: no document has the tag or a tag below it.
        Invalid: the names are the same, or a new name would be too long.
    """
    with store.read() as tx:
        old, new = meant_tag(stem(old), [tag for tag, _ in tx.documents.tags()]), stem(new)
        if old == new:
            raise Invalid("new: the tag already has this name.")
        texts = _changed_texts(tx, old, _names(tx, old, new))
    prepared = {
        note.id: (note, draft_note(text, given_title(note), embedder, checkpoint=checkpoint, before=chunks).content())
        for note, chunks, text in texts
    }
    from_text = 0
    with store.write() as tx:
        names = _names(tx, old, new)
        documents = _all(tx, Filter(tags=(old,)))
        for document in documents:
            before = names.keys() & set(document.tags)
            tx.history.keep(document.id, author)
            note, content = prepared.get(document.id, (document, None))
            if content and (note.content_hash, note.title) == (document.content_hash, document.title):
                content = replace(content, replaces=document.replaces, **optional_fields(document))
                tx.documents.replace(document.id, without_given_tags(content, document))
                await_vectors(tx, document.id, author)
            else:
                from_text += not names.keys().isdisjoint(document.own_tags)
            tx.documents.change_tags(document.id, add=[names[tag] for tag in before], remove=before)
    return RenamedTag(len(documents), from_text)


def delete_tag(store: Store, tag: str, author: Author = NOBODY) -> RenamedTag:
    """Remove a tag and all tags below it from all documents that the caller sees, in one transaction.

    Raises:
        NotFound: no document has the tag or a tag below it.
    """
    tag = stem(tag)
    with store.write() as tx:
        known = [other for other, _ in tx.documents.tags()]
        tag = meant_tag(tag, known)
        names = {other for other in known if is_in_branch(other, tag)}
        if not names:
            raise NotFound(f"No document has the tag {tag} or a tag below it.")
        documents = _all(tx, Filter(tags=(tag,)))
        for document in documents:
            tx.history.keep(document.id, author)
            tx.documents.change_tags(document.id, add=(), remove=names.intersection(document.tags))
    return RenamedTag(len(documents), sum(not names.isdisjoint(document.own_tags) for document in documents))


def _names(tx: Transaction, old: str, new: str) -> dict[str, str]:
    """Return the new name of each tag in a branch. Raises the same errors as `rename_tag`."""
    names = {tag: renamed(tag, old, new) for tag, _ in tx.documents.tags() if is_in_branch(tag, old)}
    if not names:
        raise NotFound(f"No document has the tag {old} or a tag below it.")
    if longest := max(names.values(), key=len)[MAX_TAG_CHARS:]:
        raise Invalid(f"new: a tag below it would be {len(longest)} characters too long.")
    return names


def _changed_texts(tx: Transaction, old: str, names: Mapping[str, str]) -> list[tuple[Document, list[Chunk], str]]:
    """Return the notes with one of these tags in their front matter, their chunks, and their new texts."""
    notes = (
        note for note in _all(tx, Filter(tags=(old,), doc_type=NOTE)) if not names.keys().isdisjoint(note.own_tags)
    )
    texts = ((note, chunks := tx.documents.chunks(note.id), "".join(chunk.text for chunk in chunks)) for note in notes)
    return [(note, chunks, after) for note, chunks, text in texts if (after := with_renamed_tags(text, names)) != text]


def _all(tx: Transaction, where: Filter) -> list[Document]:
    documents: list[Document] = []
    cursor: str | None = None
    while page := tx.documents.page(where, sort="id", limit=PAGE, cursor=cursor):
        documents += page
        cursor = cursor_after(page[-1])
    return documents
