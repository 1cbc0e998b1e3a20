"""The API's description for people, at /docs: a page that loads nothing from elsewhere, and runs no other script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastapi.openapi.docs import get_swagger_ui_html

from kb.asgi.security_headers import with_own_scripts

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

STATIC: Final = "/docs/static"


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
        page.headers.update(with_own_scripts(bytes(page.body), forms="'none'"))
        return page

    app.add_route("/docs", docs)
