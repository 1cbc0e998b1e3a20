"""Replies to requests that FastAPI refuses, and the description of all error replies in OpenAPI."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import compile_path

from kb.api.errors import BY_CODE, Invalid
from kb.asgi.error_replies import ProblemResponse, on_http_exception, problem, problem_body

MAX_ERRORS = 20
"""The number of faulty fields that a response lists."""

MAX_NAME = 100
"""The length to which a response cuts the name of a field."""

DESCRIPTIONS = {
    400: "The engine cannot parse the body.",
    401: "The key is missing or wrong.",
    403: "The key does not have the right for this, or another site's page made the call.",
    404: "It does not exist, or the key may not see it.",
    409: "The current state does not allow this call; `type` names the reason.",
    410: "The history does not go back that far.",
    412: "The document has changed since you read it.",
    413: "The body is larger than the engine accepts.",
    415: "The body is neither JSON nor a form.",
    421: "The host name of the request is not allowed.",
    422: "The request is not valid.",
    429: "This address sent too many wrong keys.",
    426: "Client and engine are not compatible; `detail` says which to upgrade.",
    500: "The engine failed; its log shows the cause.",
    503: "The engine is starting or overloaded, or cannot write to its disk.",
    507: "The engine's disk is full; nothing was written.",
}


class Problem(BaseModel):
    """An error (RFC 9457). `errors` lists up to 20 wrong fields, and `more_errors` counts the others."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None
    more_errors: int | None = None


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses with these statuses, for the OpenAPI description."""
    return {status: {"description": DESCRIPTIONS[status], "content": _content(status)} for status in statuses}


def _content(status: int) -> dict[str, Any]:
    examples = [problem_body(error()) for error in BY_CODE.values() if error.status == status]
    return {ProblemResponse.media_type: {"schema": Problem.model_json_schema() | {"examples": examples}}}


def links_to_document(pointer: str) -> dict[str, Any]:
    """Return the calls that take the document id at this place of a response, as OpenAPI links."""
    calls = ("get_document", "get_text", "get_file", "change_tags", "patch_note", "list_versions", "delete_document")
    parameters = {"document_id": f"$response.body#{pointer}"}
    return {"links": {call: {"operationId": call, "parameters": parameters} for call in calls}}


async def on_refused(request: Request, error: Exception) -> ProblemResponse:
    """Handle a request that the framework refuses; for a wrong method, list the allowed ones (RFC 9110)."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for this class alone
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error.headers = {"Allow": ", ".join(_methods(request))}
    return await on_http_exception(request, error)


def _methods(request: Request) -> Iterator[str]:
    for template, operations in request.app.openapi()["paths"].items():
        if compile_path(template)[0].match(request.url.path):
            yield from (method.upper() for method in operations)


async def on_invalid(request: Request, error: Exception) -> ProblemResponse:
    """Handle an invalid request: list the wrong fields and the reasons, without the values."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it is registered for this class alone
    mistakes = error.errors()
    if mistakes[0]["type"] == "model_attributes_type" and not _says_json(request):
        return problem(Invalid("body: send it as JSON, with 'Content-Type: application/json'."))
    errors = [{"field": _field(mistake["loc"]), "message": _message(mistake)} for mistake in mistakes[:MAX_ERRORS]]
    more = {"more_errors": len(mistakes) - MAX_ERRORS} if len(mistakes) > MAX_ERRORS else {}
    first = errors[0]
    return problem(Invalid(f"{first['field']}: {first['message']}", extra={"errors": errors, **more}))


def _message(mistake: dict[str, Any]) -> str:
    """Return the fault in words for people."""
    if mistake["type"] == "string_too_short" and mistake["ctx"]["min_length"] == 1:
        return "is empty. Enter at least one word."
    if mistake["type"] == "string_too_long":
        return f"at most {mistake['ctx']['max_length']:,} characters"
    return str(mistake["msg"]).removeprefix("Value error, ")


def _says_json(request: Request) -> bool:
    """Return whether a request declares its body as JSON; curl declares a form by default."""
    return "json" in request.headers.get("content-type", "")


def _field(location: tuple[str | int, ...]) -> str:
    parts = location[1:] if location and location[0] in ("body", "query", "path", "header") else location
    return ".".join(str(part)[:MAX_NAME] for part in parts) or "body"
