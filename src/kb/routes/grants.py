"""Grants of access to programs, for the gateway, and for those who look after them."""

from typing import Annotated

from fastapi import APIRouter, Path

from kb.api.grant_models import (
    Exchange,
    FoundGrant,
    Grant,
    GrantId,
    GrantList,
    GrantRequest,
    GrantToken,
    NewGrant,
    Tokens,
)
from kb.routes.dependencies import ADMIN, AuthorDep, ServicesDep
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.store import rows

router = APIRouter(route_class=ThreadRoute, tags=["keys"])


@router.get("/grants", summary="List grants", dependencies=[ADMIN])
def list_grants(services: ServicesDep) -> GrantList:
    """Return the programs that got access over OAuth, each under the key that was entered for it."""
    return GrantList(grants=[Grant(**described(grant)) for grant in services.grants.every()])


@router.post(
    "/grants", summary="Make a grant", status_code=201, dependencies=[ADMIN], responses=problems(400, 404, 413, 507)
)
def make_grant(grant_request: GrantRequest, services: ServicesDep, author: AuthorDep) -> NewGrant:
    """Give a program access under a key. The gateway calls this when a person has entered the key for the program."""
    return NewGrant(code=services.grants.make(grant_request, author))


@router.post("/grant/find", summary="Find a grant", dependencies=[ADMIN], responses=problems(400, 404, 413, 507))
def find_grant(grant_token: GrantToken, services: ServicesDep) -> FoundGrant:
    """Return the grant of a code or refresh token. A token that was used before ends its grant."""
    grant = services.grants.find(grant_token)
    return FoundGrant(
        **described(grant), key_digest=grant.key_digest, redirect_uri=grant.redirect_uri, challenge=grant.challenge
    )


@router.post(
    "/grant/exchange", summary="Exchange a code or token", dependencies=[ADMIN], responses=problems(400, 404, 413, 507)
)
def exchange_token(exchange: Exchange, services: ServicesDep) -> Tokens:
    """Return new tokens for a code or a refresh token, which is used up. A token that was used twice ends its grant."""
    return services.grants.exchange(exchange)


@router.delete("/grants/{grant_id}", summary="End a grant", dependencies=[ADMIN], responses=problems(404, 507))
def end_grant(grant_id: Annotated[GrantId, Path()], services: ServicesDep, author: AuthorDep) -> Grant:
    """End a grant. Its tokens are invalid from now on."""
    return Grant(**described(services.grants.end(grant_id, author)))


def described(grant: rows.Grant) -> dict[str, object]:
    """Return the fields of the response for a grant."""
    names = ("id", "key_name", "client_id", "client_name", "resource", "created_at", "used_at", "until")
    return {name: getattr(grant, name) for name in names} | {"scopes": grant.scopes.split()}
