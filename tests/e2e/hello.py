"""A sub-app such as another package might bring."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from kb.api.errors import SettingError


def create_app(context):
    @asynccontextmanager
    async def lifespan(app):
        app.state.started = True
        yield

    async def hello(request):
        return JSONResponse({"started": request.app.state.started, "engine": context.engine})

    return Starlette(routes=[Route("/hello/world", hello)], lifespan=lifespan)


may_start = threading.Event()


def create_slow_app(context):
    may_start.wait()
    return create_app(context)


def create_broken_app(context):
    raise SettingError("KB_HELLO: it is wrong")
