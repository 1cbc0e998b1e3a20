"""`kb serve` that adds the agents' key to requests that come without one: the conformance suite cannot send any."""

from __future__ import annotations

import argparse
import asyncio
import os

from kb.asgi.subapps import choose, compose, installed
from kb_cli.serve import APPS, ENGINE, Settings, listen, serve


class WithKey:
    """The app, as a client that knows the key meets it."""

    def __init__(self, app, key):
        self._app = app
        self._authorization = (b"authorization", f"Bearer {key}".encode())

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            scope = scope | {"headers": [*scope["headers"], self._authorization]}
        await self._app(scope, receive, send)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port")
    parser.add_argument("--data-dir")
    flags = parser.parse_args()
    os.environ |= {"KB_PORT": flags.port, "KB_DATA_DIR": flags.data_dir, "FASTMCP_ENABLE_RICH_LOGGING": "false"}
    app = compose(choose(installed(APPS), [ENGINE, "mcp"]), ENGINE)
    app.add_middleware(WithKey, key=os.environ["KB_MCP_API_KEY"])
    with listen(Settings.read()) as listener:
        asyncio.run(serve(listener, app))


if __name__ == "__main__":
    main()
