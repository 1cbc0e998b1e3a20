"""`/metrics`, for Prometheus: what the apps beside this one count, and what the process takes.

An app that counts keeps a registry of its own as `app.state.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from kb.api.settings import EnvSettings, Key, listed, reveal
from kb.asgi.bearer import BearerMiddleware, Keys
from kb.asgi.hosts import HostMiddleware

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prometheus_client import Metric
    from starlette.requests import Request

PATH = "/metrics"


class Settings(EnvSettings):
    """Who may read the metrics.

    Args:
        metrics_api_key: the key that a scraper must send; that of the engine if there is none.
        api_key: the engine's key; without either anyone may read who can connect.
        allowed_hosts: names besides localhost that it may be called by without a key.
    """

    metrics_api_key: Key | None = None
    api_key: Key | None = None
    allowed_hosts: str = ""


def create_app(settings: Settings | None = None, *, beside: Sequence[Starlette] = ()) -> Starlette:
    """The app.

    Args:
        settings: those of this process, if not given.
        beside: the apps in this process; they may be added while it serves.
    """
    settings = settings or Settings.read()
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(Registries(beside))

    def metrics(request: Request) -> Response:
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": media_type, "Cache-Control": "no-store"})

    app = Starlette(routes=[Route(PATH, metrics)])
    if key := reveal(settings.metrics_api_key) or reveal(settings.api_key):
        app.add_middleware(BearerMiddleware, name_of=Keys([key]).name_of, prefixes=(PATH,))
    else:
        app.add_middleware(HostMiddleware, names=listed(settings.allowed_hosts))
    return app


class Registries(Collector):
    """The metrics of several apps as one."""

    def __init__(self, apps: Sequence[Starlette]) -> None:
        self._apps = apps

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there is shows when it is asked for."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Everything that any of the apps counts."""
        for app in list(self._apps):
            registry: CollectorRegistry | None = getattr(app.state, "registry", None)
            if registry:
                yield from registry.collect()
