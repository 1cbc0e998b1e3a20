"""Keys, and who did what."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from kb.api.errors import NoKeySet, NotFound
from kb.api.key_models import (
    AuditLine,
    AuditList,
    DigestRequest,
    Key,
    KeyList,
    KeyName,
    KeyRequest,
    KeyRights,
    NewKey,
    RotateRequest,
)
from kb.api.models import DEFAULT_PAGE, JobsCursor
from kb.api.rights import Limit
from kb.routes.dependencies import ADMIN, MAX_ID, READ, AuthorDep, PageLimit, QueryModel, ServicesDep, get_caller
from kb.routes.problems import problems
from kb.routes.request_limits import check_tags
from kb.routes.thread_route import ThreadRoute
from kb.store.rows import AuditEvent, NamedKey

router = APIRouter(route_class=ThreadRoute, tags=["keys"])

Name = Annotated[KeyName, Path()]


class AuditQuery(QueryModel):
    """Which lines."""

    document_id: Annotated[int | None, Field(ge=1, le=MAX_ID)] = None
    by: Annotated[str | None, Field(max_length=100, description="The name of a key.")] = None
    limit: PageLimit = DEFAULT_PAGE
    cursor: JobsCursor | None = None


@router.get("/keys", summary="List keys", dependencies=[ADMIN])
def list_keys(services: ServicesDep) -> KeyList:
    """The keys with rights, with when each was used last; those of the settings are not among them."""
    return KeyList(keys=[key_model(key) for key in services.keyring.every()])


@router.post(
    "/keys", summary="Make a key", status_code=201, dependencies=[ADMIN], responses=problems(400, 409, 413, 507)
)
def make_key(key_request: KeyRequest, services: ServicesDep, author: AuthorDep) -> NewKey:
    """A key with rights, and limits if there are to be any. What to send is in this answer alone."""
    check_tags(tags=key_request.tags)
    if not services.settings.has_key:
        raise NoKeySet
    with services.store.write() as tx:
        tx.audit.add([AuditEvent("key-make", key=key_request.name)], author)
        key, token = services.keyring.make(
            key_request.name, key_request.right, Limit(tuple(key_request.tags), key_request.path)
        )
    return NewKey(**dict(key_model(key)), key=token)


@router.get("/key", summary="Get the rights of the key that is sent", dependencies=[READ])
async def get_own_rights(services: ServicesDep, request: Request) -> KeyRights:
    """What the caller may do, and what it is limited to."""
    caller = get_caller(request, services)
    limit = caller.limit or Limit()
    return KeyRights(name=caller.name, right=caller.right, tags=list(limit.tags), path=limit.folder)


@router.post("/key/identify", summary="Find a key", dependencies=[ADMIN], responses=problems(400, 404, 413))
def identify_key(digest_request: DigestRequest, services: ServicesDep) -> Key:
    """The key that a client of the gateway sent, by its digest. It counts as used."""
    key = services.keyring.identify(digest_request.digest) if services.settings.has_key else None
    if key is None:
        raise NotFound("The key does not exist.")
    return key_model(key)


@router.post(
    "/keys/{name}/rotate", summary="Rotate a key", dependencies=[ADMIN], responses=problems(400, 404, 409, 413, 507)
)
def rotate_key(name: Name, rotate_request: RotateRequest, services: ServicesDep, author: AuthorDep) -> NewKey:
    """The same key, to be sent in another form; the one from before is good for `grace_minutes` yet.

    Of two who rotate it at once one gets it, and the other one 409.
    """
    before = services.keyring.existing(name)  # what others do from now on is not to be overwritten unseen
    with services.store.write() as tx:
        tx.audit.add([AuditEvent("key-rotate", key=name)], author)
        key, token = services.keyring.rotate(before, timedelta(minutes=rotate_request.grace_minutes))
    return NewKey(**dict(key_model(key)), key=token)


@router.delete("/keys/{name}", summary="Revoke a key", dependencies=[ADMIN], responses=problems(404, 507))
def revoke_key(name: Name, services: ServicesDep, author: AuthorDep) -> Key:
    """It opens nothing from now on."""
    with services.store.write() as tx:
        tx.audit.add([AuditEvent("key-revoke", key=name)], author)
        key = services.keyring.revoke(name)
    return key_model(key)


@router.get("/audit", summary="List who did what", dependencies=[ADMIN])
def list_audit(services: ServicesDep, query: Annotated[AuditQuery, Query()]) -> AuditList:
    """A page of the audit log, newest first: each change with its time, key and client, and nothing of what it held."""
    limit = query.limit
    before = int(query.cursor) if query.cursor else None
    with services.store.read() as tx:
        page = tx.audit.page(limit=limit + 1, before=before, document_id=query.document_id, by=query.by)
    lines = [AuditLine.model_validate(line) for line in page[:limit]]
    return AuditList(lines=lines, next_cursor=str(lines[-1].id) if len(page) > limit else None)


def key_model(key: NamedKey) -> Key:
    """Return a key as it is answered."""
    return Key(
        name=key.name,
        right=key.right,
        tags=list(key.tags),
        path=key.folder,
        created_at=key.created_at,
        used_at=key.used_at,
    )
