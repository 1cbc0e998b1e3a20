"""The engine's observable work: times and counts for Prometheus, spans for traces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Literal, get_args

from opentelemetry.trace import NoOpTracer, Span, Tracer
from prometheus_client import CollectorRegistry, Counter, Histogram, Summary

from kb.telemetry.last_hour import LastHour
from kb.telemetry.tracing import start_span

SearchStep = Literal["embed", "full_text", "vectors", "fetch"]
IngestStep = Literal["read", "embed", "write"]
Outcome = Literal["done", "failed", "gave_up", "dropped"]
"""The outcome of a job: its document exists, its content was unreadable, the engine failed too often, or the job was
dropped during its work.
"""

OTHER: Final = "other"
"""The label of unknown file types."""

SEARCH_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
BATCH_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
BATCH_TEXTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
INGEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Instruments:
    """The engine's instruments.

    Args:
        tracer: receives the spans.
        doc_types: the possible types of documents.

    Attributes:
        searches: the searches of the last hour.
        ingestions: the ingestions of the last hour.
    """

    def __init__(self, tracer: Tracer | None = None, doc_types: Collection[str] = ()) -> None:
        self.tracer = tracer or NoOpTracer()
        self.registry = CollectorRegistry()
        self._doc_types = doc_types
        search = self._histogram("kb_search_step_seconds", "Time for each step of a search.", SEARCH_SECONDS, "step")
        ingest = self._histogram("kb_ingest_step_seconds", "Time for each step of ingestion.", INGEST_SECONDS, "step")
        self._search = {step: search.labels(step) for step in get_args(SearchStep)}
        self._ingest = {step: ingest.labels(step) for step in get_args(IngestStep)}
        self._batch_seconds = self._histogram(
            "kb_embedding_batch_seconds",
            "Time for a batch in the model; several batches may run at once.",
            BATCH_SECONDS,
        )
        self._batch_texts = self._histogram("kb_embedding_batch_texts", "Texts in a model's batch.", BATCH_TEXTS)
        self._recall = Summary(
            "kb_vector_recall", "Share of the ten nearest vectors that a search finds.", registry=self.registry
        )
        self._ingested = Counter("kb_ingested", "Jobs that ended.", ["doc_type", "outcome"], registry=self.registry)
        self.searches, self.ingestions = LastHour(), LastHour()
        self._worker_errors = Counter("kb_worker_errors", "Failures of the worker itself.", registry=self.registry)

    def search(self, step: SearchStep) -> Step:
        """Return a context manager around a step of a search."""
        return Step(start_span(self.tracer, f"search {step}"), self._search[step])

    def ingest(self, step: IngestStep, **attributes: int) -> Step:
        """Return a context manager around a step of ingestion; `attributes` go to the span."""
        about = {f"kb.{name}": value for name, value in attributes.items()}
        return Step(start_span(self.tracer, f"ingest {step}", attributes=about), self._ingest[step])

    def recalled(self, share: float) -> None:
        """Record the share of the nearest chunks that a search found."""
        self._recall.observe(share)

    def ingestion(self, jobs: int) -> AbstractContextManager[Span]:
        """Return a span around the ingestion of a number of jobs at once."""
        return start_span(self.tracer, "ingest", attributes={"kb.jobs": jobs})

    def embedded(self, texts: int, seconds: float) -> None:
        """Record a batch of texts that the model embedded."""
        self._batch_texts.observe(texts)
        self._batch_seconds.observe(seconds)

    def ingested(self, doc_type: str, outcome: Outcome, seconds: float | None = None) -> None:
        """Record the end of a job, with the seconds since its start."""
        if seconds is not None:
            self.ingestions.add(seconds)
        self._ingested.labels(doc_type if doc_type in self._doc_types else OTHER, outcome).inc()

    def worker_failed(self) -> None:
        """Record a failure of the worker outside of any job."""
        self._worker_errors.inc()

    def _histogram(self, name: str, meaning: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, meaning, labels, registry=self.registry, buckets=buckets)


class Step:
    """A piece of work with a span and a duration: a context manager at half the cost of a generator."""

    __slots__ = ("_begun", "_seconds", "_span")

    def __init__(self, span: AbstractContextManager[Span], seconds: Histogram) -> None:
        self._span = span
        self._seconds = seconds

    def __enter__(self) -> None:
        self._span.__enter__()
        self._begun = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds.observe(perf_counter() - self._begun)
        self._span.__exit__(kind, error, trace)


class FollowingPool(ThreadPoolExecutor):
    """A pool whose threads inherit the context of the request they work for, including its span and log fields."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:  # noqa: ANN401 - as in the base class
        """Schedule a call in a copy of the caller's context."""
        return super().submit(copy_context().run, function, *args, **options)
