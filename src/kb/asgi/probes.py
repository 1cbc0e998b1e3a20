"""Alive and ready, for whoever supervises the process (requirement E-9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request


def probes(ready: Callable[[Request], Awaitable[bool]]) -> list[Route]:
    """`/healthz` answers while the process lives, `/readyz` when `ready` says so; neither tells more."""

    async def healthz(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def readyz(request: Request) -> PlainTextResponse:
        if await ready(request):
            return PlainTextResponse("ready")
        return PlainTextResponse("not ready", status_code=503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
