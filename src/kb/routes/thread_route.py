"""How the routes wait for the database and the model."""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

if TYPE_CHECKING:
    from collections.abc import Callable


class ThreadRoute(APIRoute):
    """Runs a plain function in a thread once; FastAPI uses a second one to check its answer, a model already."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - FastAPI's own
        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else threaded(endpoint), **options)


def threaded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a coroutine, with the same parameters."""

    @wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own
        return await run_in_threadpool(function, *args, **kwargs)

    return wrapper
