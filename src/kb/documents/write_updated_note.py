"""Write the new text, title, optional fields or tags of a note."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from kb.api.errors import Changed, Invalid, NotANote
from kb.api.fields import NOTE
from kb.api.limit_errors import check_document_tags
from kb.api.tag_tree import meant_tag
from kb.documents.if_match import check_match
from kb.documents.lookup import author_of, existing_document
from kb.documents.note_edit import NO_EDIT, Edit, NoteChange
from kb.documents.repeated_change import is_repeated, keep_key
from kb.documents.vectors_by_job import await_vectors
from kb.documents.write_document import without_given_tags
from kb.embed.protocol import Embedder
from kb.formats.text.base64_data import without_embedded
from kb.ingest.active_model import again_if_model_changed
from kb.ingest.draft import NO_VECTORS, Draft, draft_note
from kb.ingest.vectors_at_once import NoteVectors
from kb.markdown.front_matter import front_matter
from kb.markdown.tags import changed_tags
from kb.store.protocol import Store, Transaction
from kb.store.rows import NOBODY, Author, Chunk, Content, Document, NewChunk, content_fields, optional_fields

MAX_ATTEMPTS: Final = 20
"""How often an edit is repeated because somebody else changed the text."""


class UpdatedNote(NamedTuple):
    """A note after a change, with its chunks and its last author, all of the same moment."""

    note: Document
    chunks: list[Chunk]
    author: Author


@again_if_model_changed
def update_note(
    store: Store,
    vectors: NoteVectors,
    document_id: int,
    change: NoteChange,
    check_text: Callable[[str], None] = lambda _: None,
    checkpoint: Callable[[], None] = lambda: None,
    author: Author = NOBODY,
) -> UpdatedNote:
    """Change a note in place (requirements N-1 to N-6).

    Only changed passages are embedded, before the transaction. If they are many, or the model is busy, a job adds their
    vectors later. The transaction checks that the note is unchanged. If somebody else changed the text, the edit is
    applied to the new text. A repeated change does nothing. `check_text` may refuse the new text.
    `checkpoint` is called regularly and may stop the work by raising an error.

    Raises:
        NotFound: the document does not exist.
        NotANote: the document is not a note.
        Changed: the `content_hash` is not in `if_match`.
        AlreadyMade, KeyReused: see `is_repeated`.
        Invalid: the edit does not fit the text.
        TooManyTags: the note would have too many.
    """
    arrived = time.monotonic()
    for _ in range(MAX_ATTEMPTS):
        with store.read() as tx:
            note, before = existing_note(tx, document_id), tx.documents.chunks(document_id)
            text = _text(before)
            if is_repeated(tx, note, text, change, author):
                return UpdatedNote(note, before, author_of(tx, document_id))
            check_match(note, change.if_match, shown=partial(str, text))
        draft = _drafted(note, text, before, change, check_text, vectors.embedder, checkpoint)
        after = _text(draft.chunks) if draft and change.inline_tags else text
        hash_tags = changed_tags(text, after)
        content = vectors.content(draft, arrived, before)[0] if draft else None
        with store.write(checkpoint, urgent=True) as tx:
            if changed := _write(tx, note, content, change, hash_tags, author):
                return UpdatedNote(changed, tx.documents.chunks(document_id), author_of(tx, document_id))
    raise Changed(f"Others keep changing note {document_id}. Try again.")


def _write(
    tx: Transaction,
    before: Document,
    content: Content | None,
    change: NoteChange,
    hash_tags: tuple[Sequence[str], Sequence[str]],
    author: Author,
) -> Document | None:
    """Write a change of a note, and return the note; None if the content does not fit the note of now.

    `hash_tags` are the #tags that only the new text has, and the #tags that only the old text has.
    """
    note = existing_note(tx, before.id)
    is_other = note.content_hash != before.content_hash
    if (is_other or change.idempotency_key) and is_repeated(tx, note, _stored_text(tx, note), change, author):
        return note
    check_match(note, change.if_match, shown=lambda: _stored_text(tx, note))
    if (content is None or change.edit.rests_on_text) and is_other:
        return None
    if content is not None and given_title(note) != given_title(before):
        return None
    keep_key(tx, note, change, author)
    written, left = hash_tags
    add, remove = _tag_changes(note, content, change)
    add += written
    remove += [tag for tag in left if content is None or tag not in {*content.own_tags, *add}]
    optional = {**optional_fields(note), **change.optional}
    is_described = optional == optional_fields(note)
    if content is None and is_described and set(note.tags).difference(remove).union(add) == set(note.tags):
        return note
    tx.history.keep(note.id, author)
    if content is not None:
        merged = replace(content, replaces=note.replaces, **optional)
        tx.documents.replace(note.id, without_given_tags(merged, note, [*change.tags_add, *written]))
        await_vectors(tx, note.id, author)
    elif not is_described:
        kept = content_fields(note) | {"chunks": (), "vectors": NO_VECTORS}
        tx.documents.update(note.id, Content(**kept | optional))
    tx.documents.change_tags(note.id, add=add, remove=remove)
    changed = existing_document(tx, note.id)
    if add or remove:
        check_document_tags(changed.tags)
    return changed


def _drafted(
    note: Document,
    before: str,
    chunks: Sequence[Chunk],
    change: NoteChange,
    check_text: Callable[[str], None],
    embedder: Embedder,
    checkpoint: Callable[[], None],
) -> Draft | None:
    """Return the new content of the note; None if neither its text nor its title changes."""
    if change.edit == NO_EDIT and change.title is None:
        return None
    after = change.edit.apply(before)
    if not after.strip():
        raise Invalid("text: the note must contain more than white space. To remove it, delete it.")
    check_text(after)
    if without_embedded(after) != after and without_embedded(before) == before:
        raise Invalid("text: a note cannot contain a picture as base64. Add the picture, or the whole text, as a file.")
    title = change.title or None
    if change.title is None and not _brings_title(change.edit, before):
        title = given_title(note)
    if after == before and title == given_title(note):
        return None
    return draft_note(after, title, embedder, checkpoint=checkpoint, before=chunks)


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
    unwanted = [meant_tag(tag, note.tags) for tag in change.tags_remove]
    return [*change.tags_add, *(after - before).difference(unwanted)], [*unwanted, *(before - after)]


def existing_note(tx: Transaction, document_id: int) -> Document:
    """Return a note.

    Raises:
        NotFound: the document does not exist.
        NotANote: the document is not a note.
    """
    document = existing_document(tx, document_id)
    if document.doc_type != NOTE:
        raise NotANote(
            f"Document {document_id} is of type {document.doc_type}, and only notes can be updated. To replace a file,"
            " add it again under its path (kb add PATH)."
        )
    return document


def _stored_text(tx: Transaction, note: Document) -> str:
    return _text(tx.documents.chunks(note.id))


def _text(chunks: Sequence[Chunk | NewChunk]) -> str:
    return "".join(chunk.text for chunk in chunks)
