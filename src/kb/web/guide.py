"""The guide at `/help`: the site that `make docs` builds, if this kb was packed with one."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

SITE: Final = Path(__file__).parents[1] / "site"
ABSENT: Final = (
    "This kb was packed without its guide. In a clone of kb 'make docs' builds it; start kb again after that.\n"
    "The description of the HTTP API is at /docs, and 'kb COMMAND --help' explains each command.\n"
)
INLINE_SCRIPT: Final = re.compile(rb"<script(?:\s+type=\"[a-z/]+\")?>(.*?)</script>", re.DOTALL)
POLICY: Final = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def routes() -> list[BaseRoute]:
    """Return the routes of the guide; anyone may read it, as it is the same everywhere."""
    return [
        Route("/help", lambda request: RedirectResponse(f"{request.scope.get('root_path', '')}/help/")),
        Route("/help/{path:path}", show),
    ]


async def show(request: Request) -> Response:
    """Return a page of the guide, or what belongs to one."""
    if not (SITE / "index.html").is_file():
        return PlainTextResponse(ABSENT, 404)
    file = file_at(request.path_params["path"] or "index.html")
    if file is None:
        return PlainTextResponse("There is no such page in the guide; /help/ is its first.\n", 404)
    if file.suffix != ".html":
        return FileResponse(file)
    content = file.read_bytes()
    return HTMLResponse(content, headers={"Content-Security-Policy": policy_for(content)})


def file_at(path: str) -> Path | None:
    """Return the file of the guide at a path, if there is one."""
    with suppress(OSError, ValueError):  # no file can be called so
        file = (SITE / path).resolve()
        if file.is_relative_to(SITE.resolve()) and file.is_file():
            return file
    return None


@cache
def policy_for(content: bytes) -> str:
    """Return what a page may load: its own scripts, and from here alone."""
    found = (b64encode(sha256(script).digest()).decode() for script in INLINE_SCRIPT.findall(content))
    return POLICY.format(scripts="".join(f" 'sha256-{each}'" for each in found))
