"""How a request that FastAPI refuses is answered, and how errors are documented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError

from kb.asgi.problem import ProblemResponse, problem
from kb.contract.errors import Invalid
from kb.contract.models import Problem

if TYPE_CHECKING:
    from starlette.requests import Request

PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": text, "content": {ProblemResponse.media_type: {}}}
    for code, text in {
        400: "The body cannot be parsed.",
        401: "A key is needed.",
        404: "There is nothing here.",
        413: "The body is too large.",
        422: "The request is not valid.",
        503: "The engine is still starting.",
    }.items()
}


async def on_invalid(_: Request, error: Exception) -> ProblemResponse:
    """Exception handler: each field that is wrong, and why; the values themselves are not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it is registered for this class alone
    errors = [{"field": _field(each["loc"]), "message": str(each["msg"])} for each in error.errors()]
    first = errors[0]
    return problem(Invalid(f"{first['field']}: {first['message']}", extra={"errors": errors}))


def _field(location: tuple[str | int, ...]) -> str:
    parts = location[1:] if location and location[0] in ("body", "query", "path", "header") else location
    return ".".join(map(str, parts)) or "body"
