"""Errors as application/problem+json (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from html import escape
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Scope

from kb.api.errors import (
    Busy,
    DiskFault,
    DiskFull,
    FilesUnavailable,
    KbError,
    Later,
    ModelChanged,
    NoConnection,
    Overloaded,
    StoreUnavailable,
    TooLarge,
    TooLong,
    Unconfirmed,
)
from kb.asgi.security_headers import POLICY

logger = logging.getLogger(__name__)


CODES = {400: "bad-request", 404: "no-such-route", 405: "method-not-allowed", 413: TooLarge.code}
"""The codes of the framework's own errors. An unknown address is not the same as an unknown document."""


class ProblemResponse(JSONResponse):
    media_type = "application/problem+json"


RETRY_SECONDS: dict[type[KbError], int] = {
    Overloaded: 5,
    ModelChanged: 1,
    StoreUnavailable: 5,
    NoConnection: 5,
    Unconfirmed: 5,
    FilesUnavailable: 5,
    DiskFull: 60,
}
"""The seconds to wait before the next attempt, for errors that say so."""


def problem(error: KbError, headers: Mapping[str, str] | None = None) -> ProblemResponse:
    seconds = error.retry_after if isinstance(error, Later) else RETRY_SECONDS.get(type(error))
    retry = {"Retry-After": str(seconds)} if seconds else {}
    return ProblemResponse(problem_body(error), status_code=error.status, headers={**retry, **(headers or {})})


PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<h1>{title}</h1>
<p>{detail}</p>
"""


def refusal(scope: Scope, error: KbError) -> Response:
    """Return the response to a request that reaches no app: a page for a browser, a problem for a program."""
    if "text/html" not in Headers(scope=scope).get("accept", ""):
        return problem(error)
    page = PAGE.format(title=escape(HTTPStatus(error.status).phrase), detail=escape(error.detail))
    return HTMLResponse(page, error.status, {POLICY: "default-src 'none'", "Cache-Control": "no-store"})


def problem_body(error: KbError) -> dict[str, object]:
    """Return the body that reports `error`."""
    return _body(error.status, error.code, error.detail) | error.extra


async def on_kb_error(_: Request, error: Exception) -> ProblemResponse:
    """Handle the errors of `kb.api.errors`."""
    assert isinstance(error, KbError)  # noqa: S101 - it is registered for this class alone
    if isinstance(error, (Busy, TooLong)):
        logger.warning("request refused: %s", error.code)
    elif isinstance(error, (DiskFull, DiskFault, FilesUnavailable, Overloaded, StoreUnavailable)):
        logger.error("request failed: %s", error.detail)
    elif error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("request failed", exc_info=error)
    return problem(error)


async def on_http_exception(_: Request, error: Exception) -> ProblemResponse:
    """Handle the framework's own errors: unknown paths, wrong methods, broken bodies."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for this class alone
    code = CODES.get(error.status_code, f"http-{error.status_code}")
    body = _body(error.status_code, code, str(error.detail))
    return ProblemResponse(body, status_code=error.status_code, headers=error.headers)


async def on_disconnect(_: Request, __: Exception) -> Response:
    """Handle a client that left while it was sending: nobody reads the answer, and it is not an error."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def on_os_error(request: Request, error: Exception) -> ProblemResponse:
    """Handle errors of the operating system: a full or faulty disk is not kb's fault."""
    if fault := DiskFault.of(error):
        return await on_kb_error(request, fault)
    for kind in (DiskFull, Overloaded):
        if kind.is_why(error):
            return await on_kb_error(request, kind())
    return await on_unexpected(request, error)


async def on_unexpected(_: Request, error: Exception) -> ProblemResponse:
    """Handle all other errors: the caller learns no internal details, and the log gets all of them."""
    logger.error("request failed", exc_info=error)
    return problem(KbError())


def _body(status: int, code: str, detail: str) -> dict[str, object]:
    return {
        "type": f"urn:kb:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
