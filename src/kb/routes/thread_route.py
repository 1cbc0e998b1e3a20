"""The class of the routes, which run in threads and limit their requests."""

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
"""The number of items beyond which a list is rendered item by item."""


class ThreadRoute(APIRoute):
    """Runs a plain function in a thread, and renders its result there.

    Requests are limited before FastAPI parses them on the event loop. A route must declare the right that it requires.
    If the database fails during a route that only reads, the route runs again, on the primary.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - FastAPI's own
        needed = [depends.dependency for depends in options.get("dependencies") or ()]
        rights = {dependency.right for dependency in needed if isinstance(dependency, RequiredRight)}
        if not rights:
            raise TypeError(f"The route {path} does not declare the right that it requires: READ, WRITE or ADMIN.")
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
            return await handle(request)  # the replica failed during the first attempt

        return handle_bounded


def threaded(function: Callable[..., Any], status_code: int) -> Callable[..., Any]:
    """Return the function as a coroutine function with the same parameters, which returns a response."""

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
    """Return a reply as JSON. Long lists are rendered item by item, so that other threads can run in between."""
    if not any(isinstance(value, list) and len(value) > MANY for _, value in reply):
        return reply.model_dump_json().encode()
    fields = (b'"%b":%b' % (name.encode(), _rendered_value(value)) for name, value in reply)
    return b"{" + b",".join(fields) + b"}"


def _rendered_value(value: object) -> bytes:
    return b"[" + b",".join(map(to_json, value)) + b"]" if isinstance(value, list) else to_json(value)
