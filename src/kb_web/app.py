"""The web interface as an ASGI app."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Final

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from kb.api.errors import KbError, SettingError
from kb.asgi.bearer import FirstKeyMiddleware
from kb.asgi.body_limits import BodyLimitMiddleware
from kb.asgi.error_replies import on_http_exception
from kb.asgi.hosts import HostMiddleware, OriginMiddleware
from kb.asgi.key_check import SecretFile
from kb.asgi.proxy_sign_in import PROXIES, ByProxy, ProxySignIn
from kb.asgi.request import RequestMiddleware, request_seconds
from kb.asgi.subapps import AppContext, TextModel, WatchFolder
from kb.settings import Settings, listed, reveal
from kb.telemetry.tracing import start_tracing
from kb_web.forms import BYTES_OF_CHARACTER

SMALL_BODY: Final = 1 << 20
SIGN_IN_BODY: Final = 64 << 10
"""Maximum size in bytes of a form from a visitor without a session, unless it brings back what a form had."""

ENCODED_BODY: Final = 256 << 10
"""Maximum size of a form that is not multipart: decoding it blocks the event loop."""

NEEDED: Final = ("jinja2", "markdown_it", "mdit_py_plugins")
ABSENT: Final = (
    "The web interface is not installed. To get it, reinstall kb-local with its dependencies.\n"
    "The HTTP API is at /api/v1, and its description at /docs. Agents connect to /mcp.\n"
)


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
    by_proxy = proxied(settings, context.environment)
    return pages_app(settings, context.engine, context.watch_folder, context.model, by_proxy)


def proxied(settings: Settings, environment: Mapping[str, str]) -> ByProxy | None:
    """Return how visitors sign in by a proxy; None if they do not.

    Raises:
        SettingError: the settings do not say who the proxy is, or kb has no key.
    """
    if not settings.trusted_header:
        return None
    if not settings.has_key:
        raise SettingError("KB_TRUSTED_HEADER: set KB_API_KEY as well. Without a key, kb is open to all visitors.")
    sign_in = ProxySignIn(settings.trusted_header, environment.get(PROXIES, ""))
    key, path = reveal(settings.api_key), settings.api_key_file
    file = SecretFile(path, "KB_API_KEY_FILE") if path and not key else None
    return ByProxy(sign_in, lambda: key or (file.first() if file else ""))


def pages_app(
    settings: Settings,
    engine: ASGIApp,
    watch_folder: WatchFolder | None = None,
    model: Callable[[], TextModel | None] = lambda: None,
    by_proxy: ByProxy | None = None,
) -> Starlette:
    from kb_web.guide_search import GuideSearch
    from kb_web.pages import on_error
    from kb_web.routes import ROUTES
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
        routes=ROUTES,
        exception_handlers={KbError: on_error, HTTPException: on_error},
        middleware=[
            Middleware(RequestMiddleware, seconds=seconds, tracer=tracer),
            guard(settings),
            Middleware(BodyLimitMiddleware, most=lambda path, is_form: most_bytes(settings, path, is_form)),
        ],
    )
    stopping = asyncio.Event()
    app.state.visits = Sessions(engine, settings.data_dir, by_proxy)
    app.state.settings = settings
    app.state.guide = GuideSearch(model, settings.data_dir)
    app.state.watch_folder = watch_folder
    app.state.registry = registry
    app.state.stopping = stopping
    app.state.before_stop = stopping.set
    return app


def guard(settings: Settings) -> Middleware:
    """Return middleware that rejects requests from other sites, and unknown host names unless visitors send a key.

    A foreign page can give this machine a name of its own, and would then come from the address of the proxy.
    """
    names = listed(settings.allowed_hosts)
    strict = Middleware(HostMiddleware, names=names)
    return Middleware(
        FirstKeyMiddleware,
        is_made=lambda: settings.has_key,
        keyed=strict if settings.trusted_header else Middleware(OriginMiddleware, names=names),
        unkeyed=strict,
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
