"""What the engine lets be seen of its work: times and counts for Prometheus, spans for a trace."""

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
"""What became of a job: its document is there, its content could not be read, the engine failed too often, or someone
dropped it meanwhile.
"""

OTHER: Final = "other"
"""The type of files whose type is not known."""

SEARCH_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
BATCH_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
BATCH_TEXTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
INGEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Instruments:
    """The engine's instruments.

    Args:
        tracer: where spans go.
        doc_types: the types that documents may have.

    Attributes:
        searches, ingestions: those of the last hour.
    """

    def __init__(self, tracer: Tracer | None = None, doc_types: Collection[str] = ()) -> None:
        self.tracer = tracer or NoOpTracer()
        self.registry = CollectorRegistry()
        self._doc_types = doc_types
        search = self._histogram("kb_search_step_seconds", "Time of a step of a search.", SEARCH_SECONDS, "step")
        ingest = self._histogram("kb_ingest_step_seconds", "Time of a step of ingestion.", INGEST_SECONDS, "step")
        self._search = {step: search.labels(step) for step in get_args(SearchStep)}
        self._ingest = {step: ingest.labels(step) for step in get_args(IngestStep)}
        self._batch_seconds = self._histogram(
            "kb_embedding_batch_seconds",
            "Time of a model's batch, of which there may be several at once.",
            BATCH_SECONDS,
        )
        self._batch_texts = self._histogram("kb_embedding_batch_texts", "Texts in a model's batch.", BATCH_TEXTS)
        self._recall = Summary("kb_vector_recall", "Share of the nearest ten that was found.", registry=self.registry)
        self._ingested = Counter("kb_ingested", "Jobs that ended.", ["doc_type", "outcome"], registry=self.registry)
        self.searches, self.ingestions = LastHour(), LastHour()
        self._worker_errors = Counter("kb_worker_errors", "Failures of the worker itself.", registry=self.registry)

    def search(self, step: SearchStep) -> Step:
        """Around a step of a search."""
        return Step(start_span(self.tracer, f"search {step}"), self._search[step])

    def ingest(self, step: IngestStep, **attributes: int) -> Step:
        """Around a step of ingestion; `attributes` are the span's."""
        about = {f"kb.{name}": value for name, value in attributes.items()}
        return Step(start_span(self.tracer, f"ingest {step}", attributes=about), self._ingest[step])

    def recalled(self, share: float) -> None:
        """So large a share of the nearest chunks was found."""
        self._recall.observe(share)

    def ingestion(self, jobs: int) -> AbstractContextManager[Span]:
        """Around the ingestion of so many jobs at once."""
        return start_span(self.tracer, "ingest", attributes={"kb.jobs": jobs})

    def embedded(self, texts: int, seconds: float) -> None:
        """The model ran a batch of so many texts."""
        self._batch_texts.observe(texts)
        self._batch_seconds.observe(seconds)

    def ingested(self, doc_type: str, outcome: Outcome, seconds: float | None = None) -> None:
        """A job ended, so many seconds after it was begun."""
        if seconds is not None:
            self.ingestions.add(seconds)
        self._ingested.labels(doc_type if doc_type in self._doc_types else OTHER, outcome).inc()

    def worker_failed(self) -> None:
        """The worker failed at something that is no job's fault."""
        self._worker_errors.inc()

    def _histogram(self, name: str, meaning: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, meaning, labels, registry=self.registry, buckets=buckets)


class Step:
    """A piece of work with a span and a time: a context manager that costs half of what a generator would."""

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
    """A pool whose threads belong to the request that they work for: its spans, its lines in the log."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:  # noqa: ANN401 - as in the base class
        """Schedule a call in a copy of the caller's context."""
        return super().submit(copy_context().run, function, *args, **options)
