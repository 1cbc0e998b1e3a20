"""How a request that FastAPI refuses is answered, and how errors are documented."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import compile_path

from kb.api.errors import BY_CODE, Invalid
from kb.api.models import Problem
from kb.asgi.problem import ProblemResponse, on_http_exception, problem, problem_body

MAX_ERRORS = 20
"""How many mistakes of one request are named."""

MAX_NAME = 100
"""How much of a field's name is repeated."""

DESCRIPTIONS = {
    400: "The body cannot be parsed.",
    401: "A key is needed.",
    403: "A page of another site may not ask.",
    404: "There is no such thing.",
    409: "What this needs is not the case: the kind or place of the document, the state of the job, or a fresh"
    " Idempotency-Key.",
    410: "History does not go back so far.",
    412: "The document was changed since it was read.",
    413: "The body is too large.",
    415: "Neither JSON nor a form.",
    421: "The server is not known by this name.",
    422: "The request is not valid.",
    429: "Too many unknown keys came from this address.",
    426: "The client is too old for this engine; the detail says what to upgrade.",
    500: "The engine failed; its log says why.",
    503: "The engine is still starting, or has too many searches, connections or files open, or cannot write its disk.",
    507: "The engine's disk is full; nothing was written.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How these statuses are answered, for the API's description."""
    return {status: {"description": DESCRIPTIONS[status], "content": _content(status)} for status in statuses}


def _content(status: int) -> dict[str, Any]:
    examples = [problem_body(error()) for error in BY_CODE.values() if error.status == status]
    return {ProblemResponse.media_type: {"schema": Problem.model_json_schema() | {"examples": examples}}}


def links_to_document(pointer: str) -> dict[str, Any]:
    """The calls that take the document id at this place of a reply, as OpenAPI links."""
    calls = ("get_document", "get_text", "get_file", "change_tags", "patch_note", "list_versions", "delete_document")
    parameters = {"document_id": f"$response.body#{pointer}"}
    return {"links": {call: {"operationId": call, "parameters": parameters} for call in calls}}


async def on_refused(request: Request, error: Exception) -> ProblemResponse:
    """Exception handler for what the framework refuses; a wrong method is told every right one (RFC 9110)."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for this class alone
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error.headers = {"Allow": ", ".join(_methods(request))}
    return await on_http_exception(request, error)


def _methods(request: Request) -> Iterator[str]:
    for template, operations in request.app.openapi()["paths"].items():
        if compile_path(template)[0].match(request.url.path):
            yield from (method.upper() for method in operations)


async def on_invalid(request: Request, error: Exception) -> ProblemResponse:
    """Exception handler: the fields that are wrong, and why; the values themselves are not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it is registered for this class alone
    mistakes = error.errors()
    if mistakes[0]["type"] == "model_attributes_type" and not _says_json(request):
        return problem(Invalid("body: send it as JSON, with 'Content-Type: application/json'"))
    errors = [{"field": _field(mistake["loc"]), "message": _message(mistake)} for mistake in mistakes[:MAX_ERRORS]]
    more = {"more_errors": len(mistakes) - MAX_ERRORS} if len(mistakes) > MAX_ERRORS else {}
    first = errors[0]
    return problem(Invalid(f"{first['field']}: {first['message']}", extra={"errors": errors, **more}))


def _message(mistake: dict[str, Any]) -> str:
    """Return what is wrong, for people."""
    is_long = mistake["type"] == "string_too_long"
    return f"at most {mistake['ctx']['max_length']:,} characters" if is_long else str(mistake["msg"])


def _says_json(request: Request) -> bool:
    """Return whether a request says that its body is JSON; curl says by itself that it is a form."""
    return "json" in request.headers.get("content-type", "")


def _field(location: tuple[str | int, ...]) -> str:
    parts = location[1:] if location and location[0] in ("body", "query", "path", "header") else location
    return ".".join(str(part)[:MAX_NAME] for part in parts) or "body"
