"""The engine and the separate worker as ASGI apps: their routes and middleware, on one screen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect

from kb import __version__
from kb.access.keyring import FILE, KeyFile, Keyring, token_digest
from kb.api.errors import KbError, SettingError, Unavailable
from kb.api.rights import Caller
from kb.asgi.bearer import BearerMiddleware, FirstKeyMiddleware
from kb.asgi.body_limits import BodyLimitMiddleware
from kb.asgi.error_replies import on_disconnect, on_kb_error, on_os_error
from kb.asgi.hosts import HostMiddleware
from kb.asgi.key_check import FirstKey, Identify, identify_engine_key
from kb.asgi.probes import probes
from kb.asgi.request import RequestMiddleware, VersionMiddleware, request_seconds
from kb.asgi.subapps import AppContext
from kb.core import Core, check_settings, start, start_worker
from kb.formats.installed_types import DOC_TYPES
from kb.live_settings import LiveSettings
from kb.routes import (
    document_map,
    documents,
    duplicates,
    folders,
    grants,
    history,
    jobs,
    keys,
    maintenance,
    notes,
    search,
    status,
)
from kb.routes import settings as settings_routes
from kb.routes.dependencies import Services
from kb.routes.error_replies import on_invalid, on_refused, problems
from kb.routes.openapi import STATIC, add_docs, describe
from kb.routes.request_limits import most_bytes
from kb.routes.status import ready
from kb.settings import Settings, listed
from kb.telemetry.instruments import Instruments
from kb.telemetry.tracing import start_tracing

API = "/api/v1"
BEARER = HTTPBearer(auto_error=False, description="The API key (`KB_API_KEY`), or a key with rights.")

ABOUT: Final[dict[str, Any]] = {
    "title": "kb",
    "version": __version__,
    "summary": "A fully local knowledge base for people and their AI agents",
    "redoc_url": None,
    "docs_url": None,  # `kb.routes.openapi` serves it
    "static_url": STATIC,
    "generate_unique_id_function": lambda route: route.name,
    # Its own telemetry would send URLs, which contain queries, and error messages.
    "telemetry": {"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
}
ERRORS: Final[dict[Any, Any]] = {
    KbError: on_kb_error,
    RequestValidationError: on_invalid,
    HTTPException: on_refused,
    ClientDisconnect: on_disconnect,
    OSError: on_os_error,
}


def create_app(context: AppContext | None = None) -> FastAPI:
    """Return the engine; its model, store and worker live as long as its lifespan.

    Raises:
        SettingError: a setting is wrong. The lifespan raises the other `StartError`s.
    """
    live = LiveSettings((context or AppContext()).environment)
    settings = live.settings
    check_settings(settings)
    tracer, stop_tracing = start_tracing("kb-engine")
    instruments = Instruments(tracer, DOC_TYPES)
    keyring = Keyring(None if settings.store_kind.is_shared else KeyFile(settings.data_dir / FILE))
    seconds = request_seconds("kb_http_request_seconds", instruments.registry)
    app = FastAPIOffline(
        **ABOUT,
        exception_handlers=ERRORS,
        lifespan=partial(lifespan, begin=partial(start, live, keyring, instruments), stop_tracing=stop_tracing),
        middleware=[  # from the outside to the inside
            Middleware(RequestMiddleware, seconds=seconds, tracer=tracer, prefix=API),
            Middleware(VersionMiddleware),
            guard(settings, keyring),
            Middleware(BodyLimitMiddleware, most=partial(most_bytes, settings, API)),
        ],
    )
    add_routes(app, settings)
    app.router.routes += probes(ready)
    add_docs(app)
    describe(app, settings)
    app.state.registry = instruments.registry
    return app


def guard(settings: Settings, keyring: Keyring) -> Middleware:
    """Return the access control: a key, or without one a check of host names that keeps out foreign web pages."""
    if of_settings := identify_engine_key(settings):
        return bearer(of_settings, keyring)
    first_key = FirstKey(settings.first_key)
    return Middleware(
        FirstKeyMiddleware,
        is_made=first_key.is_made,
        keyed=bearer(first_key, keyring),
        unkeyed=Middleware(HostMiddleware, names=listed(settings.allowed_hosts)),
    )


def bearer(identify_api_key: Identify, keyring: Keyring) -> Middleware:
    """Return the check of the API key and of keys with rights."""

    async def identify(token: str) -> Caller | None:
        if caller := await identify_api_key(token):
            if keyring.is_due:  # it may ask for other keys
                with suppress(Unavailable):
                    await run_in_threadpool(keyring.refresh)
            return caller
        key = await run_in_threadpool(keyring.identify, token_digest(token))  # it may wait for a write
        return key.caller if key else None

    return Middleware(BearerMiddleware, identify=identify, prefixes=(API,))


def add_routes(app: FastAPI, settings: Settings) -> None:
    """Add every route under `/api/v1`, with separate routers, because FastAPI searches nested ones again and again."""
    is_guarded = settings.has_key
    refusals = (401, 403, 429) if is_guarded else (403, 421)
    for module in (  # most frequent requests first
        search,
        status,
        jobs,
        documents,
        document_map,
        duplicates,
        notes,
        history,
        folders,
        maintenance,
        keys,
        grants,
        settings_routes,
    ):
        app.include_router(
            module.router,
            prefix=API,
            dependencies=[Security(BEARER)] if is_guarded else [],
            responses=problems(*refusals, 422, 426, 500, 503),
        )


def create_worker(context: AppContext | None = None) -> Starlette:
    """Return a process that only works on the queue, as an app with probes and a registry for the metrics.

    Raises:
        SettingError: a setting is wrong. The lifespan raises the other `StartError`s.
    """
    settings = Settings.read((context or AppContext()).environment)
    if not settings.store_kind.is_shared:
        raise SettingError(
            "KB_DATABASE_URL: 'kb worker' needs PostgreSQL. With SQLite, the engine does the jobs itself."
        )
    tracer, stop_tracing = start_tracing("kb-worker")
    instruments = Instruments(tracer, DOC_TYPES)
    begin = partial(start_worker, settings, instruments)
    app = Starlette(routes=probes(ready), lifespan=partial(lifespan, begin=begin, stop_tracing=stop_tracing))
    app.state.registry = instruments.registry
    return app


@asynccontextmanager
async def lifespan(
    app: Starlette, *, begin: Callable[[ExitStack], Services | Core], stop_tracing: Callable[[], None]
) -> AsyncIterator[None]:
    """Start the parts in a thread, and stop them."""
    with ExitStack() as stack:
        stack.callback(stop_tracing)
        # A stop may come at any point of the start. The thread cannot be stopped, but the parts it starts must be.
        with ThreadPoolExecutor(1, "kb-start") as pool:
            starting = asyncio.get_running_loop().run_in_executor(pool, begin, stack)
            try:
                app.state.services = await asyncio.shield(starting)
            finally:
                await asyncio.wait([starting])
        app.state.before_stop = app.state.services.worker.before_stop
        yield
        app.state.services = None
