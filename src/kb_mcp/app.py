"""The gateway as an ASGI app."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Final

import fastmcp
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware as CallMiddleware
from fastmcp.utilities.lifespan import combine_lifespans
from opentelemetry.trace import SpanKind, Tracer
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp

from kb.asgi.bearer import BearerMiddleware, FirstKeyMiddleware
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
from kb_mcp.auth import CallerMiddleware, behalf_headers, key_verifier, with_named_keys
from kb_mcp.clients import client_headers
from kb_mcp.middleware.argument_errors import ArgumentErrors
from kb_mcp.middleware.arguments import ArgumentNormalizer
from kb_mcp.middleware.body_limit import BoundedBody
from kb_mcp.middleware.call_metering import CallMetrics, RateLimit
from kb_mcp.middleware.jsonrpc import FriendlyJSONRPCErrors, JSONResponses, TrimmedHeaders
from kb_mcp.middleware.offered_surface import OfferedSurface
from kb_mcp.middleware.text_answers import TextAnswers
from kb_mcp.server import INSTRUCTIONS, ON_WRITING, create_server, register_surface
from kb_mcp.settings import GatewaySettings
from kb_mcp.tools.token_budget import AnswerLimiter
from kb_mcp.upload_store import UploadLimits, UploadStore
from kb_mcp.upload_url import UploadAddresses
from kb_mcp.url_fetch import Fetcher

logger = logging.getLogger(__name__)

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
    over_http = partial(http_app, path="/mcp", settings=settings, keys=guard(settings, client, first_key))
    app = over_http(server)
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
        mount(
            app, "/collections", over_http(create_collections_server(server, client, names, middleware, text_answers))
        )
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
    over_http: Callable[[FastMCP], Starlette],
) -> None:
    """Mount the server with two tools, and the pages for its document URLs."""
    from kb_mcp.search_fetch import INSTRUCTIONS, PATH, Addresses, create_search_fetch_server, page_route

    addresses = Addresses(uploads.secret())
    limiter = AnswerLimiter(settings.mcp_max_tokens)
    inner = over_http(create_search_fetch_server(client, limiter, addresses, middleware_with(INSTRUCTIONS)))
    inner.router.routes.append(page_route(client, addresses))
    mount(app, PATH, inner)


def guard(settings: GatewaySettings, client: EngineClient, first_key: FirstKey) -> Callable[[str], list[Middleware]]:
    """Return a function from a path to the check of keys there; without any key, kb is open until the first one.

    Raises:
        SettingError: a setting for keys contains none.
    """
    own = key_verifier(reveal(settings.mcp_api_key), settings.mcp_api_key_file)
    identify = with_named_keys(own or first_key.identify, client)

    def keys(path: str) -> list[Middleware]:
        bearer = Middleware(BearerMiddleware, identify=identify, prefixes=(path,))
        if own:
            return [bearer]
        is_open = settings.api_key or settings.api_key_file  # KB_ALLOW_OPEN
        return [] if is_open else [Middleware(FirstKeyMiddleware, is_made=first_key.is_made, keyed=bearer)]

    return keys


def http_app(
    server: FastMCP, path: str, settings: GatewaySettings, keys: Callable[[str], list[Middleware]]
) -> Starlette:
    """Return the app of a server over Streamable HTTP at `path`, without sessions, for allowed hosts and keys."""
    streaming = server.http_app(path=path, stateless_http=True, json_response=False, host_origin_protection=False)
    names = listed(settings.mcp_allowed_hosts)
    app = server.http_app(
        path=path,
        middleware=[
            Middleware(OriginMiddleware, names=names),
            *keys(path),
            Middleware(CallerMiddleware),
            Middleware(BoundedBody),
            Middleware(JSONResponses, streaming=streaming, path=path),
        ],
        stateless_http=True,
        json_response=True,
        host_origin_protection=True,
        allowed_hosts=names,
        allowed_origins=["*"],  # `OriginMiddleware` checks more than this
    )
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
