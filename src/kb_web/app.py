"""The web interface as an ASGI app, with all its routes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import PathLike, StaticFiles
from starlette.types import ASGIApp, Scope

from kb.api.errors import KbError, SettingError
from kb.asgi.bearer import FirstKeyMiddleware
from kb.asgi.body_limits import BodyLimitMiddleware
from kb.asgi.error_replies import on_http_exception
from kb.asgi.hosts import HostMiddleware, OriginMiddleware
from kb.asgi.request import RequestMiddleware, request_seconds
from kb.asgi.subapps import AppContext, WatchFolder
from kb.settings import Settings, listed
from kb.telemetry.tracing import start_tracing
from kb_web.forms import BYTES_OF_CHARACTER

if TYPE_CHECKING:
    from kb_web.sessions import Visit

    Page = Callable[[Request, Visit], Awaitable[Response]]

SMALL_BODY: Final = 1 << 20
SIGN_IN_BODY: Final = 64 << 10
"""Maximum size in bytes of a form from a visitor without a session, unless it brings back what a form had."""

ENCODED_BODY: Final = 256 << 10
"""Maximum size of a form that is not multipart: decoding it blocks the event loop."""

NEEDED: Final = ("jinja2", "markdown_it", "mdit_py_plugins")
ABSENT: Final = (
    "The web interface is not installed. To get it, install kb-local again, with its dependencies.\n"
    "The HTTP API is at /api/v1, and its description at /docs. Agents connect to /mcp.\n"
)


class StaticPages(StaticFiles):
    """Static files, which a browser caches forever if their URL contains the current version.

    Args:
        state: the version in URLs; a page from before an upgrade requests another one.
    """

    def __init__(self, folder: Path, state: str) -> None:
        super().__init__(directory=folder)
        self._state = state.encode()

    def file_response(
        self, full_path: PathLike, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        if scope["query_string"] == self._state:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


class IdConvertor(IntegerConvertor):
    """A number in a path that fits the engine's ids; a path with any other number does not match."""

    regex = "[0-9]{1,18}"


register_url_convertor("id", IdConvertor())


def create_app(context: AppContext | None = None) -> Starlette:
    """Return the app; the templates are loaded on the first request.

    Raises:
        SettingError: a setting is invalid, or the engine is not in this process.
    """
    context = context or AppContext()
    if context.engine is None:
        raise SettingError("KB_APPS: web also needs api, such as KB_APPS=api,web.")
    settings = Settings.read(context.environment)
    if not all(map(find_spec, NEEDED)):
        return Starlette(routes=[Route("/", absent)], exception_handlers={HTTPException: on_nothing})
    return pages_app(settings, context.engine, context.watch_folder)


def pages_app(settings: Settings, engine: ASGIApp, watch_folder: WatchFolder | None = None) -> Starlette:
    from kb_web.pages import on_error
    from kb_web.sessions import Sessions

    registry = CollectorRegistry()
    seconds = request_seconds("kb_web_http_request_seconds", registry)
    tracer, stop_tracing = start_tracing("kb-web")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(stop_tracing)

    app = Starlette(
        lifespan=lifespan,
        routes=page_routes(),
        exception_handlers={KbError: on_error, HTTPException: on_error},
        middleware=[
            Middleware(RequestMiddleware, seconds=seconds, tracer=tracer),
            guard(settings),
            Middleware(BodyLimitMiddleware, most=lambda path, is_form: most_bytes(settings, path, is_form)),
        ],
    )
    stopping = asyncio.Event()
    app.state.visits = Sessions(engine, settings.data_dir)
    app.state.settings = settings
    app.state.watch_folder = watch_folder
    app.state.registry = registry
    app.state.stopping = stopping
    app.state.before_stop = stopping.set
    return app


def page_routes() -> list[BaseRoute]:
    """Return all routes; each page receives its visit."""
    from kb_web import (
        add,
        attachments,
        bulk_actions,
        changes,
        documents,
        duplicates,
        folders,
        guide,
        history,
        live_updates,
        maintenance,
        notes,
        overview,
        search,
        settings,
        sign_in,
        suggestions,
        tags,
    )
    from kb_web.pages import STATIC, assets

    def at(path: str, page: Page, *methods: str) -> Route:
        return Route(path, visited(page), methods=methods or ("GET",), name=page.__name__)

    return [
        at("/", search.search),
        at("/documents", documents.browse),
        at("/d/{id:id}", documents.document),
        at("/d/{id:id}/file", documents.download),
        at("/d/{id:id}/picture", documents.show_picture),
        at("/d/{id:id}/pages/{number:id}.png", documents.page_picture),
        at("/d/{id:id}/tags", documents.change_tags, "POST"),
        at("/d/{id:id}/delete", documents.delete, "POST"),
        at("/d/{id:id}/edit", notes.edit, "GET", "POST"),
        at("/d/{id:id}/history", history.versions),
        at("/d/{id:id}/history/{number:id}", history.version),
        at("/d/{id:id}/compare/{other:id}", duplicates.compare),
        at("/d/{id:id}/revert", history.revert, "POST"),
        at("/many", bulk_actions.many, "POST"),
        at("/new", notes.new, "GET", "POST"),
        at("/preview", notes.preview, "POST"),
        at("/suggest", suggestions.suggest),
        at("/attach", attachments.attach, "POST"),
        at("/add", add.add, "GET", "POST"),
        at("/jobs", add.jobs),
        at("/jobs/{id:id}", add.job),
        at("/jobs/{id:id}/retry", add.retry, "POST"),
        at("/jobs/{id:id}/drop", add.drop, "POST"),
        at("/bin", history.binned),
        at("/bin/{id:id}/restore", history.restore, "POST"),
        at("/bin/{id:id}/purge", history.purge, "POST"),
        at("/changes", changes.changes),
        at("/changes/{id:id}", changes.change),
        at("/changes/{id:id}", changes.take_back, "POST"),
        at("/duplicates", duplicates.duplicates),
        at("/duplicates/dismissed", duplicates.dismiss, "POST"),
        at("/overview", overview.overview),
        at("/map", overview.document_map),
        at("/map.json", overview.points),
        at("/connect", overview.connect),
        at("/backups", maintenance.backups, "GET", "POST"),
        at("/doctor", maintenance.doctor, "GET", "POST"),
        at("/tags", tags.tags, "GET", "POST"),
        at("/folders", folders.folders, "GET", "POST"),
        at("/folders/{watch_id}/sync", folders.sync_folder, "POST"),
        at("/folders/{watch_id}/stop", folders.stop_folder, "POST"),
        at("/notes-folder", maintenance.notes_folder, "POST"),
        at("/settings", settings.settings, "GET", "POST"),
        at("/model", settings.model, "GET", "POST"),
        at("/settings/theme", settings.theme, "POST"),
        at("/keys", settings.keys, "GET", "POST"),
        at("/events", live_updates.events),
        at("/sign-in", sign_in.sign_in, "GET", "POST"),
        at("/sign-out", sign_in.sign_out, "POST"),
        at("/open", sign_in.open_link),
        at("/help", guide.start),
        at("/help/{path:path}", guide.show),
        at("/manifest.webmanifest", sign_in.manifest),
        at("/opensearch.xml", sign_in.opensearch),
        Mount("/static", StaticPages(STATIC, assets())),
    ]


def visited(page: Page) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that passes the visit to a page, and sets the visit's cookie on the response."""
    from kb_web.pages import render

    async def endpoint(request: Request) -> Response:
        visit = request.app.state.visits.of(request)
        request.state.visit = visit
        if not visit.is_known and request.headers.get("sec-fetch-site") == "cross-site":
            return render(request, "continue.html")  # a link from another site: the browser did not send the cookie
        response = await page(request, visit)
        visit.send_cookie(response)
        return response

    return endpoint


def guard(settings: Settings) -> Middleware:
    """Return middleware that rejects requests from other sites, and without a key also unknown host names."""
    names = listed(settings.allowed_hosts)
    return Middleware(
        FirstKeyMiddleware,
        is_made=lambda: settings.has_key,
        keyed=Middleware(OriginMiddleware, names=names),
        unkeyed=Middleware(HostMiddleware, names=names),
    )


def most_bytes(settings: Settings, path: str, is_form: bool) -> int:
    if path in ("/add", "/attach") and is_form:
        return settings.max_upload_mb << 20
    if path == "/sign-out" or (path == "/sign-in" and not is_form):
        return SIGN_IN_BODY
    return SMALL_BODY + BYTES_OF_CHARACTER * settings.max_note_chars if is_form else ENCODED_BODY


async def on_nothing(request: Request, _: Exception) -> Response:
    """Handle errors when the web interface is not installed."""
    return await on_http_exception(request, HTTPException(404, f"Nothing is served at {request.url.path}."))


async def absent(_: Request) -> Response:
    return PlainTextResponse(ABSENT)
