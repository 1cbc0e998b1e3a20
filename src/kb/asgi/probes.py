"""Liveness and readiness, for a supervisor of the process (requirement E-9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send


def probes(ready: Callable[[Request], Awaitable[bool]], otherwise: str = "not ready") -> list[Route]:
    """Return the routes `/healthz`, which answers while the process lives, and `/readyz`, which reports `ready`.

    `otherwise` is the text of a process that is not ready.
    """

    async def healthz(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def readyz(request: Request) -> PlainTextResponse:
        if await ready(request):
            return PlainTextResponse("ready")
        return PlainTextResponse(otherwise, status_code=503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class ProbesFirst:
    """Answers the probes before any other layer of an app, such as a check of the host's name.

    Supervisors often use a temporary address that no setting contains.
    """

    def __init__(self, app: ASGIApp, ready: Callable[[Request], Awaitable[bool]], otherwise: str = "not ready") -> None:
        self._app = app
        routes = probes(ready, otherwise)
        self._probes = Router(routes)
        self._paths = {route.path for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_probe = scope["type"] == "http" and scope["path"].removeprefix(scope.get("root_path", "")) in self._paths
        await (self._probes if is_probe else self._app)(scope, receive, send)
