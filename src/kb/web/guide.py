"""Serve the guide at `/help`: the site that `make docs` builds, if this package contains it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from kb.asgi.security_headers import with_own_scripts

SITE: Final = Path(__file__).parents[1] / "site"
ABSENT: Final = (
    "This kb was packed without its guide. In a clone of kb 'make docs' builds it; start kb again after that.\n"
    "The description of the HTTP API is at /docs, and 'kb COMMAND --help' explains each command.\n"
)


def routes() -> list[BaseRoute]:
    """Return the routes of the guide; it needs no key, because it is the same everywhere."""
    return [
        Route("/help", lambda request: RedirectResponse(f"{request.scope.get('root_path', '')}/help/")),
        Route("/help/{path:path}", show),
    ]


async def show(request: Request) -> Response:
    """Return a page or another file of the guide."""
    if not (SITE / "README.html").is_file():
        return PlainTextResponse(ABSENT, 404)
    file = file_at(request.path_params["path"] or "README.html")
    if file is None:
        return PlainTextResponse("There is no such page in the guide; /help/ is its first.\n", 404)
    if file.suffix != ".html":
        return FileResponse(file)
    content = file.read_bytes()
    return HTMLResponse(content, headers=with_own_scripts(content))


def file_at(path: str) -> Path | None:
    """Return the file of the guide at a path, or None."""
    with suppress(OSError, ValueError):  # an impossible file name
        file = (SITE / path).resolve()
        if file.is_relative_to(SITE.resolve()) and file.is_file():
            return file
    return None
