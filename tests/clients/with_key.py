"""`kb serve` that adds the agents' key to requests that come without one: the conformance suite cannot send any."""

from __future__ import annotations

import os

from tests.support.modified_server import serve_altered


class WithKey:
    """The app, as a client that knows the key meets it."""

    def __init__(self, app, key):
        self._app = app
        self._authorization = (b"authorization", f"Bearer {key}".encode())

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            scope = scope | {"headers": [*scope["headers"], self._authorization]}
        await self._app(scope, receive, send)


if __name__ == "__main__":
    serve_altered(lambda app: app.add_middleware(WithKey, key=os.environ["KB_MCP_API_KEY"]))
