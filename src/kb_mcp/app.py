"""The gateway as an ASGI app."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import fastmcp
from prometheus_client import CollectorRegistry
from starlette.middleware import Middleware

from kb.asgi.bearer import BearerMiddleware
from kb.asgi.headers import TrimmedHeaders
from kb.asgi.probes import ProbesFirst
from kb.asgi.request import RequestMiddleware, request_seconds
from kb.asgi.subapps import Context, mount
from kb.client.asgi import ASGITransport
from kb.client.client import EngineClient
from kb.client.telemetry import outgoing
from kb.settings import listed, reveal
from kb.telemetry.tracing import start_tracing
from kb_mcp.auth import key_verifier
from kb_mcp.middleware.arguments import PlainCalls
from kb_mcp.middleware.json_responses import answer_directly
from kb_mcp.middleware.jsonrpc_errors import PlainRefusals
from kb_mcp.middleware.metrics import WatchedCalls
from kb_mcp.middleware.rate_limit import Rate, RateLimit
from kb_mcp.server import fill, new_server
from kb_mcp.settings import Settings
from kb_mcp.tools.answers import Budget
from kb_mcp.uploads import Bounds, Uploads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastmcp import FastMCP
    from fastmcp.server.middleware import Middleware as CallMiddleware
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from kb.asgi.bearer import Identify
    from kb.client.client import Around

logger = logging.getLogger(__name__)


def create_app(context: Context | None = None) -> Starlette:
    """Return the gateway. It starts with or without the engine (requirement G-2).

    Raises:
        SettingError: a setting is wrong.
    """
    context = context or Context()
    settings = Settings.read(context.environment)
    configure_fastmcp()
    registry = CollectorRegistry()
    tracer, stop_tracing = start_tracing("kb-gateway")
    client = engine_client(settings, context.engine, outgoing(tracer))
    uploads = Uploads(bounds(settings), settings.mcp_upload_dir)

    @asynccontextmanager
    async def lifespan(_: FastMCP) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, stop_tracing)
            stack.callback(uploads.close)
            await stack.enter_async_context(client)
            expiry = asyncio.create_task(_expire(uploads, settings.mcp_upload_seconds / 40))
            stack.callback(expiry.cancel)
            yield

    middleware = [WatchedCalls(registry, tracer), *around_calls(settings)]
    server = new_server(middleware, lifespan=lifespan)
    fill(server, client, uploads, Budget(settings.mcp_max_tokens))
    identify = key_verifier(reveal(settings.mcp_api_key), settings.mcp_api_key_file)
    app = http_app(server, "/mcp", settings, identify)
    app.add_middleware(TrimmedHeaders)
    app.add_middleware(PlainRefusals)
    app.add_middleware(ProbesFirst, ready=_started)
    seconds = request_seconds("kb_mcp_http_request_seconds", registry)
    app.add_middleware(RequestMiddleware, seconds=seconds, tracer=tracer)
    app.state.registry = registry
    if settings.mcp_collections:
        from kb_mcp import collections

        names = collections.names_of(settings.mcp_collection_names)
        surface = collections.collections_server(server, client, names, middleware)
        mount(app, "/collections", http_app(surface, "/mcp", settings, identify))
    return app


def http_app(server: FastMCP, path: str, settings: Settings, identify: Identify | None) -> Starlette:
    """A server over Streamable HTTP at `path`, without sessions, for the hosts it may be called by and their keys."""
    keys = [Middleware(BearerMiddleware, identify=identify, prefixes=(path,))] if identify else []
    app = server.http_app(
        path=path,
        middleware=keys,
        stateless_http=True,
        json_response=False,
        host_origin_protection=True,
        allowed_hosts=listed(settings.mcp_allowed_hosts),
    )
    return answer_directly(app)


def configure_fastmcp() -> None:
    """Have FastMCP log like the rest of the process, and trace only if it is told to: its spans would go nowhere."""
    log = logging.getLogger("fastmcp")
    for handler in list(log.handlers):
        log.removeHandler(handler)
    log.propagate = True
    log.setLevel(logging.NOTSET)
    if "telemetry_mode" not in fastmcp.settings.model_fields_set:
        fastmcp.settings.telemetry_mode = "off"


def around_calls(settings: Settings) -> list[CallMiddleware]:
    """What every tool call passes through."""
    limit = [RateLimit(Rate(settings.mcp_calls_per_minute))] if settings.mcp_calls_per_minute else []
    return [*limit, PlainCalls()]


def bounds(settings: Settings) -> Bounds:
    """What uploads may take."""
    return Bounds(settings.mcp_max_upload_mb << 20, settings.mcp_max_uploads_mb << 20, settings.mcp_upload_seconds)


def engine_client(settings: Settings, engine: ASGIApp | None, around: Around) -> EngineClient:
    """The way to the engine: in this process, or over the network."""
    key = reveal(settings.api_key)
    if engine is None:
        return EngineClient(settings.engine_url, key, timeout=settings.mcp_engine_seconds, around=around)
    return EngineClient("http://localhost", key, transport=ASGITransport(engine), around=around)


async def _expire(uploads: Uploads, pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        try:
            await asyncio.to_thread(uploads.expire)
        except OSError as error:
            logger.warning("uploads that took too long are still there: %s", error)


async def _started(_: Request) -> bool:
    return True
