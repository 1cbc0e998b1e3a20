"""The gateway as an ASGI app."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
from fastmcp import FastMCP

from kb import __version__
from kb.asgi.bearer import Key
from kb.asgi.probes import probes
from kb.contract.client import EngineClient
from kb.contract.settings import listed, reveal
from kb_mcp.auth import KeyVerifier
from kb_mcp.calls import PlainCalls
from kb_mcp.settings import Settings
from kb_mcp.tools import Tools, add_tools
from kb_mcp.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import ASGIApp

EXPIRY_SECONDS = 15

INSTRUCTIONS = (
    "kb is the user's own knowledge base: notes and files on their machine. Search it with kb_search before you answer"
    " about their work, and cite the title and place of what you use. Keep what is worth remembering with kb_addnote,"
    " and correct it with kb_update_note."
)


def create_app(settings: Settings | None = None, *, engine: ASGIApp | None = None) -> Starlette:
    """The gateway. It starts with or without the engine (requirement G-2).

    Args:
        settings: those of this process, if not given.
        engine: the engine in this process; otherwise it is asked over the network.

    Raises:
        SettingError: a setting is wrong.
    """
    settings = settings or Settings.read()
    client = engine_client(settings, engine)
    uploads = Uploads(settings.mcp_max_upload_mb << 20)

    @asynccontextmanager
    async def lifespan(_: FastMCP) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(uploads.close)
            await stack.enter_async_context(client)
            expiry = asyncio.create_task(_expire(uploads))
            stack.callback(expiry.cancel)
            yield

    key = reveal(settings.mcp_api_key)
    server: FastMCP = FastMCP(
        "kb",
        instructions=INSTRUCTIONS,
        version=__version__,
        auth=KeyVerifier(Key(key)) if key else None,
        middleware=[PlainCalls()],
        lifespan=lifespan,
        mask_error_details=True,
    )
    add_tools(server, Tools(client, uploads))
    # Without it each call lists all tools to look for parameters sent as headers; none of ours is.
    server._mcp_server.get_tool_input_schema = lambda _: None
    app = server.http_app(
        path="/mcp",
        stateless_http=True,
        json_response=False,
        host_origin_protection=True,
        allowed_hosts=listed(settings.mcp_allowed_hosts),
    )
    app.router.routes += probes(_started)
    return app


def engine_client(settings: Settings, engine: ASGIApp | None) -> EngineClient:
    """The way to the engine: in this process, or over the network."""
    if engine is None:
        return EngineClient(settings.engine_url, reveal(settings.api_key))
    transport = httpx2.ASGITransport(engine, raise_app_exceptions=False)
    return EngineClient("http://localhost", reveal(settings.api_key), transport=transport)


async def _expire(uploads: Uploads) -> None:
    while True:
        await asyncio.sleep(EXPIRY_SECONDS)
        uploads.expire()


async def _started(_: Request) -> bool:
    return True
