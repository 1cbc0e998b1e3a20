"""The metrics, from the collectors of engine, gateway and web interface."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import NoOpTracer
from prometheus_client import CollectorRegistry

from kb.asgi.request import request_seconds
from kb.gauges import Gauges
from kb.store.rows import VectorSpace
from kb.store.sqlite.store import SqliteStore
from kb.telemetry.instruments import Instruments
from kb_mcp.middleware.call_metering import CallMetrics
from tests.docs.reference import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

INTRO = (
    "`GET /metrics` returns these metrics; [Monitoring](../monitoring.md) explains how to collect them. Times are"
    " in seconds, sizes in bytes. A histogram has `_bucket`, `_count` and `_sum`, a summary `_count` and `_sum`."
    " `route` is the template of an address; status 499 means that the sender left before the answer."
    " `process_*` and `python_*` describe the process."
)
HEAD = ("Metric", "Type", "Labels", "Meaning")
ENGINE_INFO = (
    *("`kb_engine_info`", "info", "`version`, `model`, `precision`, `provider`"),
    "Version of the engine, its model, and where the model runs.",
)
ENDINGS = {"counter": "_total"}


def page() -> str:
    """Return one table for each part of kb."""
    engine, gateway, web = Instruments().registry, CollectorRegistry(), CollectorRegistry()
    request_seconds("kb_http_request_seconds", engine)
    request_seconds("kb_mcp_http_request_seconds", gateway)
    CallMetrics(gateway, NoOpTracer())
    request_seconds("kb_web_http_request_seconds", web)
    return markdown.page(
        *("# Metrics", INTRO),
        *("## Engine", markdown.table(HEAD, [*rows(registered(engine)), *rows(of_the_database()), ENGINE_INFO])),
        *("## MCP gateway", markdown.table(HEAD, rows(registered(gateway)))),
        *("## Web interface", markdown.table(HEAD, rows(registered(web)))),
    )


def registered(registry: CollectorRegistry) -> Iterator[tuple[str, str, Iterable[str], str]]:
    """Yield name, type, labels and meaning of each collector of a registry."""
    collectors: Iterable[Any] = registry._collector_to_names
    for each in collectors:
        yield each._name, each._type, each._labelnames, each._documentation


def of_the_database() -> Iterator[tuple[str, str, Iterable[str], str]]:
    """Yield the same of each metric that is counted when Prometheus asks, over an empty database."""
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "kb.db", VectorSpace(2, "model", "fp32", "digest"))
        families: Iterable[Any] = list(Gauges(store, ()).collect())
        store.close()
    for each in families:
        yield each.name, each.type, each._labelnames, each.documentation


def rows(metrics: Iterable[tuple[str, str, Iterable[str], str]]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each metric, with the name by which Prometheus knows it."""
    for name, kind, labels, meaning in metrics:
        yield markdown.code(name + ENDINGS.get(kind, "")), kind, ", ".join(map(markdown.code, labels)), meaning
