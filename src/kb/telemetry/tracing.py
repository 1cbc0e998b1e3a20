"""OpenTelemetry traces, enabled with OTEL_EXPORTER_OTLP_ENDPOINT.

Spans record operations and their duration, never content: no text, query, key or error message. The global provider
stays unset, because libraries with their own tracing would otherwise record more.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import INVALID_SPAN, NoOpTracer, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from kb import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

logger = logging.getLogger(__name__)

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
GRACE_SECONDS: Final = 2.0
NO_SPAN: Final = nullcontext(INVALID_SPAN)
PROPAGATOR: Final = TraceContextTextMapPropagator()


def start_tracing(service: str) -> tuple[Tracer, Callable[[], None]]:
    """Return the tracer that the environment configures, and a function that sends the rest and stops it.

    The SDK is imported only on demand, and reads the other variables of OpenTelemetry. If it is requested but not
    installed, kb still starts, because the variable may apply to every program on the machine.
    """
    nothing = NoOpTracer(), lambda: None
    if not any(map(os.environ.get, ENDPOINTS)):
        return nothing
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        logger.warning("%s is set, but traces need 'kb-local[otel]': %s is not installed", ENDPOINTS[0], error.name)
        return nothing
    name = os.environ.get("OTEL_SERVICE_NAME", service)
    resource = Resource.create({"service.name": name, "service.version": __version__})
    provider, exporter = TracerProvider(resource=resource, shutdown_on_exit=False), OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider.get_tracer("kb", __version__), partial(_stop, provider, exporter)


def _stop(provider: TracerProvider, exporter: SpanExporter) -> None:
    """Send the remaining spans, but give up after `GRACE_SECONDS` if the collector does not answer."""
    giving_up = threading.Timer(GRACE_SECONDS, exporter.shutdown)
    giving_up.start()
    provider.shutdown()
    giving_up.cancel()


def start_span(
    tracer: Tracer,
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    parent: Context | None = None,
    attributes: Mapping[str, str | int] | None = None,
) -> AbstractContextManager[Span]:
    """Return a span around a piece of work; it records only the type of an error."""
    # OpenTelemetry's own no-op takes 4 µs, and a search has six spans.
    return NO_SPAN if isinstance(tracer, NoOpTracer) else _recorded(tracer, name, kind, parent, attributes)


@contextmanager
def _recorded(
    tracer: Tracer, name: str, kind: SpanKind, parent: Context | None, attributes: Mapping[str, str | int] | None
) -> Iterator[Span]:
    with tracer.start_as_current_span(
        name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            fail(span, type(error).__name__)
            raise


def fail(span: Span, error_type: str) -> None:
    """Mark a span as failed, with an error type from a short list."""
    span.set_attribute("error.type", error_type)
    span.set_status(StatusCode.ERROR)


def get_trace_id(span: Span) -> str | None:
    """Return the id of the span's trace; None if it is not recorded."""
    context = span.get_span_context()
    return format(context.trace_id, "032x") if context.is_valid else None
