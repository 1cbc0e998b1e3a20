"""The addresses of OAuth: metadata, authorization, tokens, registration and revocation."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastmcp.server.auth.handlers.authorize import AuthorizationHandler
from fastmcp.server.auth.redirect_validation import build_client_redirect
from mcp.server.auth.handlers.metadata import MetadataHandler, ProtectedResourceMetadataHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.revoke import RevocationHandler
from mcp.server.auth.handlers.token import TokenErrorResponse, TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.routes import cors_middleware
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import KbError, TooManyGuesses, Unauthorized, Unavailable
from kb.api.rights import SCOPES
from kb.asgi.bearer import Guesses, client_network
from kb.asgi.body_limits import BodyLimitMiddleware
from kb.asgi.error_replies import on_http_exception, problem
from kb.asgi.key_check import Identify
from kb_mcp.auth import TokenCaller
from kb_mcp.oauth.clients import Client
from kb_mcp.oauth.pages import FIELDS, check_form, consent_page, refusal_page
from kb_mcp.oauth.provider import ASKED, CONSENT, Consent, Provider, consenting, for_resource

WELL_KNOWN: Final = "/.well-known/"
PATHS: Final = ("/authorize", "/token", "/register", "/revoke")
MAX_BODY: Final = 64 << 10
CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_VALUE: Final = 4000
WRONG_KEY: Final = "This key is not valid here. Check it and try again."


@dataclass(frozen=True, slots=True)
class Addresses:
    """The public addresses, which never come from a request.

    Args:
        issuer: the address of the gateway, without a final slash.
        endpoints: the paths of the MCP endpoints, the main one first.
    """

    issuer: str
    endpoints: Sequence[str]

    @property
    def resources(self) -> list[str]:
        return [f"{self.issuer}{path}" for path in self.endpoints]

    def metadata(self, endpoint: str) -> str:
        """Return the address of an endpoint's metadata (RFC 9728, 3.1)."""
        scheme, _, rest = self.issuer.partition("://")
        host, slash, prefix = rest.partition("/")
        return f"{scheme}://{host}{WELL_KNOWN}oauth-protected-resource{slash}{prefix}{endpoint}"

    def challenge(self, endpoint: str) -> str:
        """Return what a 401 of an endpoint says."""
        return f'Bearer realm="kb", resource_metadata="{self.metadata(endpoint)}", scope="read write"'


class OAuthRoutes:
    """Answers at the addresses of OAuth, before any check of keys; they are unknown while OAuth is off.

    Args:
        app: handles other requests.
        router: the routes.
        is_on: whether keys are required, so that there is something to sign in to.
    """

    def __init__(self, app: ASGIApp, router: ASGIApp | None, is_on: Callable[[], bool]) -> None:
        self._app = app
        self._router = router
        self._is_on = is_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path not in PATHS and WELL_KNOWN not in path:
            return await self._app(scope, receive, send)
        if self._router and self._is_on():
            return await self._answer(self._router, scope, receive, send)
        return await (await _unknown(Request(scope)))(scope, receive, send)

    async def _answer(self, router: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer errors that the SDK's handlers and the router leave to others, such as an engine that is away."""
        try:
            await router(scope, receive, send)
        except HTTPException as error:
            await (await on_http_exception(Request(scope), error))(scope, receive, send)
        except KbError as error:
            seen = error if error.status < 500 else Unavailable(error.detail)
            await problem(seen)(scope, receive, send)


def oauth_router(addresses: Addresses, provider: Provider, guesses: Guesses, identify: Identify) -> ASGIApp:
    """Return the routes.

    Args:
        addresses: the public addresses.
        provider: codes, tokens and clients.
        guesses: counts wrong keys on the page of consent, too.
        identify: returns the caller for a key.
    """
    authenticator = ClientAuthenticator(provider)
    registration = ClientRegistrationOptions(enabled=True)
    pages = AuthorizationPages(provider, addresses.issuer, guesses, identify)
    server = MetadataHandler(server_metadata(addresses.issuer))
    prefix = addresses.issuer.partition("://")[2].partition("/")[2]
    suffixes = {"", f"/{prefix}"} if prefix else {""}
    routes = [
        *(_open(f"{WELL_KNOWN}oauth-authorization-server{suffix}", server.handle, "GET") for suffix in suffixes),
        *_resource_routes(addresses, prefix),
        Route("/authorize", pages.handle, methods=["GET", "POST"]),
        _open("/token", Tokens(provider, authenticator).handle, "POST"),
        _open("/register", RegistrationHandler(provider, registration).handle, "POST"),
        _open("/revoke", Revocation(provider, authenticator).handle, "POST"),
    ]
    router = Router(routes, redirect_slashes=False, default=_not_found)
    return BodyLimitMiddleware(router, most=lambda *_: MAX_BODY)


def server_metadata(issuer: str) -> OAuthMetadata:
    """Return the metadata of the authorization server (RFC 8414)."""
    return OAuthMetadata.model_validate(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/register",
            "revocation_endpoint": f"{issuer}/revoke",
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
        }
    )


class AuthorizationPages(AuthorizationHandler):
    """Shows the page of consent for a request that the SDK accepts, and lets the SDK answer when the form arrives."""

    def __init__(self, provider: Provider, issuer: str, guesses: Guesses, identify: Identify) -> None:
        super().__init__(provider=provider, base_url=issuer, server_name="kb")
        self._provider = provider
        self._url = issuer
        self._guesses = guesses
        self._identify = identify

    async def handle(self, request: Request) -> Response:
        try:
            sent = request.query_params if request.method == "GET" else await request.form()
            asked = {field: str(value) for field in FIELDS if (value := sent.get(field)) is not None}
            client = await self._client(sent, asked)
            if isinstance(client, Response):
                return client
            if wrong := wrong_challenge(asked):
                return self._back(asked, "invalid_request", wrong)
            if isinstance(sent, FormData):
                return await self._decided(request, client, asked, sent)
            answer = await super().handle(request)
            return self._page(request, client, asked) if answer.headers.get("location") == CONSENT else answer
        except KbError as error:
            return refusal_page(error.detail, error.status)

    async def _client(self, sent: QueryParams | FormData, asked: dict[str, str]) -> Client | Response:
        """Return the client, or a page if it must not be answered: its callback may be forged."""
        if any(len(sent.getlist(field)) > 1 or len(value) > MAX_VALUE for field, value in asked.items()):
            return refusal_page("The program sent a parameter twice, or one that is too long.")
        callback = asked.get("redirect_uri", "")
        client = await self._provider.clients.get(asked.get("client_id", ""), callback)
        if client is None:
            return refusal_page(
                "kb does not know this program. Remove the connection from the program, and add it again. If the"
                " program has its own ID, the owner of this server can allow it with KB_MCP_OAUTH_REDIRECTS."
            )
        if not client.takes(callback):
            return refusal_page(
                "The program wanted the answer sent to an address that is not its own, so kb did not send one."
            )
        return client

    async def _decided(self, request: Request, client: Client, asked: dict[str, str], form: FormData) -> Response:
        """Answer the form: with a code for the program, with its refusal, or with the page again."""
        origin = "/".join(self._url.split("/", 3)[:3])
        check_form(request, asked, str(form.get("form_token", "")), origin)
        if form.get("decision") != "allow":
            return self._back(asked, "access_denied", "the owner refused")
        key = str(form.get("key", "")).strip()
        try:
            caller = await self._guesses.admit(client_network(request.scope), key, self._identify)
            if isinstance(caller, TokenCaller):  # a token must not make others
                raise Unauthorized
        except (Unauthorized, TooManyGuesses) as error:
            wrong = WRONG_KEY if isinstance(error, Unauthorized) else error.detail
            return self._page(request, client, asked, wrong)
        with consenting(Consent(key, caller, asked["redirect_uri"])):
            answer = await super().handle(request)
        answer.status_code = HTTPStatus.SEE_OTHER if answer.status_code == HTTPStatus.FOUND else answer.status_code
        return answer

    def _page(self, request: Request, client: Client, asked: dict[str, str], wrong: str = "") -> Response:
        scopes = shown_scopes(client.validate_scope(asked.get("scope")) or ASKED)
        return consent_page(request, client, asked, scopes, is_secure=self._url.startswith("https:"), wrong=wrong)

    def _back(self, asked: dict[str, str], error: str, description: str) -> Response:
        """Return an error to the program."""
        params = {"error": error, "error_description": description}
        state = {"state": asked["state"]} if "state" in asked else {}
        target = build_client_redirect(asked["redirect_uri"], params | state, iss=self._url)
        return RedirectResponse(target, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})


class Tokens(TokenHandler):
    """Exchanges codes and refresh tokens, which are too long to guess, for the resource that a request names."""

    async def handle(self, request: Request) -> Response:
        form = await request.form()
        if any(len(form.getlist(field)) > 1 for field in form):
            twice = TokenErrorResponse(error="invalid_request", error_description="a parameter was sent twice")
            return self.response(twice)  # type: ignore[no-any-return]
        resource = form.get("resource")
        with for_resource(resource if isinstance(resource, str) else None):
            return await super().handle(request)  # type: ignore[no-any-return]


class Revocation(RevocationHandler):
    """Ends access. The SDK demands a field `client_secret`, which programs without a secret don't send."""

    async def handle(self, request: Request) -> Response:
        form = await request.form()
        if any(len(form.getlist(field)) > 1 for field in form):
            return JSONResponse({"error": "invalid_request"}, HTTPStatus.BAD_REQUEST, {"Cache-Control": "no-store"})
        request._form = FormData([*form.multi_items(), ("client_secret", "")])  # the last one counts
        return await super().handle(request)


def wrong_challenge(asked: dict[str, str]) -> str | None:
    """Return what is wrong with the proof key (PKCE) of a request; the SDK takes a missing method for S256."""
    if asked.get("code_challenge_method") != "S256":
        return "code_challenge_method must be S256"
    return None if CHALLENGE.fullmatch(asked.get("code_challenge", "")) else "code_challenge must have 43 characters"


def shown_scopes(asked: list[str]) -> list[str]:
    """Return what a program gets that asks for some scopes: it always reads, and always gets a refresh token."""
    return [scope for scope in ASKED if scope != "write" or scope in asked]


def _resource_routes(addresses: Addresses, prefix: str) -> list[Route]:
    """Return the metadata of each MCP endpoint (RFC 9728): at its own address, and of the main one also at the root."""
    routes = []
    for endpoint in ["", *addresses.endpoints]:
        resource = f"{addresses.issuer}{endpoint or addresses.endpoints[0]}"
        metadata = ProtectedResourceMetadata.model_validate(
            {
                "resource": resource,
                "authorization_servers": [addresses.issuer],
                "scopes_supported": ["read", "write"],
                "resource_name": "kb",
            }
        )
        handle = ProtectedResourceMetadataHandler(metadata).handle
        paths = {f"{WELL_KNOWN}oauth-protected-resource{outer}{endpoint}" for outer in {"", f"/{prefix}".rstrip("/")}}
        routes += [_open(path, handle, "GET") for path in sorted(paths)]
    return routes


def _open(path: str, handle: Callable[[Request], object], method: str) -> Route:
    """Return a route for programs, which pages of other sites may call, as they send no cookies there."""
    return Route(path, cors_middleware(handle, [method, "OPTIONS"]), methods=[method, "OPTIONS"])  # type: ignore[arg-type]


async def _unknown(request: Request) -> Response:
    return await on_http_exception(request, HTTPException(HTTPStatus.NOT_FOUND, "Nothing is served at this address."))


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await (await _unknown(Request(scope)))(scope, receive, send)
