"""What the engine is told of the request that a call is made for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanKind

from kb.telemetry.logging import LOG_CONTEXT, REQUEST_ID
from kb.telemetry.tracing import PROPAGATOR, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.trace import Tracer

    from kb.client.client import Around


def outgoing(tracer: Tracer) -> Around:
    """What `EngineClient` puts around its calls, so that the engine's lines and spans belong to the same request."""

    @contextmanager
    def around(method: str, path: str) -> Iterator[dict[str, str]]:
        attributes = {"http.request.method": method, "url.path": path}
        with span_of(tracer, method, SpanKind.CLIENT, attributes=attributes):
            headers: dict[str, str] = {}
            if request_id := LOG_CONTEXT.get().get("request_id"):
                headers[REQUEST_ID] = request_id
            PROPAGATOR.inject(headers)
            yield headers

    return around
