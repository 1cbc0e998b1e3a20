"""Gives each request an id, a log line, a span and an answer; adds kb's version and checks the client's."""

from __future__ import annotations

import logging
import re
from contextlib import AbstractContextManager
from http import HTTPMethod, HTTPStatus
from time import perf_counter
from typing import Final
from uuid import uuid4

from opentelemetry.trace import Span, SpanKind, Tracer
from prometheus_client import CollectorRegistry, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb import __version__
from kb.api.errors import WrongVersion
from kb.api.version_check import HEADER, client_mismatch
from kb.asgi.error_replies import on_unexpected, problem
from kb.telemetry.logging import REQUEST_ID, log_context
from kb.telemetry.tracing import NO_SPAN, PROPAGATOR, fail, get_trace_id, start_span

logger = logging.getLogger(__name__)

WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
METHODS: Final = frozenset(HTTPMethod)
OTHER: Final = "(other)"
"""The route of requests to unknown addresses."""

POLLED_PATHS: Final = {"/healthz", "/readyz", "/metrics", "/api/v1/folders/seen"}
"""Addresses that programs request every few seconds: logged only at debug level, and not traced."""

CLIENT_CLOSED_REQUEST: Final = 499
"""The status of a request whose client left before the answer."""

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class RequestMiddleware:
    """The outermost middleware of an app.

    Args:
        seconds: the histogram of times; `request_seconds` makes it.
        tracer: makes the span of a request.
        prefix: the prefix of the routes that an included router declares.
    """

    def __init__(self, app: ASGIApp, seconds: Histogram, tracer: Tracer, prefix: str = "") -> None:
        self.app = app
        self.seconds = seconds
        self.tracer = tracer
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with an id for its logs and its sender."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        # An outer app may have set its own route.
        scope = {name: value for name, value in scope.items() if name != "route"}
        headers = Headers(scope=scope)
        request_id = read_request_id(headers)
        method = scope["method"] if scope["method"] in METHODS else OTHER
        with (
            self._span(scope["path"], method, headers) as span,
            log_context(**_ids(request_id, span)),
        ):
            begun, status = perf_counter(), CLIENT_CLOSED_REQUEST
            try:
                status = await self._answer(scope, receive, send, request_id)
            finally:
                self._log(scope, method, status, perf_counter() - begun, span)

    def _span(self, path: str, method: str, headers: Headers) -> AbstractContextManager[Span]:
        if path in POLLED_PATHS:
            return NO_SPAN
        sender = PROPAGATOR.extract(headers) if "traceparent" in headers else None
        return start_span(self.tracer, method, SpanKind.SERVER, sender, {"http.request.method": method})

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> int:
        """Return the status that was sent; unexpected errors of the app also get an answer."""
        status: int | None = None

        async def send_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_id)
        except Exception as error:
            if status is not None:
                raise  # a partial answer cannot be withdrawn: the server closes the connection
            await (await on_unexpected(Request(scope), error))(scope, receive, send_id)
        return status or CLIENT_CLOSED_REQUEST

    def _log(self, scope: Scope, method: str, status: int, seconds: float, span: Span) -> None:
        route = route_template(scope, self.prefix)
        self.seconds.labels(method, route, status).observe(seconds)
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", status)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            fail(span, str(status))
        level = logging.DEBUG if route in POLLED_PATHS and status < HTTPStatus.BAD_REQUEST else logging.INFO
        if logger.isEnabledFor(level):
            fields = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 2)}
            client = {"client": scope["client"][0]} if scope.get("client") else {}
            logger.log(level, "request", extra=fields | client)


def request_seconds(name: str, registry: CollectorRegistry) -> Histogram:
    """Return the histogram of an app's requests, which the middleware needs before the first request."""
    labels = ["method", "route", "status"]
    return Histogram(name, "Time to answer an HTTP request.", labels, registry=registry, buckets=SECONDS)


def read_request_id(headers: Headers) -> str:
    """Return the sender's request id if it is well-formed, or a new one."""
    given = headers.get(REQUEST_ID, "")
    return given if WELL_FORMED.fullmatch(given) else uuid4().hex


def route_template(scope: Scope, prefix: str) -> str:
    """Return the template of the request's route, never its path: templates are few and reveal nothing."""
    path, route = scope["path"], scope.get("route")
    if route is not None:
        return prefix + route.path if path.startswith(prefix) else str(route.path)
    fixed = {getattr(route, "path", None) for route in scope["app"].routes} if "app" in scope else ()
    return path if path in fixed else OTHER


def _ids(request_id: str, span: Span) -> dict[str, str]:
    return {"request_id": request_id} | ({"trace_id": trace_id} if (trace_id := get_trace_id(span)) else {})


class VersionMiddleware:
    """Adds this engine's version to every answer, and refuses clients that are too old to understand it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 426, or pass the request on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = __version__
            await send(message)

        if reason := client_mismatch(Headers(scope=scope).get("user-agent", "")):
            return await problem(WrongVersion(reason))(scope, receive, send_version)
        return await self.app(scope, receive, send_version)
