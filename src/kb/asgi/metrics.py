"""`/metrics`, for Prometheus: the metrics of the process and of the other apps in it.

An app with metrics has its own registry as `app.state.registry`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Metric,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kb.asgi.bearer import BearerMiddleware, FirstKeyMiddleware
from kb.asgi.hosts import HostMiddleware
from kb.asgi.key_check import FirstKey, identify_by, identify_engine_key
from kb.asgi.subapps import AppContext
from kb.settings import EngineAccess, Key, listed, reveal

PATH = "/metrics"
CREATED_SERIES = "PROMETHEUS_DISABLE_CREATED_SERIES"
"""The variable that controls whether Prometheus' own library shows the start time of each series."""


class MetricsSettings(EngineAccess):
    """The access to the metrics.

    Args:
        metrics_api_key: the key that a scraper must send, by default the API key. Without either key, anyone who can
            connect can read the metrics.
    """

    metrics_api_key: Key | None = None


def create_app(context: AppContext | None = None) -> Starlette:
    """Return the app that shows the metrics of the other apps in `context`.

    Raises:
        SettingError: a setting is wrong.
    """
    context = context or AppContext()
    settings = MetricsSettings.read(context.environment)
    if CREATED_SERIES not in context.environment:
        disable_created_metrics()  # type: ignore[no-untyped-call] # doubles the series; nobody reads them
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(Registries(context.apps))

    def metrics(request: Request) -> Response:
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": media_type, "Cache-Control": "no-store"})

    app = Starlette(routes=[Route(PATH, metrics)])
    key = reveal(settings.metrics_api_key)
    if identify := identify_by([key], None, "KB_METRICS_API_KEY") if key else identify_engine_key(settings):
        app.add_middleware(BearerMiddleware, identify=identify, prefixes=(PATH,))
    else:
        first_key = FirstKey.of(context.environment)
        app.add_middleware(
            FirstKeyMiddleware,
            is_made=first_key.is_made,
            keyed=Middleware(BearerMiddleware, identify=first_key, prefixes=(PATH,)),
            unkeyed=Middleware(HostMiddleware, names=listed(settings.allowed_hosts)),
        )
    return app


class Registries(Collector):
    """The metrics of several apps as one."""

    def __init__(self, apps: Sequence[Starlette]) -> None:
        self._apps = apps

    def describe(self) -> Iterable[Metric]:
        """Return nothing, because the metrics are known only at collection."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all apps."""
        for app in list(self._apps):
            registry: CollectorRegistry | None = getattr(app.state, "registry", None)
            if registry:
                yield from registry.collect()
