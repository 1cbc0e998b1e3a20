"""Keys and the audit log."""

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from kb import clock
from kb.api.errors import Invalid, KeyExists, NoKeySet, NotFound
from kb.api.fields import JobsCursor
from kb.api.grant_models import IdentifiedKey, TokenGrant
from kb.api.key_models import (
    AuditLine,
    AuditList,
    DigestRequest,
    FirstKey,
    Key,
    KeyList,
    KeyName,
    KeyRequest,
    KeyRights,
    NewKey,
    RotateRequest,
)
from kb.api.limit_errors import check_tags
from kb.api.limits import DEFAULT_PAGE, MAX_ID
from kb.api.rights import Limit
from kb.routes.dependencies import ADMIN, READ, AuthorDep, PageLimit, QueryModel, ServicesDep, get_caller
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.running_engine import FIRST_KEY
from kb.store.rows import AuditEvent, Grant, NamedKey

router = APIRouter(route_class=ThreadRoute, tags=["keys"])

Name = Annotated[KeyName, Path()]


class AuditQuery(QueryModel):
    """The filters and the page of the audit log."""

    document_id: Annotated[int | None, Field(ge=1, le=MAX_ID)] = None
    by: Annotated[str | None, Field(max_length=100, description="Only actions by the key with this name.")] = None
    limit: PageLimit = DEFAULT_PAGE
    cursor: JobsCursor | None = None


@router.get("/keys", summary="List keys", dependencies=[ADMIN])
def list_keys(services: ServicesDep) -> KeyList:
    """Return the keys with rights and when each was last used, without the keys in settings."""
    return KeyList(keys=[key_model(key) for key in services.keyring.every()])


@router.post(
    "/keys", summary="Make a key", status_code=201, dependencies=[ADMIN], responses=problems(400, 409, 413, 507)
)
def make_key(key_request: KeyRequest, services: ServicesDep, author: AuthorDep) -> NewKey:
    """Make a key with a right and an optional limit. Only this response contains its secret."""
    check_tags(tags=key_request.tags)
    if not services.settings.has_key:
        raise NoKeySet
    with services.store.write() as tx:
        tx.audit.add([AuditEvent("key-make", key=key_request.name)], author)
        key, token = services.keyring.make(
            key_request.name,
            key_request.right,
            Limit(tuple(key_request.tags), key_request.path),
            expiry(key_request.expires_at),
            key_request.per_minute,
            reads_all=key_request.reads_all,
        )
    return NewKey(**dict(key_model(key)), key=token)


@router.post(
    "/first-key", summary="Make the first key", status_code=201, dependencies=[ADMIN], responses=problems(409, 507)
)
def make_api_key(services: ServicesDep, author: AuthorDep) -> FirstKey:
    """Make an API key for a kb without keys. All apps of this process require it at once."""
    if services.settings.has_key:
        raise KeyExists("kb already has an API key. Make a key with 'kb keys make' instead.")
    file = services.settings.first_key
    with services.store.write() as tx:
        tx.audit.add([AuditEvent("key-make", key=FIRST_KEY)], author)
        key = services.keyring.make_first(file)
    return FirstKey(key=key, file=str(file))


@router.get("/key", summary="Get the rights of your key", dependencies=[READ])
async def get_own_rights(services: ServicesDep, request: Request) -> KeyRights:
    """Return the right and the limit of the key that made this call."""
    caller = get_caller(request, services)
    limit = caller.limit or Limit()
    return KeyRights(
        name=caller.name, right=caller.right, tags=list(limit.tags), path=limit.folder, reads_all=caller.reads_all
    )


@router.post("/key/identify", summary="Identify a key", dependencies=[ADMIN], responses=problems(400, 404, 413))
def identify_key(digest_request: DigestRequest, services: ServicesDep) -> IdentifiedKey:
    """Return the key with this digest, or the key of the access token with it. The key counts as used.

    A client of the gateway sent the key or the token.
    """
    digest = digest_request.digest
    if services.settings.has_key and (key := services.keyring.identify(digest)):
        return IdentifiedKey(**dict(key_model(key)))
    if (found := services.grants.identify(digest)) is None:
        raise NotFound("The key does not exist.")
    return granted(*found)


@router.post(
    "/keys/{name}/rotate", summary="Rotate a key", dependencies=[ADMIN], responses=problems(400, 404, 409, 413, 507)
)
def rotate_key(name: Name, rotate_request: RotateRequest, services: ServicesDep, author: AuthorDep) -> NewKey:
    """Give a key a new secret. The previous secret stays valid for `grace_minutes`.

    If two callers rotate a key at once, one of them gets 409.
    """
    before = services.keyring.existing(name)  # so that a change by others from now on is not overwritten
    with services.store.write() as tx:
        tx.audit.add([AuditEvent("key-rotate", key=name)], author)
        key, token = services.keyring.rotate(before, timedelta(minutes=rotate_request.grace_minutes))
    return NewKey(**dict(key_model(key)), key=token)


@router.delete("/keys/{name}", summary="Revoke a key", dependencies=[ADMIN], responses=problems(404, 507))
def revoke_key(name: Name, services: ServicesDep, author: AuthorDep) -> Key:
    """Revoke a key. It is invalid from now on."""
    with services.store.write() as tx:
        tx.audit.add([AuditEvent("key-revoke", key=name)], author)
        key = services.keyring.revoke(name)
        tx.grants.remove_of(name)
    services.grants.forget()
    return key_model(key)


@router.get("/audit", summary="List the audit log", dependencies=[ADMIN])
def list_audit(services: ServicesDep, query: Annotated[AuditQuery, Query()]) -> AuditList:
    """Return a page of the audit log, newest first: the time, key and program of each change, without its content."""
    limit = query.limit
    before = int(query.cursor) if query.cursor else None
    with services.store.read() as tx:
        page = tx.audit.page(limit=limit + 1, before=before, document_id=query.document_id, by=query.by)
    lines = [AuditLine.model_validate(line) for line in page[:limit]]
    return AuditList(lines=lines, next_cursor=str(lines[-1].id) if len(page) > limit else None)


def expiry(at: datetime | None) -> str | None:
    """Return the time from which a new key is not valid.

    Raises:
        Invalid: it is past.
    """
    if at is None:
        return None
    if at <= clock.own.now():
        raise Invalid("expires_at: this time is in the past. Choose a later one.")
    return clock.shown(at.timestamp())


def granted(grant: Grant, key: NamedKey | None) -> IdentifiedKey:
    """Return the key of a grant with the rights that the grant leaves it. A program never gets more than to write."""
    scopes = (grant.access_scopes or "").split()
    may_write = "write" in scopes and (key is None or key.caller.may("write"))
    token = TokenGrant(
        id=grant.id,
        key_digest=grant.key_digest,
        client_id=grant.client_id,
        client_name=grant.client_name,
        scopes=scopes,
        resource=grant.resource,
        until=grant.access_until or "",
    )
    owner = key or NamedKey(grant.key_name, "admin", (), None, grant.key_digest, grant.created_at)
    rights = dict(key_model(owner)) | {"right": "write" if may_write else "read"}
    return IdentifiedKey(**rights, key_right=owner.right, is_ours=key is not None, grant=token)


def key_model(key: NamedKey) -> Key:
    """Return the response for a key."""
    return Key(
        name=key.name,
        right=key.right,
        tags=list(key.tags),
        path=key.folder,
        created_at=key.created_at,
        used_at=key.used_at,
        expires_at=key.expires_at,
        per_minute=key.per_minute,
        reads_all=key.reads_all,
    )
