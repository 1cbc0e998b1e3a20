"""Codes and tokens for the SDK's handlers; the engine keeps them."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from time import time
from typing import Any, Final

from fastmcp.server.auth.redirect_validation import add_query_params
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from kb.api.errors import KbError, NotFound
from kb.api.rights import ANYONE, OF_SETTINGS, Caller
from kb.asgi.key_check import access_changes
from kb.client.client import EngineClient
from kb_mcp.auth import OwnKeys, acting_as
from kb_mcp.clients import holding
from kb_mcp.oauth.clients import Client, Clients

CONSENT: Final = "kb:consent"
"""What `authorize` returns instead of an address if a person must decide first."""

SECONDS: Final = 60
ASKED: Final = ["read", "write", "offline_access"]
"""The scopes of a client that asks for none."""


class GrantedAccess(AccessToken):
    grant_id: str


class GrantedCode(AuthorizationCode):
    grant_id: str


class GrantedRefresh(RefreshToken):
    grant_id: str


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's consent: the key that they entered, and the callback byte for byte."""

    key: str
    caller: Caller
    callback: str


_consent: ContextVar[Consent | None] = ContextVar("consent", default=None)
_resource: ContextVar[str | None] = ContextVar("resource", default=None)
"""The resource that a request for tokens names."""


class Provider(OAuthAuthorizationServerProvider[GrantedCode, GrantedRefresh, GrantedAccess]):
    """See the SDK.

    Args:
        engine: keeps the grants.
        clients: the programs that may ask.
        resources: the addresses of the MCP endpoints; the first is the default.
        own: the gateway's own keys, which the engine does not know.
    """

    def __init__(self, engine: EngineClient, clients: Clients, resources: list[str], own: OwnKeys) -> None:
        self._engine = engine
        self.clients = clients
        self._resources = resources
        self._own = own

    async def get_client(self, client_id: str) -> Client | None:
        return await self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients.register(client_info)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        resources = self._resources
        resource = params.resource or resources[0]
        if resource not in resources:
            raise AuthorizeError("invalid_target", f"resource: this server has {', '.join(resources)}")
        consent = _consent.get()
        if consent is None:
            return CONSENT
        grant = {
            "key_name": consent.caller.name,
            "key_digest": sha256(consent.key.encode()).hexdigest(),
            "client_id": client.client_id,
            "client_name": client.shown_name if isinstance(client, Client) else client.client_id,
            "scopes": granted_scopes(params.scopes or ASKED, consent.caller),
            "resource": resource,
            "redirect_uri": consent.callback,
            "challenge": params.code_challenge,
        }
        with acting_as(ANYONE):
            made = await self._engine.make_grant(grant)
        state = {"state": params.state} if params.state is not None else {}
        return add_query_params(consent.callback, {"code": made["code"]} | state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> GrantedCode | None:
        grant = await self._found("code", authorization_code)
        if grant is None:
            return None
        return GrantedCode(
            code=authorization_code,
            scopes=grant["scopes"],
            expires_at=time() + SECONDS,  # the engine has checked
            client_id=grant["client_id"],
            code_challenge=grant["challenge"],
            redirect_uri=grant["redirect_uri"],
            redirect_uri_provided_explicitly=True,
            resource=grant["resource"],
            grant_id=grant["id"],
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: GrantedCode
    ) -> OAuthToken:
        check_resource(authorization_code.resource)
        return await self._exchanged("code", authorization_code.code)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> GrantedRefresh | None:
        grant = await self._found("refresh", refresh_token)
        if grant is None:
            return None
        return GrantedRefresh(
            token=refresh_token,
            client_id=grant["client_id"],
            scopes=grant["scopes"],
            resource=grant["resource"],
            grant_id=grant["id"],
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: GrantedRefresh, scopes: list[str]
    ) -> OAuthToken:
        check_resource(refresh_token.resource)
        return await self._exchanged("refresh", refresh_token.token, scopes)

    async def load_access_token(self, token: str) -> GrantedAccess | None:
        try:
            with acting_as(ANYONE):
                grant = (await self._engine.identify_key(sha256(token.encode(errors="replace")).hexdigest()))["grant"]
        except NotFound:
            return None
        if grant is None:
            return None
        names = {"client_id": grant["client_id"], "scopes": grant["scopes"]}
        return GrantedAccess(token=token, grant_id=grant["id"], **names)

    async def revoke_token(self, token: GrantedAccess | GrantedRefresh) -> None:
        with acting_as(ANYONE):
            await self._engine.end_grant(token.grant_id)
        access_changes.count += 1

    async def _found(self, kind: str, token: str) -> dict[str, Any] | None:
        try:
            with acting_as(ANYONE):
                grant = await self._engine.find_grant(kind, token)
        except KbError as error:
            access_changes.count += 1  # a used one ends its access
            if error.status < 500:
                return None
            raise
        is_own = OF_SETTINGS.fullmatch(grant["key_name"])
        return None if is_own and not self._own.of_digest(bytes.fromhex(grant["key_digest"])) else grant

    async def _exchanged(self, kind: str, token: str, scopes: list[str] | None = None) -> OAuthToken:
        try:
            with acting_as(ANYONE):
                tokens = await self._engine.exchange_token(kind, token, scopes)
        except NotFound:
            raise TokenError("invalid_grant", "it was used before") from None
        access_changes.count += 1
        return OAuthToken(
            access_token=tokens["access_token"],
            expires_in=tokens["expires_in"],
            scope=" ".join(tokens["scopes"]),
            refresh_token=tokens["refresh_token"],
        )


def granted_scopes(asked: list[str], caller: Caller) -> list[str]:
    """Return the scopes that a key can give; reading is always one of them."""
    return [
        scope for scope in ASKED if scope == "read" or (scope in asked and (scope != "write" or caller.may("write")))
    ]


def check_resource(granted: str | None) -> None:
    """Refuse a request for tokens that names another resource than the grant.

    Raises:
        TokenError: it does.
    """
    asked = _resource.get()
    if asked is not None and asked != granted:
        raise TokenError("invalid_target", "resource: the code or token is for another one")


def consenting(consent: Consent) -> AbstractContextManager[None]:
    """Make `authorize` grant access during the block."""
    return holding(_consent, consent)


def for_resource(resource: str | None) -> AbstractContextManager[None]:
    """Give out tokens for only this resource during the block."""
    return holding(_resource, resource)
