"""PATCH /notes/{id}: a note changed in place."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request

from kb.api.models import DocumentWithChunks, NoteUpdate
from kb.documents.update import update_note
from kb.routes.dependencies import AuthorDep, Id, ServicesDep
from kb.routes.documents import with_chunks
from kb.routes.limits import check_note
from kb.routes.problems import problems
from kb.routes.thread_route import ThreadRoute

router = APIRouter(route_class=ThreadRoute, tags=["notes"])


@router.patch("/notes/{document_id}", summary="Update a note", responses=problems(400, 404, 409, 412, 413, 507))
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
    """Replace a note's text; when this answers, the new text is found and the old one is not."""
    check_note(update.text, services.settings)
    expected = None if if_match is None else hashes_in(request)
    note, chunks = update_note(
        services.store, services.embedder, document_id, update.text, expected, services.stop.check, author
    )
    return with_chunks(note, chunks, len(chunks))


def hashes_in(request: Request) -> set[str] | None:
    """Return what a request's If-Match headers name; None if anything will do."""
    if_match = ",".join(request.headers.getlist("if-match"))
    hashes = {tag.strip().strip('"') for tag in if_match.split(",")}
    return None if "*" in hashes else hashes
