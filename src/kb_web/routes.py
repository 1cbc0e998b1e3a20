"""The routes of the web interface; each page receives its visit."""

import os
import re
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import PathLike, StaticFiles
from starlette.types import Scope

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
from kb_web.pages import STATIC, assets, render
from kb_web.sessions import Visit

LAYOUT: Final = re.compile(rb"(?m)^[ \t]*(//.*\n)?")
SPACE: Final = re.compile(rb'(?P<text>"[^"]*")|(?s:/\*.*?\*/)|\s*;?\s*(?P<sign>\}|[{;,])\s*|(?P<colon>:)\s+')
"""A text of a style sheet, which stays as it is; a comment; and a sign with the spaces that mean nothing beside it."""
LEAN: Final = {".js": "text/javascript", ".css": "text/css"}

Page = Callable[[Request, Visit], Awaitable[Response]]


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
        if kind := LEAN.get(Path(full_path).suffix):
            response: Response = Response(lean(Path(full_path), stat_result.st_mtime_ns), media_type=kind)
        else:
            response = super().file_response(full_path, stat_result, scope, status_code)
        if scope["query_string"] == self._state:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


@cache
def lean(file: Path, _: int) -> bytes:
    """Return a script or a style sheet without its comments and layout. No text in our scripts spans lines."""
    if file.suffix == ".css":
        return SPACE.sub(lambda found: found["text"] or found["sign"] or found["colon"] or b"", file.read_bytes())
    return LAYOUT.sub(b"", file.read_bytes())


class IdConvertor(IntegerConvertor):
    """A number in a path that fits the engine's ids; a path with any other number does not match."""

    regex = "[0-9]{1,18}"


register_url_convertor("id", IdConvertor())


def visited(page: Page) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that passes the visit to a page, and sets the visit's cookie on the response."""

    async def endpoint(request: Request) -> Response:
        visit = request.app.state.visits.of(request)
        request.state.visit = visit
        if not visit.is_known and request.headers.get("sec-fetch-site") == "cross-site":
            return render(request, "continue.html")  # a link from another site: the browser did not send the cookie
        await visit.recognise()
        response = await page(request, visit)
        visit.send_cookie(response)
        return response

    return endpoint


def at(path: str, page: Page, *methods: str) -> Route:
    return Route(path, visited(page), methods=methods or ("GET",), name=page.__name__)


ROUTES: Final[list[BaseRoute]] = [
    at("/", search.search),
    at("/documents", documents.browse),
    at("/d/{id:id}", documents.document),
    at("/d/{id:id}/file", documents.download),
    at("/d/{id:id}/open", documents.open_file),
    at("/d/{id:id}/picture", documents.show_picture),
    at("/d/{id:id}/pages/{number:id}.png", documents.page_picture),
    at("/d/{id:id}/thumbnail", documents.thumbnail),
    at("/d/{id:id}/rename", documents.rename, "POST"),
    at("/d/{id:id}/tags", documents.change_tags, "POST"),
    at("/d/{id:id}/delete", documents.delete, "POST"),
    at("/d/{id:id}/edit", notes.edit, "GET", "POST"),
    at("/d/{id:id}/tick", notes.tick, "POST"),
    at("/d/{id:id}/history", history.versions),
    at("/d/{id:id}/history/{number:id}", history.version),
    at("/d/{id:id}/compare/{other:id}", duplicates.compare),
    at("/d/{id:id}/revert", history.revert, "POST"),
    at("/many", bulk_actions.many, "POST"),
    at("/new", notes.new, "GET", "POST"),
    at("/today", notes.today),
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
    at("/server", overview.server),
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
    at("/settings/theme", settings.theme, "POST"),
    at("/model", settings.model, "GET", "POST"),
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
