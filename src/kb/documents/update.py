"""Changes of an existing document: the text of a note, tags, the source path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kb.api.errors import Changed, Invalid, NotANote, PathTaken, TooManyTags
from kb.api.fields import MAX_TAGS, NOTE
from kb.documents.edit import Edit
from kb.documents.lookup import existing_document
from kb.documents.preconditions import check_match
from kb.documents.save import without_given_tags
from kb.embed.protocol import Embedder
from kb.formats.text.base64_data import without_embedded
from kb.ingest.active_model import again_if_model_changed
from kb.ingest.draft import draft_note, embed_draft
from kb.markdown.front_matter import front_matter
from kb.markdown.tags import new_tags
from kb.store.protocol import Store, Transaction
from kb.store.rows import NOBODY, Author, Chunk, Content, Document, optional_fields

MAX_ATTEMPTS: Final = 20
"""How often an edit is repeated because somebody else changed the text."""

NO_EDIT: Final = Edit()


@dataclass(frozen=True, slots=True)
class NoteChange:
    """The changes to a note; its `content_hash` must be one of `if_match`.

    With `inline_tags`, the note also gets the #tags that only its new text has.
    """

    edit: Edit = NO_EDIT
    title: str | None = None
    tags_add: Sequence[str] = ()
    tags_remove: Sequence[str] = ()
    if_match: Collection[str] | None = None
    inline_tags: bool = False


@again_if_model_changed
def update_note(
    store: Store,
    embedder: Embedder,
    document_id: int,
    change: NoteChange,
    check_text: Callable[[str], None] = lambda _: None,
    checkpoint: Callable[[], None] = lambda: None,
    author: Author = NOBODY,
) -> tuple[Document, list[Chunk]]:
    """Change a note in place (requirements N-1 to N-6); return the changed note and its chunks.

    Embedding, the slow part, runs before the transaction, which then checks that the note is unchanged. If somebody
    else changed the text, the edit is applied to the new text. `check_text` may refuse the new text. `checkpoint` is
    called regularly and may stop the work by raising an error.

    Raises:
        NotFound: the document does not exist.
        NotANote: the document is not a note.
        Changed: the `content_hash` is not in `if_match`.
        Invalid: the edit does not fit the text.
        TooManyTags: the note would have more than `MAX_TAGS`.
    """
    for _ in range(MAX_ATTEMPTS):
        with store.read() as tx:
            note = _matching(tx, document_id, change.if_match)
            before = _text(tx, document_id)
        content = _drafted(note, before, change, check_text, embedder, checkpoint)
        after = "".join(chunk.text for chunk in content.chunks) if content and change.inline_tags else before
        written = new_tags(before, after)
        with store.write() as tx:
            present = _matching(tx, document_id, change.if_match)
            if change.edit.rests_on_text and present.content_hash != note.content_hash:
                continue
            if content is not None and given_title(present) != given_title(note):
                continue
            add, remove = _tag_changes(present, content, change)
            add += written
            if content is None and set(present.tags).difference(remove).union(add) == set(present.tags):
                return present, tx.documents.chunks(document_id)
            tx.history.keep(document_id, author)
            if content is not None:
                merged = replace(content, replaces=present.replaces, **optional_fields(present))
                tx.documents.replace(document_id, without_given_tags(merged, present, [*change.tags_add, *written]))
            tx.documents.change_tags(document_id, add=add, remove=remove)
            changed = existing_document(tx, document_id)
            if (add or remove) and len(changed.tags) > MAX_TAGS:
                raise TooManyTags(f"tags: a document has at most {MAX_TAGS}.")
            return changed, tx.documents.chunks(document_id)
    raise Changed(f"Others keep changing note {document_id}. Try again.")


def _drafted(
    note: Document,
    before: str,
    change: NoteChange,
    check_text: Callable[[str], None],
    embedder: Embedder,
    checkpoint: Callable[[], None],
) -> Content | None:
    """Return the new content of the note; None if neither its text nor its title changes."""
    if change.edit == NO_EDIT and change.title is None:
        return None
    after = change.edit.apply(before)
    if not after.strip():
        raise Invalid("text: the note must contain more than white space. To remove it, delete it.")
    check_text(after)
    if without_embedded(after) != after and without_embedded(before) == before:
        raise Invalid("text: a note cannot contain a picture as base64. Add the picture, or the whole text, as a file.")
    title = change.title or (None if _brings_title(change.edit, before) else given_title(note))
    return embed_draft(draft_note(after, title, embedder, checkpoint=checkpoint), embedder, checkpoint)


def _brings_title(edit: Edit, before: str) -> bool:
    """Return whether a new text has a title in its front matter that the old text did not have."""
    return edit.text is not None and front_matter(edit.text).title not in (None, front_matter(before).title)


def given_title(note: Document) -> str | None:
    """Return the title that somebody gave a note; None if it comes from the text."""
    return note.title if note.title_given else None


def _tag_changes(note: Document, content: Content | None, change: NoteChange) -> tuple[list[str], list[str]]:
    """Return the tags to add and to remove: the requested tags, and tags that only one of the texts sets."""
    before = set(note.own_tags)
    after = before if content is None else set(content.own_tags)
    asked_for = (after - before).difference(change.tags_remove)
    return [*change.tags_add, *asked_for], [*change.tags_remove, *(before - after)]


def _text(tx: Transaction, document_id: int) -> str:
    return "".join(chunk.text for chunk in tx.documents.chunks(document_id))


def _matching(tx: Transaction, document_id: int, if_match: Collection[str] | None) -> Document:
    document = existing_document(tx, document_id)
    if document.doc_type != NOTE:
        raise NotANote(
            f"Document {document_id} is of type {document.doc_type}, and only notes can be updated. To replace a file,"
            " add it again under its path (kb add PATH)."
        )
    check_match(document, if_match, shown=lambda: _text(tx, document_id))
    return document


def change_tags(
    store: Store, document_id: int, *, add: Sequence[str], remove: Sequence[str], author: Author = NOBODY
) -> Document:
    """Add tags to a document and remove others, in one step; return the document.

    Raises:
        NotFound: the document does not exist.
        TooManyTags: the document would have more than `MAX_TAGS`.
    """
    with store.write() as tx:
        before = set(existing_document(tx, document_id).tags)
        if before.difference(remove).union(add) != before:
            tx.history.keep(document_id, author)
            tx.documents.change_tags(document_id, add=add, remove=remove)
        document = existing_document(tx, document_id)
        if len(document.tags) > MAX_TAGS:
            raise TooManyTags(f"tags: a document has at most {MAX_TAGS}.")
    return document


def move(store: Store, document_id: int, source_path: str, author: Author = NOBODY) -> Document:
    """Change the source path of a document; return the document, which keeps its id and gets a new version.

    Raises:
        NotFound: the document does not exist.
        PathTaken: another document has this path.
    """
    with store.write() as tx:
        document = existing_document(tx, document_id)
        if document.source_path == source_path:
            return document
        occupant = tx.documents.at_path(source_path)
        if occupant is not None:
            raise PathTaken(f"Document {occupant.id} already has the source_path {source_path}.")
        tx.history.keep(document_id, author)
        tx.documents.move(document_id, source_path)
        return existing_document(tx, document_id)
