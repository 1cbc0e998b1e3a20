"""Metrics of the store, counted on request."""

from collections.abc import Collection, Iterable, Mapping
from typing import get_args

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from kb.api.fields import JobStatus
from kb.store.protocol import Store
from kb.store.rows import Counts, ReplicaState
from kb.telemetry.instruments import OTHER


class Gauges(Collector):
    """The state of the store.

    Args:
        store: the store, counted on each request for metrics.
        doc_types: the known types of documents; types from older versions count together.
    """

    def __init__(self, store: Store, doc_types: Collection[str]) -> None:
        self._store = store
        self._doc_types = doc_types

    def describe(self) -> Iterable[Metric]:
        """Return nothing, because metrics are only known on request."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of a snapshot of the store."""
        with self._store.read() as tx:
            counts = tx.counts()
        yield _by("kb_documents", "Documents.", "doc_type", self._by_type(counts))
        jobs = {status: counts.jobs.get(status, 0) for status in get_args(JobStatus)}
        yield _by("kb_jobs", "Jobs by state; queued and running jobs are the queue.", "status", jobs)
        yield GaugeMetricFamily("kb_queue_age_seconds", "Age of the oldest queued job.", counts.queue_age)
        yield GaugeMetricFamily("kb_chunks", "Chunks in the indexes.", counts.chunks)
        yield GaugeMetricFamily("kb_database_bytes", "Size of the database.", counts.size)
        memory = self._store.memory
        yield GaugeMetricFamily("kb_vector_index_bytes", "Size of the vectors in memory.", memory.vectors)
        yield GaugeMetricFamily("kb_full_text_bytes", "Size of the words in memory.", memory.words)
        yield CounterMetricFamily("kb_full_text_faults", "Faults found in the words in memory.", memory.faults)
        yield from _of_replica(self._store.replica)

    def _by_type(self, counts: Counts) -> dict[str, int]:
        known = {name: count for name, count in counts.documents.items() if name in self._doc_types}
        rest = sum(counts.documents.values()) - sum(known.values())
        return known | ({OTHER: rest} if rest else {})


def _of_replica(state: ReplicaState | None) -> Iterable[Metric]:
    """Yield the state of replicas; without replicas both metrics have no values."""
    behind = GaugeMetricFamily(
        "kb_replica_behind_seconds", "Seconds without a replica that is available and up to date.", labels=[]
    )
    reads = CounterMetricFamily(
        "kb_replica_reads", "Reads that a replica may answer, by the server that did.", labels=["at"]
    )
    if state:
        behind.add_metric([], state.behind)
        reads.add_metric(["replica"], state.reads)
        reads.add_metric(["primary"], state.passed_on)
    yield from (behind, reads)


def _by(name: str, meaning: str, label: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
