"""Traces, in OpenTelemetry's form, for who asks for them with OTEL_EXPORTER_OTLP_ENDPOINT.

Spans say what was done and how long it took, never what was written or asked: no text, no query, no key, no error's
message. The providers of the libraries that could trace, too, stay unset; they would say more.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

from kb import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

logger = logging.getLogger(__name__)

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
GRACE_SECONDS: Final = 2.0
Kind = Literal["INTERNAL", "SERVER", "CLIENT"]


class NoSpan:
    """Where nothing is traced."""

    trace_id: str | None = None

    def set(self, name: str, value: str | float) -> None:
        """Say more about the work."""

    def rename(self, name: str) -> None:
        """Say what the work turned out to be."""

    def fail(self, why: str) -> None:
        """Say that the work failed, by a name from a short list."""


class NoTraces:
    """Traces nothing, at no cost."""

    def span(
        self,
        name: str,
        kind: Kind = "INTERNAL",
        sender: Mapping[str, str] | None = None,
        attributes: Mapping[str, str | int] | None = None,
    ) -> AbstractContextManager[NoSpan]:
        """A span around a piece of work; `sender` has the headers of who asked for it, if that was another process."""
        return NOTHING

    def headers(self) -> dict[str, str]:
        """What tells a server which span it works for."""
        return {}

    def close(self) -> None:
        """Send what is left."""


NOTHING: Final = nullcontext(NoSpan())


class OtelSpan(NoSpan):
    """A span that is recorded."""

    def __init__(self, span: Any) -> None:  # noqa: ANN401 - OpenTelemetry's, which is not imported here
        self._span = span
        self.trace_id = format(span.get_span_context().trace_id, "032x")

    def set(self, name: str, value: str | float) -> None:
        """Say more about the work."""
        self._span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        """Say what the work turned out to be."""
        self._span.update_name(name)

    def fail(self, why: str) -> None:
        """Say that the work failed, by a name from a short list."""
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", why)
        self._span.set_status(StatusCode.ERROR)


class OtelTraces(NoTraces):
    """Traces to a provider, and from there to a collector."""

    def __init__(self, provider: TracerProvider, exporter: SpanExporter) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._exporter = exporter
        self._tracer = provider.get_tracer("kb", __version__)
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(
        self,
        name: str,
        kind: Kind = "INTERNAL",
        sender: Mapping[str, str] | None = None,
        attributes: Mapping[str, str | int] | None = None,
    ) -> Iterator[NoSpan]:
        """A span around a piece of work; `sender` has the headers of who asked for it, if that was another process."""
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(
            name,
            self._propagator.extract(sender) if sender and "traceparent" in sender else None,
            SpanKind[kind],
            attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as recorded:
            span = OtelSpan(recorded)
            try:
                yield span
            except BaseException as error:
                span.fail(type(error).__name__)
                raise

    def headers(self) -> dict[str, str]:
        """What tells a server which span it works for."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier

    def close(self) -> None:
        """Send what is left; a collector that does not answer is not waited for."""
        giving_up = threading.Timer(GRACE_SECONDS, self._exporter.shutdown)
        giving_up.start()
        self._provider.shutdown()
        giving_up.cancel()


def traces_of(service: str) -> NoTraces:
    """What the environment asks for; where it asks for nothing, nothing is imported.

    The SDK reads the other variables of OpenTelemetry. One that is asked for and not installed is no reason to stop:
    the variable may be set for every program of a machine.
    """
    if not any(map(os.environ.get, ENDPOINTS)):
        return NoTraces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        logger.warning("%s asks for traces, which need 'kb[otel]': %s is not installed", ENDPOINTS[0], error.name)
        return NoTraces()
    name = os.environ.get("OTEL_SERVICE_NAME", service)
    resource = Resource.create({"service.name": name, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return OtelTraces(provider, exporter)
