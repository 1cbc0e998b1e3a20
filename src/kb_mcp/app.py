"""The gateway as an ASGI app."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import fastmcp
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware as CallMiddleware
from fastmcp.utilities.lifespan import combine_lifespans
from opentelemetry.trace import SpanKind, Tracer
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp

from kb.asgi.bearer import CHALLENGE, BearerMiddleware, FirstKeyMiddleware, Guesses
from kb.asgi.error_replies import on_http_exception
from kb.asgi.hosts import OriginMiddleware
from kb.asgi.key_check import FirstKey, SecretFile
from kb.asgi.probes import ProbesFirst
from kb.asgi.rate_limit import GCRA
from kb.asgi.request import RequestMiddleware, request_seconds
from kb.asgi.subapps import AppContext, mount
from kb.client.asgi import ASGITransport
from kb.client.client import Around, EngineClient
from kb.running_engine import ENGINE_GONE
from kb.settings import listed, reveal
from kb.telemetry.logging import LOG_CONTEXT, REQUEST_ID
from kb.telemetry.tracing import PROPAGATOR, start_span, start_tracing
from kb_mcp.auth import CallerMiddleware, at_resource, behalf_headers, key_verifier, with_named_keys
from kb_mcp.clients import client_headers
from kb_mcp.middleware.argument_errors import ArgumentErrors
from kb_mcp.middleware.arguments import ArgumentNormalizer
from kb_mcp.middleware.body_limit import BoundedBody
from kb_mcp.middleware.call_metering import CallMetrics, RateLimit
from kb_mcp.middleware.jsonrpc import FriendlyJSONRPCErrors, JSONResponses, TrimmedHeaders
from kb_mcp.middleware.offered_surface import OfferedSurface
from kb_mcp.middleware.text_answers import TextAnswers
from kb_mcp.oauth.clients import LOOPBACK, Clients
from kb_mcp.oauth.provider import Provider
from kb_mcp.oauth.routes import Addresses, OAuthRoutes, oauth_router
from kb_mcp.oauth.scope_check import ScopeCheck
from kb_mcp.server import INSTRUCTIONS, ON_WRITING, create_server, register_surface
from kb_mcp.settings import GatewaySettings
from kb_mcp.tools.token_budget import AnswerLimiter
from kb_mcp.upload_store import UploadLimits, UploadStore
from kb_mcp.upload_url import UploadAddresses
from kb_mcp.url_fetch import Fetcher

logger = logging.getLogger(__name__)

ENDPOINT: Final = "/mcp"
ALONE_SECONDS: Final = 60
"""How long a gateway that has never reached its engine counts as ready."""

MOST_UPLOADS_MB: Final = 2048
"""Maximum announced size of all uploads in progress together, in MiB."""


def create_app(context: AppContext | None = None) -> Starlette:
    """Return the gateway. It starts with or without the engine (requirement G-2).

    Raises:
        SettingError: a setting is invalid.
    """
    context = context or AppContext()
    settings = GatewaySettings.read(context.environment)
    configure_fastmcp()
    registry = CollectorRegistry()
    tracer, stop_tracing = start_tracing("kb-gateway")
    first_key = FirstKey.of(context.environment)
    client = engine_client(settings, context.engine, tracer, first_key)
    uploads = UploadStore(upload_limits(settings), settings.mcp_upload_dir)
    metrics = CallMetrics(registry, tracer)
    limit = [RateLimit(GCRA(settings.mcp_calls_per_minute))] if settings.mcp_calls_per_minute else []
    text_answers = TextAnswers(listed(settings.mcp_text_clients.lower()))
    checks = [*limit, ArgumentNormalizer(), ArgumentErrors(client)]

    def middleware_with(instructions: str) -> list[CallMiddleware]:
        return [metrics, OfferedSurface(client, instructions, ON_WRITING), *checks]

    middleware = [text_answers, *middleware_with(INSTRUCTIONS)]
    pause = settings.mcp_upload_seconds / 40
    parts = partial(lifespan, client=client, uploads=uploads, pause=pause, stop_tracing=stop_tracing)
    server = create_server(middleware, lifespan=parts)
    fetcher = Fetcher(listed(settings.mcp_fetch_hosts.lower()), settings.mcp_max_upload_mb << 20)
    register_surface(server, client, uploads, AnswerLimiter(settings.mcp_max_tokens), fetcher)
    door = Door(settings, client, first_key, context.url)
    over_http = partial(http_app, settings=settings, door=door)
    app = over_http(server)
    app.add_middleware(OAuthRoutes, router=door.oauth_router(), is_on=door.is_guarded)
    app.add_middleware(UploadAddresses, engine=client, store=uploads)
    app.add_middleware(TrimmedHeaders)
    app.add_middleware(FriendlyJSONRPCErrors)
    app.add_middleware(ProbesFirst, ready=EngineProbe(client).is_ready, otherwise=ENGINE_GONE)
    seconds = request_seconds("kb_mcp_http_request_seconds", registry)
    app.add_middleware(RequestMiddleware, seconds=seconds, tracer=tracer)
    app.state.registry = registry
    if settings.mcp_collections:
        from kb_mcp.collections.server import collection_names, create_collections_server

        names = collection_names(settings.mcp_collection_names)
        collections = create_collections_server(server, client, names, middleware, text_answers)
        mount(app, "/collections", over_http(collections, mounted="/collections"))
    if settings.mcp_chatgpt:
        mount_search_fetch(app, client, uploads, settings, middleware_with, over_http)
    return app


@asynccontextmanager
async def lifespan(
    _: FastMCP, *, client: EngineClient, uploads: UploadStore, pause: float, stop_tracing: Callable[[], None]
) -> AsyncIterator[None]:
    """Keep the connection to the engine and the upload store open; delete expired uploads every `pause` seconds."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, stop_tracing)
        stack.callback(uploads.close)
        await stack.enter_async_context(client)
        expiry = asyncio.create_task(_expire(uploads, pause))
        stack.callback(expiry.cancel)
        yield


class EngineProbe:
    """Asks whether the engine answers. At its start, a gateway counts as ready without it: both may start together."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._until = time.monotonic() + ALONE_SECONDS

    async def is_ready(self, _: Request) -> bool:
        """Return whether the engine answers, or has not answered yet but may be starting."""
        if await self._client.is_ready():
            self._until = 0.0
            return True
        return time.monotonic() < self._until


def mount_search_fetch(
    app: Starlette,
    client: EngineClient,
    uploads: UploadStore,
    settings: GatewaySettings,
    middleware_with: Callable[[str], Sequence[CallMiddleware]],
    over_http: Callable[..., Starlette],
) -> None:
    """Mount the server with two tools, and the pages for its document URLs."""
    from kb_mcp.search_fetch import INSTRUCTIONS, PATH, Addresses, create_search_fetch_server, page_route

    addresses = Addresses(uploads.secret())
    limiter = AnswerLimiter(settings.mcp_max_tokens)
    two_tools = create_search_fetch_server(client, limiter, addresses, middleware_with(INSTRUCTIONS))
    inner = over_http(two_tools, mounted=PATH)
    inner.router.routes.append(page_route(client, addresses))
    mount(app, PATH, inner)


class Door:
    """The check of keys and access tokens at all MCP endpoints, and the sign-in over OAuth.

    Without any key, kb is open until the first one.

    Args:
        local_url: the address at which this process listens, if it is known.

    Raises:
        SettingError: a setting for keys contains none.
    """

    def __init__(
        self, settings: GatewaySettings, client: EngineClient, first_key: FirstKey, local_url: str | None
    ) -> None:
        self._settings = settings
        self._client = client
        self._first_key = first_key
        self._own = key_verifier(reveal(settings.mcp_api_key), settings.mcp_api_key_file)
        self._identify = with_named_keys(self._own or first_key, client)
        self._guesses = Guesses()
        chosen = {"/collections/mcp": settings.mcp_collections, "/chatgpt/mcp": settings.mcp_chatgpt}
        endpoints = [ENDPOINT, *(path for path, is_served in chosen.items() if is_served)]
        issuer = settings.public_url or (local_url if local_url and urlsplit(local_url).hostname in LOOPBACK else None)
        self._addresses = Addresses(issuer, endpoints) if issuer and settings.mcp_oauth else None

    def is_guarded(self) -> bool:
        """Return whether a key is required, or will be from the next request on."""
        return self._own is not None or (not self._is_open and self._first_key.is_made())

    @property
    def _is_open(self) -> bool:
        return bool(self._own is None and (self._settings.api_key or self._settings.api_key_file))  # KB_ALLOW_OPEN

    def challenge(self, endpoint: str) -> str:
        """Return what a 401 of an endpoint says."""
        return self._addresses.challenge(endpoint) if self._addresses else CHALLENGE

    def middleware(self, endpoint: str, path: str) -> list[Middleware]:
        """Return the check of keys at an endpoint, which the app that is mounted there knows as `path`."""
        resource = f"{self._addresses.issuer}{endpoint}" if self._addresses else None
        bearer = Middleware(
            BearerMiddleware,
            identify=at_resource(self._identify, resource),
            prefixes=(path,),
            guesses=self._guesses,
            challenge=self.challenge(endpoint),
        )
        if self._own:
            return [bearer]
        is_made = self._first_key.is_made
        return [] if self._is_open else [Middleware(FirstKeyMiddleware, is_made=is_made, keyed=bearer)]

    def oauth_router(self) -> ASGIApp | None:
        """Return the routes of OAuth; None if it is off, or the address of this server is unknown."""
        if self._addresses is None:
            return None
        clients = Clients(listed(self._settings.mcp_oauth_redirects))
        provider = Provider(self._client, clients, self._addresses.resources, self._own or self._first_key)
        return oauth_router(self._addresses, provider, self._guesses, self._identify)


def http_app(server: FastMCP, settings: GatewaySettings, door: Door, mounted: str = "") -> Starlette:
    """Return the app of a server over Streamable HTTP, without sessions, for allowed hosts and keys.

    Args:
        server: the server.
        settings: the gateway's.
        door: checks the keys.
        mounted: the path that the app is mounted under.
    """
    streaming = server.http_app(path=ENDPOINT, stateless_http=True, json_response=False, host_origin_protection=False)
    names = settings.hosts
    app = server.http_app(
        path=ENDPOINT,
        middleware=[
            Middleware(OriginMiddleware, names=names),
            *door.middleware(f"{mounted}{ENDPOINT}", ENDPOINT),
            Middleware(CallerMiddleware),
            Middleware(BoundedBody),
            Middleware(ScopeCheck, server=server, challenge=door.challenge(f"{mounted}{ENDPOINT}")),
            Middleware(JSONResponses, streaming=streaming, path=ENDPOINT),
        ],
        stateless_http=True,
        json_response=True,
        host_origin_protection=True,
        allowed_hosts=names,
        allowed_origins=["*"],  # `OriginMiddleware` checks more than this
    )
    app.add_exception_handler(HTTPException, on_http_exception)
    app.router.lifespan_context = combine_lifespans(app.lifespan, streaming.lifespan)
    return app


def configure_fastmcp() -> None:
    """Make FastMCP log like the rest of the process, and trace only if configured: its spans would be lost."""
    log = logging.getLogger("fastmcp")
    for handler in list(log.handlers):
        log.removeHandler(handler)
    log.propagate = True
    log.setLevel(logging.NOTSET)
    if "telemetry_mode" not in fastmcp.settings.model_fields_set:
        fastmcp.settings.telemetry_mode = "off"


def upload_limits(settings: GatewaySettings) -> UploadLimits:
    return UploadLimits(
        file_size=settings.mcp_max_upload_mb << 20,
        reserved_bytes=max(MOST_UPLOADS_MB, settings.mcp_max_upload_mb) << 20,
        seconds=settings.mcp_upload_seconds,
    )


def engine_client(
    settings: GatewaySettings, engine: ASGIApp | None, tracer: Tracer, first_key: FirstKey
) -> EngineClient:
    """Return a client for the engine, in this process or over the network.

    Raises:
        SettingError: the file with the engine's keys is unreadable or empty.
    """
    key = reveal(settings.api_key)
    file = SecretFile(settings.api_key_file, "KB_API_KEY_FILE") if settings.api_key_file else first_key
    around = outgoing(tracer, None if key else file)
    if engine is None:
        return EngineClient(settings.engine_url, key, timeout=settings.mcp_engine_seconds, around=around, agent="mcp")
    return EngineClient("http://localhost", key, transport=ASGITransport(engine), around=around, agent="mcp")


async def _expire(uploads: UploadStore, pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        try:
            await asyncio.to_thread(uploads.expire)
        except OSError as error:
            logger.warning("could not delete expired uploads: %s", error)


def outgoing(tracer: Tracer, keys: SecretFile | FirstKey | None) -> Around:
    """Return a context manager around the calls of `EngineClient`, which adds caller, request id, span and key.

    Each call uses the first key in the file at that time, if there is one.
    """

    @contextmanager
    def around(method: str, path: str) -> Iterator[dict[str, str]]:
        headers = behalf_headers(method, path) | client_headers(method, path)
        if key := keys.first() if keys else None:
            headers["Authorization"] = f"Bearer {key}"
        attributes = {"http.request.method": method, "url.path": path}
        with start_span(tracer, method, SpanKind.CLIENT, attributes=attributes):
            if request_id := LOG_CONTEXT.get().get("request_id"):
                headers[REQUEST_ID] = request_id
            PROPAGATOR.inject(headers)
            yield headers

    return around
