"""How the routes take a request, and wait for the database and the model."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from kb.api.errors import NoConnection, StoreUnavailable
from kb.routes.dependencies import AT_PRIMARY, RequiredRight
from kb.routes.request_limits import JSON_LIMITS, check_parameters, too_many_values

MANY = 100
"""A list of more items is long."""


class ThreadRoute(APIRoute):
    """Runs a plain function in a thread, and renders there the model that it returns.

    What FastAPI parses and checks on the event loop is bounded before. A route that does not say which right it needs
    is none. One that only reads is tried again, at the primary, if the database breaks off.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - FastAPI's own
        needed = [depends.dependency for depends in options.get("dependencies") or ()]
        rights = {dependency.right for dependency in needed if isinstance(dependency, RequiredRight)}
        if not rights:
            raise TypeError(f"The route {path} does not say which right it needs: READ, WRITE or ADMIN.")
        if not iscoroutinefunction(endpoint):
            endpoint = threaded(endpoint, options.get("status_code") or 200)
        self._reads_only = rights == {"read"}
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_bounded(request: Request) -> Response:
            check_parameters(request.scope["query_string"])
            if self.body_field and not await JSON_LIMITS.allow(await request.body()):
                raise too_many_values()
            try:
                return await handle(request)
            except StoreUnavailable as error:
                if not self._reads_only or isinstance(error, NoConnection):
                    raise
            request.scope[AT_PRIMARY] = True
            return await handle(request)  # what it read had broken off

        return handle_bounded


def threaded(function: Callable[..., Any], status_code: int) -> Callable[..., Any]:
    """Return the function as a coroutine function, with the same parameters, that answers a response."""

    @wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - the function's own
        return await run_in_threadpool(responded, *args, **kwargs)

    def responded(*args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - the function's own
        reply = function(*args, **kwargs)
        if isinstance(reply, Response):
            return reply
        return Response(rendered(reply), status_code, media_type="application/json")

    return wrapper


def rendered(reply: BaseModel) -> bytes:
    """Return a reply as JSON; if it is long, its lists item by item, between which other threads go on."""
    if not any(isinstance(value, list) and len(value) > MANY for _, value in reply):
        return reply.model_dump_json().encode()
    fields = (b'"%b":%b' % (name.encode(), _rendered_value(value)) for name, value in reply)
    return b"{" + b",".join(fields) + b"}"


def _rendered_value(value: object) -> bytes:
    return b"[" + b",".join(map(to_json, value)) + b"]" if isinstance(value, list) else to_json(value)
