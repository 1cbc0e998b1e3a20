"""Metrics of the store, counted on request."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple, get_args

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from kb.api.fields import JobStatus
from kb.attention import BackupFacts, Facts, attention
from kb.store.protocol import Store, Transaction
from kb.store.rows import Counts, ReplicaState
from kb.telemetry.instruments import OTHER

SIZES: Final = {"files": "Size of the uploaded files.", "backups": "Size of the backups."}


class Signals(NamedTuple):
    """The signals for an operator.

    Args:
        facts: the state of kb and its surroundings.
        sizes: the sizes of folders, by a name in `SIZES`; None if unknown.
        refused: the number of refused requests of each queue.
    """

    facts: Facts
    sizes: Mapping[str, int | None]
    refused: Mapping[str, int]


NO_SIGNALS: Final = Signals(Facts(), dict.fromkeys(SIZES), {})


class Gauges(Collector):
    """The state of the store.

    Args:
        store: the store, counted on each request for metrics.
        doc_types: the known types of documents; types from older versions count together.
        signals: returns the signals for an operator.
    """

    def __init__(
        self,
        store: Store,
        doc_types: Collection[str],
        signals: Callable[[Transaction, Counts], Signals] = lambda _, __: NO_SIGNALS,
    ) -> None:
        self._store = store
        self._signals = signals
        self._doc_types = doc_types

    def describe(self) -> Iterable[Metric]:
        """Return nothing, because metrics are only known on request."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of a snapshot of the store."""
        with self._store.read() as tx:
            counts = tx.counts()
            signals = self._signals(tx, counts)
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
        yield from _of_signals(signals)

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


def _of_signals(signals: Signals) -> Iterable[Metric]:
    """Yield the metrics of the signals; without a value, only the names."""
    facts = signals.facts
    yield from _of_backups(facts.backups)
    free = GaugeMetricFamily("kb_disk_free_bytes", "Free disk space for one of kb's folders.", labels=["folder"])
    for folder, size in facts.free.items():
        free.add_metric([folder], size)
    yield free
    for name, known in signals.sizes.items():
        yield _known(f"kb_{name}_bytes", SIZES[name], known)
    refused = CounterMetricFamily("kb_refused_requests", "Requests refused while others waited.", labels=["queue"])
    for queue, number in signals.refused.items():
        refused.add_metric([queue], number)
    yield refused
    yield GaugeMetricFamily("kb_folders_in_trouble", "Folders that kb does not keep in sync.", len(facts.folders))
    urgent = Counter(item.is_urgent for item in attention(facts))
    needs = {"yes": urgent[True], "no": urgent[False]}
    yield _by("kb_attention", "Number of faults and risks under Attention in `kb status`, by urgency.", "urgent", needs)


def _of_backups(facts: BackupFacts | None) -> Iterable[Metric]:
    """Yield the metrics of backups; without scheduled backups, only the failures have a value."""
    is_on = facts is not None and facts.folder is not None
    good_at, hours, failures = (facts.good_at, facts.hours, facts.failures) if facts else (0, 0, 0)
    yield _known(
        "kb_backup_last_success_timestamp_seconds",
        "Time of the newest backup that this kb could restore; 0 without one.",
        good_at if is_on else None,
    )
    yield _known("kb_backup_interval_seconds", "Time between two backups.", hours * 3600 if is_on else None)
    yield CounterMetricFamily("kb_backup_failures", "Failed backups.", failures)


def _known(name: str, meaning: str, value: float | None) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=[])
    if value is not None:
        family.add_metric([], value)
    return family


def _by(name: str, meaning: str, label: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
