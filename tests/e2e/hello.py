"""A sub-app such as another package might bring."""

from __future__ import annotations

from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


def create_app(context):
    @asynccontextmanager
    async def lifespan(app):
        app.state.started = True
        yield

    async def hello(request):
        return JSONResponse({"started": request.app.state.started, "engine": context.engine})

    return Starlette(routes=[Route("/hello/world", hello)], lifespan=lifespan)
