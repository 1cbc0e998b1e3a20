"""Several ASGI apps as one: each claims paths, keeps its own URLs, and has its lifespan run (requirement S-3)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import SettingError
from kb.asgi.error_replies import on_http_exception

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENTRY_POINTS: Final = "kb.apps"
LATE_SECONDS: Final = 2.0
"""How long a stop waits for an app that is being imported; less than the time for the whole stop."""

START_SECONDS: Final = 30
"""The time that a request waits for an app that is still starting."""


class WatchFolder(Protocol):
    """Watches a folder of this machine from now on."""

    def __call__(self, path: str, *, name: str, delete: bool, both: bool) -> str:
        """Watch a folder, and return the outcome in words. This takes seconds.

        Args:
            path: the folder; `~` is the home folder of the account that kb runs as.
            name: the beginning of the paths of its documents; if empty, the name of the folder.
            delete: whether documents of deleted files go to the bin.
            both: whether kb also writes to the folder.

        Raises:
            Invalid: kb cannot watch it.
        """


class NamedByDigest(Protocol):
    @property
    def digest(self) -> str: ...


class TextModel(Protocol):
    """The engine's model, as `kb.embed.protocol` describes it."""

    @property
    def spec(self) -> NamedByDigest: ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def embed_passages(self, texts: Sequence[str], *, alone: bool) -> NDArray[np.float32]: ...


def no_model() -> None:
    """Without an engine in this process there is no model."""


@dataclass(frozen=True, slots=True)
class AppContext:
    """The context that an app is built from.

    Args:
        environment: the source of settings.
        engine: the engine's app, if it is in this process.
        apps: the started apps of this process; more may be added while it serves.
        watch_folder: watches folders, if the process can.
        url: the address at which the process listens, if it is known.
        model: returns the model of the engine in this process; None while there is none.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    engine: ASGIApp | None = None
    apps: Sequence[Starlette] = ()
    watch_folder: WatchFolder | None = None
    url: str | None = None
    model: Callable[[], TextModel | None] = no_model


@dataclass(frozen=True, slots=True)
class SubApp:
    """An app by name.

    Args:
        factory: "module:function", which makes the app from an `AppContext`; imported only if the app is chosen.
        paths: the path prefixes it answers. They are not stripped: an app has the same URLs alone and composed. An app
            with "/" gets the paths that no other app claims.
        keys: the settings that protect the app if any of them is set. An app without any is open.
        settings: "module:class" of its `EnvSettings`, if they must be checked before anything starts. The check
            imports the module, so it should import little.
    """

    factory: str
    paths: tuple[str, ...]
    keys: tuple[str, ...] = ()
    settings: str = ""

    def check(self, environment: Mapping[str, str]) -> None:
        """Read the settings, and nothing else.

        Raises:
            SettingError: a setting is wrong.
        """
        if self.settings:
            module, _, name = self.settings.partition(":")
            getattr(import_module(module), name).read(environment)

    def build(self, context: AppContext) -> Starlette:
        module, _, function = self.factory.partition(":")
        try:
            factory = getattr(import_module(module), function)
        except ModuleNotFoundError as error:
            raise SettingError(
                f"KB_APPS: the app at {self.paths[0]} needs {error.name}, which is not installed."
                " Reinstall kb-local, or leave this app out"
            ) from None
        app: Starlette = factory(context)
        return app

    def claims(self, path: str) -> bool:
        """Whether `path` belongs to this app."""
        return any(path == prefix or path.startswith(f"{prefix.rstrip('/')}/") for prefix in self.paths)


def installed(builtin: Mapping[str, SubApp]) -> dict[str, SubApp | EntryPoint]:
    """Return the built-in table, plus the apps that other packages register under the entry-point group `kb.apps`.

    The entry point has the name of the app and points to a `SubApp`; it is loaded only if it is chosen.
    """
    return dict(builtin) | {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def choose(table: Mapping[str, SubApp | EntryPoint], names: Sequence[str]) -> dict[str, SubApp]:
    """Return the named rows of `table`, in the table's order.

    Raises:
        SettingError: a name is not in the table, or no name is given.
    """
    unknown = [name for name in names if name not in table]
    if unknown or not names:
        fault = f"unknown app {unknown[0]!r}" if unknown else "the list is empty"
        raise SettingError(f"KB_APPS: {fault}. The apps are {', '.join(table)}")
    return {name: app if isinstance(app, SubApp) else app.load() for name, app in table.items() if name in names}


class RunningApp:
    """One of several apps, available after its start."""

    def __init__(self, row: SubApp) -> None:
        self.row = row
        self._app: asyncio.Future[Starlette | None] = asyncio.get_running_loop().create_future()

    @property
    def has_started(self) -> bool:
        return self._app.done() and self._app.result() is not None

    def decide(self, app: Starlette | None = None) -> None:
        """Give the app to waiting requests, or an error if it has not started."""
        if not self._app.done():
            self._app.set_result(app)

    async def app(self) -> Starlette:
        """Return the app after its start.

        Raises:
            HTTPException: the app has not started.
        """
        if not self._app.done():
            await asyncio.wait([self._app], timeout=START_SECONDS)
        if self._app.done() and (app := self._app.result()):
            return app
        fault = "could not start; see the log" if self._app.done() else "is still starting; try again in a few seconds"
        raise HTTPException(503, f"kb's app at this address {fault}.", headers={"Retry-After": "5"})


def compose(
    chosen: Mapping[str, SubApp],
    engine_name: str,
    environment: Mapping[str, str],
    watch_folder: WatchFolder | None = None,
    url: str | None = None,
) -> Starlette:
    """Return one app that serves the chosen apps, which read their settings from `environment`.

    The app named `engine_name` starts first and serves while the others are imported and start in the table's order;
    requests to those wait. Without the engine, startup waits for all apps. They stop in reverse order. If several apps
    claim a path, the first gets it. The future `state.started` says whether all have started. If an app cannot start,
    leaving the lifespan raises the reason.
    """
    running: list[RunningApp] = []
    apps: list[Starlette] = []

    @asynccontextmanager
    async def lifespan(outer: Starlette) -> AsyncIterator[None]:
        for row in chosen.values():
            row.check(environment)
        rest = sorted((row for name, row in chosen.items() if name != engine_name), key=lambda row: "/" in row.paths)
        engine = chosen[engine_name].build(AppContext(environment)) if engine_name in chosen else None
        late = [RunningApp(row) for row in rest]
        started = outer.state.started = asyncio.get_running_loop().create_future()
        stopping = asyncio.Event()
        async with AsyncExitStack() as stack:
            if engine:
                await stack.enter_async_context(engine.router.lifespan_context(engine))
                apps.append(engine)
                running.append(RunningApp(chosen[engine_name]))
                running[0].decide(engine)
            running.extend(late)
            context = AppContext(environment, engine, apps, watch_folder, url, partial(_model_of, engine))
            keeping = asyncio.create_task(_keep(late, context, apps, started, stopping))
            try:
                if engine or await started:
                    yield
            finally:
                stopping.set()
                await keeping

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        for sub_app in running:
            if sub_app.row.claims(scope["path"]):
                app = await sub_app.app()
                await app(scope, receive, send)
                return
        raise HTTPException(404, f"Nothing is served at {scope['path']}.")

    outer = Starlette(lifespan=lifespan, exception_handlers={HTTPException: on_http_exception})
    outer.mount("", dispatch)
    outer.state.before_stop = lambda: _before_stop(apps)
    return outer


def _model_of(engine: Starlette | None) -> TextModel | None:
    services = getattr(engine.state, "services", None) if engine else None
    return services and services.embedder


async def _keep(
    late: Sequence[RunningApp],
    context: AppContext,
    apps: list[Starlette],
    started: asyncio.Future[bool],
    stopping: asyncio.Event,
) -> None:
    """Build, start and stop the apps in a single task, as their lifespans require."""
    async with AsyncExitStack() as stack:
        try:
            for late_app in late:
                app = await _built(late_app.row, context, stopping)
                if app is None:
                    return
                await stack.enter_async_context(app.router.lifespan_context(app))
                apps.append(app)
                late_app.decide(app)
        finally:
            for late_app in late:
                late_app.decide()
            started.set_result(all(late_app.has_started for late_app in late))
        await stopping.wait()


async def _built(row: SubApp, context: AppContext, stopping: asyncio.Event) -> Starlette | None:
    """Return the app; None if a stop comes first. An import cannot be interrupted, so a slow one is abandoned."""
    loop = asyncio.get_running_loop()
    building: asyncio.Future[Starlette] = loop.create_future()

    def build() -> None:
        try:
            give = partial(building.set_result, row.build(context))
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            give = partial(building.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(give)

    threading.Thread(target=build, name="kb-import", daemon=True).start()
    stop = asyncio.create_task(stopping.wait())
    either: set[asyncio.Future[Any]] = {building, stop}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if stopping.is_set() and not building.done():
        await asyncio.wait({building}, timeout=LATE_SECONDS)
    stop.cancel()
    return None if stopping.is_set() else building.result()


def _before_stop(apps: Iterable[Starlette]) -> None:
    """Make each app answer the requests that wait for an event, so that they end first."""
    for app in apps:
        if before_stop := getattr(app.state, "before_stop", None):
            before_stop()


def mount(app: Starlette, path: str, inner: Starlette) -> None:
    """Let `app` serve `inner` under `path`, and start and stop both together."""
    outer_lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with outer_lifespan(app), inner.router.lifespan_context(inner):
            yield

    app.router.lifespan_context = lifespan
    app.mount(path, inner)
