"""Several ASGI apps as one: each claims paths, keeps its own URLs, and has its lifespan run (requirement S-3)."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from kb.api.errors import SettingError
from kb.asgi.problem import on_http_exception

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

ENTRY_POINTS = "kb.apps"


@dataclass(frozen=True, slots=True)
class Context:
    """What an app is built from.

    Args:
        environment: what settings are read from.
        engine: the engine's app, if it is in this process.
        apps: the apps of this process that have started; more may be added while it serves.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    engine: ASGIApp | None = None
    apps: Sequence[Starlette] = ()


@dataclass(frozen=True, slots=True)
class SubApp:
    """An app by name.

    Args:
        factory: "module:function", which makes the app of a `Context`; it is imported only when the app is chosen.
        paths: the path prefixes it answers. They are not stripped: an app has the same URLs alone and composed. One
            with "/" gets what no other claims.
        keys: the settings of which any that is set keeps strangers out. An app that names none is open.
    """

    factory: str
    paths: tuple[str, ...]
    keys: tuple[str, ...] = ()

    def build(self, context: Context) -> Starlette:
        """Return the app itself."""
        module, _, function = self.factory.partition(":")
        try:
            factory = getattr(import_module(module), function)
        except ModuleNotFoundError as error:
            raise SettingError(f"KB_APPS: {self.factory} needs {error.name}, which is not installed") from None
        app: Starlette = factory(context)
        return app

    def claims(self, path: str) -> bool:
        """Return whether `path` is one of this app's."""
        return any(path == prefix or path.startswith(f"{prefix.rstrip('/')}/") for prefix in self.paths)


def installed(builtin: Mapping[str, SubApp]) -> dict[str, SubApp | EntryPoint]:
    """Return the built-in table, and what other packages add under the entry-point group `kb.apps`.

    Such an entry point is named like the app and points to a `SubApp`; it is loaded when it is chosen.
    """
    return dict(builtin) | {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def choose(table: Mapping[str, SubApp | EntryPoint], names: Sequence[str]) -> dict[str, SubApp]:
    """Return the named rows of `table`, in the table's order.

    Raises:
        SettingError: a name is not in the table, or there are none.
    """
    unknown = [name for name in names if name not in table]
    if unknown or not names:
        what = f"there is no app {unknown[0]!r}" if unknown else "no app is named"
        raise SettingError(f"KB_APPS: {what}; the apps are {', '.join(table)}")
    return {name: app if isinstance(app, SubApp) else app.load() for name, app in table.items() if name in names}


def compose(chosen: Mapping[str, SubApp], engine_name: str, environment: Mapping[str, str]) -> Starlette:
    """One app that serves the chosen ones, which read their settings from `environment`.

    The one named `engine_name` starts first, then the others in the table's order; they stop in the reverse. A path
    that several claim goes to the first.
    """
    rows: list[SubApp] = []
    apps: list[Starlette] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:

            async def start(row: SubApp, app: Starlette) -> None:
                await stack.enter_async_context(app.router.lifespan_context(app))
                rows.append(row)
                apps.append(app)

            engine = chosen[engine_name].build(Context(environment)) if engine_name in chosen else None
            rest = [row for name, row in chosen.items() if name != engine_name]
            rest.sort(key=lambda row: "/" in row.paths)
            context = Context(environment, engine, apps)
            # The others are imported and built while the engine loads its model: start-up is mostly imports.
            building = [asyncio.create_task(asyncio.to_thread(row.build, context)) for row in rest]
            stack.push_async_callback(_await_all, building)
            if engine:
                await start(chosen[engine_name], engine)
            for row, built in zip(rest, building, strict=True):
                await start(row, await built)
            yield

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        for row, app in zip(rows, apps, strict=True):
            if row.claims(scope["path"]):
                await app(scope, receive, send)
                return
        raise HTTPException(404, f"Nothing is served at {scope['path']}.")

    outer = Starlette(lifespan=lifespan, exception_handlers={HTTPException: on_http_exception})
    outer.mount("", dispatch)
    outer.state.before_stop = lambda: _before_stop(apps)
    return outer


def _before_stop(apps: Iterable[Starlette]) -> None:
    """Have each app answer the requests that wait for something to happen, for those stop first."""
    for app in apps:
        if before_stop := getattr(app.state, "before_stop", None):
            before_stop()


def mount(app: Starlette, path: str, inner: Starlette) -> None:
    """Let `app` serve `inner` under `path`, and start and stop it with itself."""
    outer_lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with outer_lifespan(app), inner.router.lifespan_context(inner):
            yield

    app.router.lifespan_context = lifespan
    app.mount(path, inner)


async def _await_all(tasks: Iterable[asyncio.Task[Starlette]]) -> None:
    """Wait for what cannot be cancelled, and hear its errors, though another one may be the one that is told."""
    await asyncio.gather(*tasks, return_exceptions=True)
