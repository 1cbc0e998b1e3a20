"""Servers with only the gateway's frameworks, which answer a call of kb_status's size with a constant.

    python -m bench.floors starlette|mcp|fastmcp --port PORT

Each runs in the same way as the gateway.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import mcp_types
from fastmcp import FastMCP
from mcp.server import Server
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kb.api.status_models import Status
from kb.asgi.subapps import AppContext, SubApp, compose
from kb_cli.server import ServeSettings, listen, run_loop, serve

if TYPE_CHECKING:
    from starlette.requests import Request

STATUS = Status.model_validate(
    {
        "version": "3.0.0",
        "schema_version": 13,
        "full_text": "BM25 over FTS5, in memory",
        "model": {"name": "all-MiniLM-L6-v2", "dimensions": 384, "precision": "fp32", "window": 256},
        "device": "cpu",
        "provider": "CPUExecutionProvider",
        "documents": {"note": 120, "pdf": 30},
        "top_tags": [{"tag": "work", "documents": 90}, {"tag": "house", "documents": 12}],
        "chunks": 1234,
        "queue": {"queued": 0, "running": 0, "done": 150, "failed": 0},
        "parser": {"confined": ["network"]},
        "database_size": 12345678,
        "replica": None,
        "history": {"versions": 40, "size": 65536, "begins": None, "bin": 3, "bin_days": 30},
    }
).model_dump()


def starlette(_: AppContext) -> Starlette:
    """A route that parses the call and answers it as JSON."""

    async def answer(request: Request) -> Response:
        call = await request.json()
        text = mcp_types.TextContent(text=json.dumps(STATUS), type="text").model_dump()
        result = {"content": [text], "structuredContent": STATUS, "isError": False}
        return Response(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}))

    return Starlette(routes=[Route("/mcp", answer, methods=["POST"])])


def mcp(_: AppContext) -> Starlette:
    """The protocol's own server with one tool."""

    async def call_tool(*_: object) -> mcp_types.CallToolResult:
        text = mcp_types.TextContent(text=json.dumps(STATUS), type="text")
        return mcp_types.CallToolResult(content=[text], structured_content=STATUS)

    return Server("floor", on_call_tool=call_tool).streamable_http_app(stateless_http=True)


def fastmcp(_: AppContext) -> Starlette:
    """The framework with one tool."""
    server: FastMCP = FastMCP("floor")

    async def kb_status() -> Status:
        """Show the state of kb."""
        return Status.model_validate(STATUS)

    server.tool(kb_status)
    return server.http_app(path="/mcp", stateless_http=True)


def readiness(_: AppContext) -> Starlette:
    """What `running` asks for."""
    return Starlette(routes=[Route("/readyz", lambda _: PlainTextResponse("ready"))])


def main() -> None:
    """Serve one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("floor", choices=["starlette", "mcp", "fastmcp"])
    parser.add_argument("--port", type=int)
    flags = parser.parse_args()
    apps = {
        "readiness": SubApp("bench.floors:readiness", ("/readyz",)),
        flags.floor: SubApp(f"bench.floors:{flags.floor}", ("/mcp",)),
    }
    with listen(ServeSettings(port=flags.port)) as listener:
        run_loop(serve(listener, compose(apps, "", {})))


if __name__ == "__main__":
    main()
