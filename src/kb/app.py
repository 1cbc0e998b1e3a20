"""The engine as an ASGI app: the one place that builds its parts and shows its routes."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from prometheus_client import Info
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from kb import __version__
from kb.api.errors import KbError, StoreError
from kb.api.settings import listed, reveal
from kb.asgi.bearer import BearerMiddleware, Keys
from kb.asgi.hosts import HostMiddleware
from kb.asgi.limits import BodyLimitMiddleware
from kb.asgi.probes import probes
from kb.asgi.problem import on_disconnect, on_kb_error, on_os_error
from kb.asgi.request import RequestMiddleware, request_seconds
from kb.asgi.versions import VersionMiddleware
from kb.documents.originals import KeptFiles
from kb.embed.open import open_embedder
from kb.ingest.draft import DOC_TYPES
from kb.parser.sandbox import Limits
from kb.routes import documents, jobs, notes, search, status
from kb.routes.openapi import describe
from kb.routes.problems import on_invalid, on_refused, problems
from kb.routes.services import Engine
from kb.search.service import SearchService
from kb.settings import Settings
from kb.store.gauges import Gauges
from kb.store.open import make_folder, open_store, sole_user
from kb.store.rows import VectorSpace
from kb.telemetry.instruments import FollowingPool, Watch
from kb.telemetry.tracing import traces_of
from kb.worker.loop import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store

logger = logging.getLogger(__name__)

API = "/api/v1"
MAX_JSON = 16 << 20
MAX_SEARCHES = 6
"""How many searches use the model at once: fewer than the store has connections for readers."""

BEARER = HTTPBearer(auto_error=False, description="KB_API_KEY; checked before a request gets here.")


def create_app(settings: Settings | None = None) -> FastAPI:
    """The engine; its model, store and worker live as long as its lifespan.

    Raises:
        SettingError: a setting is wrong. The lifespan raises the other `StartError`s.
    """
    settings = settings or Settings.read()
    watch = Watch(traces_of("kb-engine"), DOC_TYPES)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            stack.callback(watch.traces.close)
            starting = asyncio.get_running_loop().run_in_executor(None, start, settings, watch, stack)
            try:
                app.state.engine = await asyncio.shield(starting)
            finally:  # told to stop meanwhile: a thread cannot be, and what it starts must be stopped
                await asyncio.wait([starting])
            yield
            app.state.engine = None

    app = FastAPIOffline(
        redoc_url=None,
        static_url="/docs/static",
        title="kb",
        version=__version__,
        summary="A fully local knowledge base for people and their AI agents",
        lifespan=lifespan,
        # Its own telemetry would send addresses with what is looked for in them, and messages of errors.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        generate_unique_id_function=lambda route: route.name,
        exception_handlers={
            KbError: on_kb_error,
            RequestValidationError: on_invalid,
            HTTPException: on_refused,
            ClientDisconnect: on_disconnect,
            OSError: on_os_error,
        },
    )
    app.add_middleware(
        BodyLimitMiddleware,
        form_path=f"{API}{jobs.router.prefix}",
        max_form=settings.max_upload_mb << 20,
        max_other=MAX_JSON,
    )
    if key := reveal(settings.api_key):
        app.add_middleware(BearerMiddleware, name_of=Keys([key]).name_of, prefixes=(API,))
        app.include_router(api_router(), prefix=API, dependencies=[Security(BEARER)], responses=problems(401))
    else:
        # With a key a foreign page gets nowhere; without one this is what stands between it and the documents.
        app.add_middleware(HostMiddleware, names=listed(settings.allowed_hosts))
        app.include_router(api_router(), prefix=API, responses=problems(403, 421))
    describe(app, settings)
    app.add_middleware(VersionMiddleware)
    seconds = request_seconds("kb_http_request_seconds", watch.registry)
    app.add_middleware(RequestMiddleware, seconds=seconds, traces=watch.traces, prefix=API)
    app.state.registry = watch.registry
    app.router.routes += probes(ready)
    return app


def api_router() -> APIRouter:
    """Every route under `/api/v1`."""
    router = APIRouter(responses=problems(422, 426, 500, 503))
    for module in (search, jobs, documents, notes, status):
        router.include_router(module.router)
    return router


def start(settings: Settings, watch: Watch, stack: ExitStack) -> Engine:
    """Build the parts and start the worker; `stack` stops them in reverse.

    Raises:
        StartError: the data directory, the model or the database cannot be used.
    """
    for folder in (settings.data_dir, settings.staging_dir, settings.files_dir):
        make_folder(folder, "KB_DATA_DIR")
    stack.enter_context(sole_user(settings.data_dir / "kb.lock"))
    embedder = open_embedder(
        settings.model_dir, settings.data_dir, settings.device, settings.precision, on_batch=watch.embedded
    )
    embedder.embed(["warm"])
    space = VectorSpace(embedder.dimensions, embedder.model, embedder.precision, embedder.digest)
    store = stack.enter_context(open_store(settings.database_url, settings.data_dir, space))
    kept = KeptFiles(settings.files_dir, keep=settings.keep_files)
    limits = Limits(settings.parse_seconds, settings.parse_memory_mb, settings.parse_output_mb, settings.parse_pages)
    worker = Worker(store, embedder, settings.staging_dir, kept, limits, watch)
    worker.start()
    stack.callback(worker.stop)
    pool = stack.enter_context(FollowingPool(MAX_SEARCHES, "kb-search"))
    search_service = SearchService(store, embedder, pool, watch, MAX_SEARCHES)
    for collector in (Gauges(store, DOC_TYPES), engine_info(embedder)):
        watch.registry.register(collector)
        stack.callback(watch.registry.unregister, collector)
    return Engine(settings, store, embedder, worker, kept, search_service)


def engine_info(embedder: Embedder) -> Info:
    """What the engine is, as a metric."""
    info = Info("kb_engine", "What the engine is.", registry=None)
    about = {"model": embedder.model, "precision": embedder.precision, "provider": embedder.provider}
    info.info({"version": __version__} | about)
    return info


async def ready(request: Request) -> bool:
    """Whether the model is warm and the database answers."""
    engine: Engine | None = request.app.state.engine
    return engine is not None and await run_in_threadpool(answers, engine.store)


def answers(store: Store) -> bool:
    """Return whether the database can be read; the log says why not."""
    try:
        store.check()
    except StoreError as error:
        logger.warning("%s", error)
        return False
    return True
