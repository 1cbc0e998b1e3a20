"""The API's description for people, at /docs: a page that loads nothing from elsewhere, and runs no other script."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from fastapi.openapi.docs import get_swagger_ui_html

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

STATIC: Final = "/docs/static"
INLINE_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
POLICY: Final = (
    "default-src 'none'; script-src 'self' {script}; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_docs(app: FastAPI) -> None:
    """Serve the page."""

    async def docs(request: Request) -> Response:
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title=f"{app.title}: HTTP API",
            swagger_js_url=f"{root}{STATIC}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{STATIC}/swagger-ui.css",
            swagger_favicon_url=f"{root}{STATIC}/favicon.png",
        )
        scripts = (b64encode(sha256(script).digest()).decode() for script in INLINE_SCRIPT.findall(bytes(page.body)))
        page.headers["Content-Security-Policy"] = POLICY.format(script=" ".join(f"'sha256-{each}'" for each in scripts))
        return page

    app.add_route("/docs", docs)
