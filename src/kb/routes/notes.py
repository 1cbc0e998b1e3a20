"""PATCH /notes/{id}: change a note in place."""

from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Header, Request

from kb.api.document_models import ChangedNote
from kb.api.errors import Invalid
from kb.api.limit_errors import check_note, check_tags
from kb.api.note_models import NoteUpdate
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.write_updated_note import update_note
from kb.routes.dependencies import WRITE, AuthorDep, Id, ServicesDep, hashes_in
from kb.routes.documents import to_models, with_chunks
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.store.rows import OPTIONAL_FIELDS

router = APIRouter(route_class=ThreadRoute, tags=["notes"])


@router.patch(
    "/notes/{document_id}",
    summary="Update a note",
    dependencies=[WRITE],
    responses=problems(400, 404, 409, 412, 413, 507),
)
def patch_note(
    document_id: Id,
    update: NoteUpdate,
    services: ServicesDep,
    request: Request,
    author: AuthorDep,
    if_match: Annotated[
        str | None, Header(description="The `content_hash` that the note must still have, in quotes (RFC 9110).")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            description="A key of your choice. A repeated call with this key returns the note and changes nothing.",
        ),
    ] = None,
) -> ChangedNote:
    """Change a note. As soon as this call returns, searches find the new words and no longer the old ones.

    kb embeds only the changed passages. If they are many or the model is busy, their vectors follow later (`embedded`).

    A call with `Idempotency-Key` can be repeated. So can one with `If-Match`: if the last change was the same one, the
    answer is the unchanged note.
    """
    most = services.settings.max_note_chars
    check_change(update, most)
    # Without defaults, so that the hash of a call stays the same when kb gets more fields.
    asked = f"{document_id} {if_match} {update.model_dump_json(exclude_defaults=True)}"
    change = replace(
        asked_change(update),
        if_match=None if if_match is None else hashes_in(request),
        idempotency_key=idempotency_key,
        request_hash=sha256(asked.encode()).hexdigest(),
    )
    note, chunks, last_author = update_note(
        services.store,
        services.note_vectors,
        document_id,
        change,
        partial(check_note, most=most),
        services.stop.check,
        author,
    )
    with services.store.read() as tx:
        [model] = to_models(tx, [note])
        answer = with_chunks(model, chunks, len(chunks), last_author)
        return ChangedNote(**dict(answer), embedded=tx.documents.has_vectors(document_id))


def asked_change(update: NoteUpdate) -> NoteChange:
    return NoteChange(
        edit=Edit(update.text, update.old, update.new, update.append, update.prepend, update.date),
        title=update.title,
        tags_add=update.tags_add,
        tags_remove=update.tags_remove,
        inline_tags=update.inline_tags,
        once=update.once,
        optional={name: value for name, value in update if name in OPTIONAL_FIELDS and value is not None},
    )


def check_change(update: NoteUpdate, most: int) -> None:
    """Refuse a change without effect, with contradictory fields, or beyond the limits; texts have `most` characters.

    Raises:
        Invalid: the message names the fields that belong together.
    """
    if all(value in (None, []) for name, value in update if name not in ("once", "inline_tags")):
        raise Invalid(
            "text: nothing to change. Send text, old and new, append, prepend, title, tags_add or tags_remove."
        )
    if (update.old is None) != (update.new is None):
        raise Invalid("old, new: send both or neither.")
    if update.text is not None and any(value is not None for value in (update.old, update.append, update.prepend)):
        raise Invalid("text: it is the whole new text. Leave out old, append and prepend.")
    check_tags(tags_add=update.tags_add, tags_remove=update.tags_remove)
    for text in (update.text, update.old, update.new, update.append, update.prepend):
        check_note(text or "", most)
