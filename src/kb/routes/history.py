"""Versions, the bin, and undo."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import Field

from kb.api.document_models import Document
from kb.api.errors import Invalid
from kb.api.fields import BinCursor, JobsCursor
from kb.api.history_models import (
    BinList,
    BinnedDocument,
    Change,
    Operation,
    OperationList,
    Revert,
    Undone,
    UndoRequest,
    UndoStep,
    Version,
    VersionDiff,
    VersionList,
    VersionText,
)
from kb.api.limits import DEFAULT_PAGE, MAX_ID
from kb.api.rights import Caller
from kb.documents.diff import diff
from kb.documents.lookup import existing_document, existing_version
from kb.documents.restore_document import restore, revert
from kb.documents.undo import Scope, carry_out, changed_tags, find_operation, plan
from kb.routes.dependencies import (
    READ,
    WRITE,
    AuthorDep,
    Id,
    PageLimit,
    QueryModel,
    Services,
    ServicesDep,
    get_caller,
    hashes_in,
    operation_key,
)
from kb.routes.documents import to_model
from kb.routes.error_replies import links_to_document, problems
from kb.routes.thread_route import ThreadRoute
from kb.store import rows
from kb.store.protocol import Transaction

router = APIRouter(route_class=ThreadRoute, tags=["history"])

Number = Annotated[int, Path(ge=1, le=MAX_ID)]


class VersionsQuery(QueryModel):
    """The page of versions to list."""

    limit: PageLimit = DEFAULT_PAGE
    cursor: JobsCursor | None = None


class BinQuery(QueryModel):
    """The page of the bin to list."""

    limit: PageLimit = DEFAULT_PAGE
    cursor: BinCursor | None = None


class OperationsQuery(VersionsQuery):
    """The filter and the page of a list of operations."""

    key: Annotated[
        str | None,
        Field(
            pattern="^[0-9A-Za-z-]{1,64}$",
            description="Only the operation with this key in your header `KB-Operation`.",
        ),
    ] = None


class DiffQuery(QueryModel):
    """The version to compare with."""

    to: Annotated[
        int | None, Field(ge=1, le=MAX_ID, description="The number of the other version; by default the newest.")
    ] = None


@router.get(
    "/documents/{document_id}/history",
    summary="List a document's versions",
    dependencies=[READ],
    responses=problems(404),
)
def list_versions(document_id: Id, services: ServicesDep, query: Annotated[VersionsQuery, Query()]) -> VersionList:
    """Return the versions of a document, newest first. The document may be in the bin."""
    limit = query.limit
    before = int(query.cursor) if query.cursor else None
    with services.store.view() as tx:
        binned = tx.history.binned(document_id)
        if binned is None:
            existing_document(tx, document_id)
        page = tx.history.versions(document_id, limit=limit + 1, before=before)
    return VersionList(
        document_id=document_id,
        deleted_at=binned.deleted_at if binned else None,
        versions=[version_model(version) for version in page[:limit]],
        next_cursor=str(page[limit - 1].number) if len(page) > limit else None,
    )


@router.get(
    "/documents/{document_id}/history/{number}", summary="Get a version", dependencies=[READ], responses=problems(404)
)
def get_version(document_id: Id, number: Number, services: ServicesDep) -> VersionText:
    """Return a version of a document with its text."""
    version, text = version_with_text(services, document_id, number)
    return VersionText(**dict(version_model(version)), document_id=document_id, text=text)


@router.get(
    "/documents/{document_id}/history/{number}/diff",
    summary="Compare versions",
    dependencies=[READ],
    responses=problems(404),
)
def compare_versions(
    document_id: Id, number: Number, services: ServicesDep, query: Annotated[DiffQuery, Query()]
) -> VersionDiff:
    """Return the differences, word by word, between a version and another one, by default the newest."""
    if query.to is None:
        with services.store.view() as tx:
            existing_version(tx, document_id, number)
            query.to = tx.history.versions(document_id, limit=1)[0].number
    (_, before), (_, after) = (
        version_with_text(services, document_id, version_number) for version_number in (number, query.to)
    )
    changes = [Change.model_validate(change) for change in diff(before, after)]
    return VersionDiff(document_id=document_id, start=number, end=query.to, changes=changes)


@router.post(
    "/documents/{document_id}/revert",
    summary="Revert a document to a version",
    dependencies=[WRITE],
    responses={200: links_to_document("/id"), **problems(400, 404, 409, 412, 413, 507)},
)
def revert_document(
    document_id: Id,
    revert_request: Revert,
    services: ServicesDep,
    request: Request,
    author: AuthorDep,
    if_match: Annotated[
        str | None, Header(description="The `content_hash` that the document must still have, in quotes (RFC 9110).")
    ] = None,
) -> Document:
    """Give a document the content of one of its versions. The versions in between stay."""
    expected = None if if_match is None else hashes_in(request)
    document = revert(
        services.store,
        services.originals,
        document_id,
        revert_request.version,
        if_match=expected,
        author=author,
        checkpoint=services.stop.check,
    )
    return to_model(services, document)


@router.post(
    "/documents/{document_id}/restore",
    summary="Restore a document from the bin",
    dependencies=[WRITE],
    responses={200: links_to_document("/id"), **problems(404, 409, 507)},
)
def restore_document(document_id: Id, services: ServicesDep, author: AuthorDep) -> Document:
    """Restore a document from the bin, with the attachments that were deleted with it."""
    restored = restore(services.store, document_id, author, checkpoint=services.stop.check)
    return to_model(services, restored)


@router.get("/bin", summary="List the bin", dependencies=[READ])
def list_bin(services: ServicesDep, query: Annotated[BinQuery, Query()]) -> BinList:
    """Return a page of deleted documents that can be restored, last deleted first."""
    limit = query.limit
    with services.store.view() as tx:
        page = tx.history.bin(limit=limit + 1, before=bin_place(query.cursor))
    days = services.settings.bin_days
    documents = [binned_model(binned, days) for binned in page[:limit]]
    last = page[limit - 1] if len(page) > limit else None
    return BinList(documents=documents, next_cursor=f"{last.document.id}.{last.deleted_at}" if last else None)


@router.post("/undo", summary="Undo changes", dependencies=[WRITE], responses=problems(400, 404, 410, 413, 507))
def undo_changes(undo_request: UndoRequest, services: ServicesDep, author: AuthorDep) -> Undone:
    """Undo an operation, or all changes since a time.

    Added documents go to the bin, deleted documents are restored, and changed documents get their earlier text and
    tags. A step that cannot be undone is skipped, with the reason. The undo is an operation too: the next undo reverses
    it.
    """
    if undo_request.operation is not None and (undo_request.since or undo_request.key):
        raise Invalid("operation: cannot be combined with since or key.")
    if undo_request.mine and not undo_request.since:
        raise Invalid("mine: can be used only with since.")
    operation = None
    if undo_request.since is None:
        operation = find_operation(services.store, undo_request.operation, Caller(undo_request.key or author.by))
    mine = author if undo_request.mine else None
    planned = plan(services.store, Scope(operation, undo_request.since, undo_request.key, mine))
    steps = planned.steps
    with services.store.view() as tx:
        shown = operation and operation_model(tx, operation)
    if not undo_request.dry_run:
        steps = carry_out(services.store, services.originals, planned, author, services.stop.check)
    done = Counter(step.action for step in steps if not step.skipped)
    return Undone(
        dry_run=undo_request.dry_run,
        operation=shown,
        added=done["delete"],
        changed=done["revert"] + done["retag"],
        deleted=done["restore"],
        jobs=len(planned.jobs),
        steps=[UndoStep.model_validate(step) for step in steps],
    )


@router.get("/operations", summary="List operations", dependencies=[READ])
def list_operations(
    services: ServicesDep, query: Annotated[OperationsQuery, Query()], request: Request
) -> OperationList:
    """Return a page of operations that can be undone, newest first."""
    limit = query.limit
    before = int(query.cursor) if query.cursor else None
    key = None if query.key is None else operation_key(get_caller(request, services).name, query.key)
    with services.store.view() as tx:
        page = tx.operations.page(limit=limit + 1, before=before, key=key)
        operations = [operation_model(tx, operation) for operation in page[:limit]]
    return OperationList(operations=operations, next_cursor=str(page[limit - 1].id) if len(page) > limit else None)


def operation_model(tx: Transaction, operation: rows.Operation) -> Operation:
    """Return the response for an operation."""
    counts, jobs = tx.operations.counts(operation.id), tx.operations.jobs(operation)
    tags_added, tags_removed = changed_tags(tx, operation.id)
    return Operation(
        number=operation.id,
        at=operation.at,
        by=operation.by,
        client=operation.client,
        added=counts.added,
        changed=counts.changed,
        deleted=counts.deleted,
        restored=counts.restored,
        jobs=len(jobs),
        tags_added=tags_added,
        tags_removed=tags_removed,
    )


def version_with_text(services: Services, document_id: int, number: int) -> tuple[rows.Version, str]:
    """Return a version and its text."""
    with services.store.view() as tx:
        version = existing_version(tx, document_id, number)
        return version, "".join(chunk.text for chunk in tx.history.chunks(version))


def bin_place(cursor: str | None) -> tuple[str, int] | None:
    """Return the time and id of the last document of the previous page of the bin."""
    document_id, _, deleted_at = (cursor or "").partition(".")
    return (deleted_at, int(document_id)) if cursor else None


def version_model(version: rows.Version) -> Version:
    """Return the response for a version."""
    return Version(
        number=version.number,
        at=version.at,
        until=version.until,
        by=version.author.by,
        client=version.author.client,
        why=version.author.why,
        title=version.document.title,
        source_path=version.document.source_path,
        tags=list(version.document.tags),
        content_hash=version.document.content_hash,
    )


def binned_model(binned: rows.Binned, days: int) -> BinnedDocument:
    """Return the response for a document in the bin, which expires after this number of days."""
    expires_at = datetime.fromisoformat(binned.deleted_at) + timedelta(days=days)
    return BinnedDocument(
        **dict(Document.model_validate(binned.document)),
        deleted_at=binned.deleted_at,
        by=binned.author.by,
        client=binned.author.client,
        why=binned.author.why,
        expires_at=expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )
