"""PATCH /notes/{id}: change a note in place."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Request

from kb.api.document_models import DocumentWithChunks
from kb.api.errors import Invalid
from kb.api.note_models import NoteUpdate
from kb.documents.edit import Edit
from kb.documents.lookup import author_of
from kb.documents.update import NoteChange, update_note
from kb.routes.dependencies import WRITE, AuthorDep, Id, ServicesDep
from kb.routes.documents import to_models, with_chunks
from kb.routes.preconditions import hashes_in
from kb.routes.problems import problems
from kb.routes.request_limits import check_note, check_tags
from kb.routes.thread_route import ThreadRoute

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
) -> DocumentWithChunks:
    """Change a note. As soon as this call returns, searches find the new text and no longer the old one."""
    settings = services.settings
    check_change(update)
    check_tags(tags_add=update.tags_add, tags_remove=update.tags_remove)
    for text in (update.text, update.old, update.new, update.append, update.prepend):
        check_note(text or "", settings)
    change = NoteChange(
        edit=Edit(update.text, update.old, update.new, update.append, update.prepend),
        title=update.title,
        tags_add=update.tags_add,
        tags_remove=update.tags_remove,
        if_match=None if if_match is None else hashes_in(request),
        inline_tags=update.inline_tags,
    )
    note, chunks = update_note(
        services.store,
        services.embedder,
        document_id,
        change,
        partial(check_note, settings=settings),
        services.stop.check,
        author,
    )
    with services.store.read() as tx:
        [model] = to_models(tx, [note])
        return with_chunks(model, chunks, len(chunks), author_of(tx, document_id))


def check_change(update: NoteUpdate) -> None:
    """Refuse a change without effect, or with contradictory fields.

    Raises:
        Invalid: the message names the fields that belong together.
    """
    if all(value in (None, []) for name, value in update if name != "inline_tags"):
        raise Invalid(
            "text: nothing to change. Send text, old and new, append, prepend, title, tags_add or tags_remove."
        )
    if (update.old is None) != (update.new is None):
        raise Invalid("old, new: send both or neither.")
    if update.text is not None and any(value is not None for value in (update.old, update.append, update.prepend)):
        raise Invalid("text: it is the whole new text. Leave out old, append and prepend.")
