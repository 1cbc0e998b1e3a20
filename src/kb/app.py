"""The engine and its worker alone as ASGI apps: the one place that builds their parts and shows their routes."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from prometheus_client import Info
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect

from kb import __version__
from kb.access.keyring import FILE, KeyFile, Keyring, digest_of, take_in
from kb.api.errors import KbError, ModelError, SettingError, StoreError, StoreUnavailable, Unavailable
from kb.asgi.bearer import BearerMiddleware
from kb.asgi.hosts import HostMiddleware
from kb.asgi.keys import identify_engine_key
from kb.asgi.limits import BodyLimitMiddleware
from kb.asgi.probes import probes
from kb.asgi.problem import on_disconnect, on_kb_error, on_os_error
from kb.asgi.request import RequestMiddleware, request_seconds
from kb.asgi.subapps import Context
from kb.asgi.versions import VersionMiddleware
from kb.documents.disk_use import DiskUse, kept_sizes, sizes
from kb.documents.originals import Originals
from kb.documents.page_pictures import PagePictures
from kb.documents.reread import queue_outdated
from kb.embed.open import open_embedder
from kb.filesystem import make_folder
from kb.ingest.draft import DOC_TYPES
from kb.ingest.models import ActiveModel, open_model_of
from kb.ingest.stop import Stop
from kb.maintenance.inbox import Inbox
from kb.maintenance.restore import complete_restore
from kb.maintenance.schedule import BackupSchedule
from kb.maintenance.tasks import MaintenanceTasks
from kb.parser.confine import forbid_inspection
from kb.parser.extraction import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
from kb.routes import (
    access,
    document_map,
    documents,
    history,
    jobs,
    maintenance,
    notes,
    page_pictures,
    reembed,
    search,
    status,
)
from kb.routes.dependencies import Services
from kb.routes.docs import STATIC, add_docs
from kb.routes.limits import most_bytes
from kb.routes.openapi import describe
from kb.routes.problems import on_invalid, on_refused, problems
from kb.routes.queue import TurnQueue
from kb.search.document_map import DocumentMap
from kb.search.recall import RecallMonitor
from kb.search.service import SearchService
from kb.settings import Settings, listed
from kb.store.blob_place import bring_in, open_blobs
from kb.store.gauges import Gauges
from kb.store.lock import sole_user
from kb.store.open import is_postgres, open_store, space_in_use
from kb.store.rows import Retention, VectorSpace
from kb.telemetry.instruments import FollowingPool, Instruments
from kb.telemetry.tracing import start_tracing
from kb.worker.job_ends import JobEnds
from kb.worker.loop import Worker
from kb.worker.reembed import Reembedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request

    from kb.api.access import Caller
    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store

logger = logging.getLogger(__name__)

API = "/api/v1"
MAX_SEARCHES = 6
"""How many searches run at once, however many cores there are: fewer than the store has connections for readers."""

MAX_PICTURES = 8
"""How many pictures of pages may be drawn or wait: one is drawn after another."""

LOOK_SECONDS = 2.0
"""How often those who wait for a job look at it where other processes do some, whose word may be lost."""

TOO_MANY_PICTURES = f"{MAX_PICTURES} pictures of pages are drawn or wait already; try again in a second."
DRAWING_SECONDS = 10
"""How long drawing a page may take: somebody waits for it, unlike for the reading of a file."""

MAX_MAPS = 16
MAPS_AT_ONCE = 2
"""How many maps are answered at once: in each there may be 10,000 documents."""

TOO_MANY_MAPS = f"{MAX_MAPS} maps are answered or wait already; try again in a second."

BEARER = HTTPBearer(auto_error=False, description="KB_API_KEY; checked before a request gets here.")

ABOUT: Final[dict[str, Any]] = {
    "title": "kb",
    "version": __version__,
    "summary": "A fully local knowledge base for people and their AI agents",
    "redoc_url": None,
    "docs_url": None,  # `kb.routes.docs` serves it
    "static_url": STATIC,
    "generate_unique_id_function": lambda route: route.name,
    # Its own telemetry would send addresses with what is looked for in them, and messages of errors.
    "telemetry": {"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
}
ERRORS: Final[dict[Any, Any]] = {
    KbError: on_kb_error,
    RequestValidationError: on_invalid,
    HTTPException: on_refused,
    ClientDisconnect: on_disconnect,
    OSError: on_os_error,
}


def create_app(context: Context | None = None) -> FastAPI:
    """Return the engine; its model, store and worker live as long as its lifespan.

    Raises:
        SettingError: a setting is wrong. The lifespan raises the other `StartError`s.
    """
    settings = Settings.read((context or Context()).environment)
    if settings.backup_dir and is_postgres(settings.database_url):
        raise SettingError("KB_BACKUP_DIR: backups are of a database in a file; of PostgreSQL make them with pg_dump")
    check_workers(settings)
    check_replicas(settings)
    tracer, stop_tracing = start_tracing("kb-engine")
    instruments = Instruments(tracer, DOC_TYPES)
    keyring = Keyring(None if is_postgres(settings.database_url) else KeyFile(settings.data_dir / FILE))
    seconds = request_seconds("kb_http_request_seconds", instruments.registry)
    app = FastAPIOffline(
        **ABOUT,
        exception_handlers=ERRORS,
        lifespan=partial(lifespan, begin=partial(start, settings, keyring, instruments), stop_tracing=stop_tracing),
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
    """Return what keeps strangers out: a key, or without one the check of names, which keeps out foreign pages."""
    if of_settings := identify_engine_key(settings):

        async def identify(token: str) -> Caller | None:
            if caller := await of_settings(token):
                if keyring.is_due:  # it may ask for others
                    with suppress(Unavailable):
                        await run_in_threadpool(keyring.refresh)
                return caller
            key = await run_in_threadpool(keyring.identify, digest_of(token))  # it may wait for a write
            return key.caller if key else None

        return Middleware(BearerMiddleware, identify=identify, prefixes=(API,))
    return Middleware(HostMiddleware, names=listed(settings.allowed_hosts))


def add_routes(app: FastAPI, settings: Settings) -> None:
    """Add every route under `/api/v1`, each router for itself: FastAPI walks through one in another time and again."""
    is_guarded = settings.has_key
    refusals = (401, 403, 429) if is_guarded else (403, 421)
    for module in (  # what is asked for most is looked for first
        search,
        status,
        jobs,
        documents,
        page_pictures,
        document_map,
        notes,
        history,
        reembed,
        maintenance,
        access,
    ):
        app.include_router(
            module.router,
            prefix=API,
            dependencies=[Security(BEARER)] if is_guarded else [],
            responses=problems(*refusals, 422, 426, 500, 503),
        )


def create_worker(context: Context | None = None) -> Starlette:
    """Return a process that only works on the queue, as an app: its probes, and a registry for the metrics.

    Raises:
        SettingError: a setting is wrong. The lifespan raises the other `StartError`s.
    """
    settings = Settings.read((context or Context()).environment)
    if not is_postgres(settings.database_url):
        raise SettingError(
            "KB_DATABASE_URL: 'kb worker' is for PostgreSQL; the jobs of a database in a file are done by its engine"
        )
    tracer, stop_tracing = start_tracing("kb-worker")
    instruments = Instruments(tracer, DOC_TYPES)
    begin = partial(start_worker, settings, instruments)
    app = Starlette(routes=probes(ready), lifespan=partial(lifespan, begin=begin, stop_tracing=stop_tracing))
    app.state.registry = instruments.registry
    return app


def check_workers(settings: Settings) -> None:
    """Refuse an engine without workers where nobody would do its jobs.

    Raises:
        SettingError: it is one.
    """
    if not settings.workers and not is_postgres(settings.database_url):
        raise SettingError(
            "KB_WORKERS: 0 is for PostgreSQL, where others do the jobs; with a database in a file none would"
        )


def check_replicas(settings: Settings) -> None:
    """Refuse replicas of a database that has none.

    Raises:
        SettingError: there are such.
    """
    if settings.database_read_url and not is_postgres(settings.database_url):
        raise SettingError(
            "KB_DATABASE_READ_URL: replicas are of a database in PostgreSQL, which KB_DATABASE_URL has to name"
        )


@asynccontextmanager
async def lifespan(
    app: Starlette, *, begin: Callable[[ExitStack], Services | Core], stop_tracing: Callable[[], None]
) -> AsyncIterator[None]:
    """Start the parts in a thread, and stop them."""
    with ExitStack() as stack:
        stack.callback(stop_tracing)
        # Told to stop meanwhile, at whatever point: a thread cannot be, and what it starts must be stopped.
        with ThreadPoolExecutor(1, "kb-start") as pool:
            starting = asyncio.get_running_loop().run_in_executor(pool, begin, stack)
            try:
                app.state.services = await asyncio.shield(starting)
            finally:
                await asyncio.wait([starting])
        app.state.before_stop = app.state.services.worker.before_stop
        yield
        app.state.services = None


@dataclass(frozen=True, slots=True)
class Core:
    """What works on the queue."""

    store: Store
    embedder: ActiveModel
    wanted: VectorSpace
    originals: Originals
    worker: Worker
    stop: Stop


def open_core(
    settings: Settings, instruments: Instruments, stack: ExitStack, *, works: bool, read_url: str | None = None
) -> Core:
    """Open the model and the database, and start the worker if this process `works`; `stack` stops them in reverse.

    Raises:
        StartError: the data directory, the model or the database cannot be used.
    """
    forbid_inspection()
    for folder in (settings.data_dir, settings.staging_dir, settings.files_dir):
        make_folder(folder, "KB_DATA_DIR")
    stack.enter_context(sole_user(settings.data_dir / "kb.lock"))
    complete_restore(settings)
    found, space, wanted = open_models(settings, instruments)
    embedder = ActiveModel(found)
    embedder.embed_passages(["warm"])
    words_limit = settings.words_memory_mb << 20
    store = stack.enter_context(
        open_store(settings.database_url, settings.data_dir, space, words_limit, retention_of(settings), read_url)
    )
    blobs = open_blobs(settings.blob_url, store, settings.files_dir.parent)
    if blobs.is_shared:
        bring_in(store, blobs, settings.files_dir.parent, settings.data_dir)
    originals = Originals(blobs, keep=settings.keep_files)
    stop = Stop()
    extractors = extractors_of(settings)
    worker = Worker(
        store,
        embedder,
        settings.staging_dir,
        originals,
        ExtractingSandbox(limits_of(settings), extractors, settings.extract_seconds, settings.staging_dir),
        instruments,
        keep_jobs_days=settings.keep_jobs_days,
        stop=stop,
        ends=JobEnds(LOOK_SECONDS if is_postgres(settings.database_url) else None),
    )
    stack.callback(worker.stop)  # before it starts: an interruption may come in between
    if works:
        queue_outdated(store, blobs, reads_pictures=extractors.of_kind("image") is not None)
        worker.start()
    else:
        worker.tidy()
    store.listen(worker.wake, worker.ends.publish)
    return Core(store, embedder, wanted, originals, worker, stop)


def start_worker(settings: Settings, instruments: Instruments, stack: ExitStack) -> Core:
    """Start what works on the queue; `stack` stops it. Raises as `open_core`."""
    core = open_core(settings, instruments, stack, works=True)
    start_reembedder(core, settings, instruments, stack)
    return core


def start_reembedder(core: Core, settings: Settings, instruments: Instruments, stack: ExitStack) -> Reembedder:
    """Start what makes other vectors, and show the model in use and the database as metrics, until `stack` ends."""
    info = Info("kb_engine", "What the engine is.", registry=None)
    info.info(about(core.embedder))

    def switched(model: Embedder) -> None:
        info.info(about(model))
        core.worker.wake()

    reembedder = Reembedder(core.store, settings, core.wanted, core.embedder, switched)
    stack.callback(reembedder.close)
    reembedder.resume()
    for collector in (Gauges(core.store, DOC_TYPES), info):
        instruments.registry.register(collector)
        stack.callback(instruments.registry.unregister, collector)
    return reembedder


def start(settings: Settings, keyring: Keyring, instruments: Instruments, stack: ExitStack) -> Services:
    """Build the parts and start the worker; `stack` stops them in reverse. Raises as `open_core`."""
    from kb.embed.onnx.session import available_cores

    core = open_core(settings, instruments, stack, works=settings.workers > 0, read_url=settings.database_read_url)
    store, embedder, originals, worker = core.store, core.embedder, core.originals, core.worker
    blobs = originals.blobs
    if store.keys:
        take_in(settings.data_dir / FILE, store.keys)
        keyring.open(store.keys)
    stack.callback(keyring.flush)
    if settings.backup_dir:
        stack.enter_context(BackupSchedule(settings, settings.backup_dir))
    if settings.inbox_dir:
        most_bytes = settings.max_upload_mb << 20
        inbox = Inbox(settings.inbox_dir, store, blobs, settings.data_dir, most_bytes, worker.wake)
        stack.enter_context(inbox)
    cores = available_cores()
    has_gpu = embedder.device != "cpu"
    at_once = max(2, cores) + (has_gpu or is_postgres(settings.database_url))  # one waits for it
    at_once = min(at_once, MAX_SEARCHES)
    pool = stack.enter_context(FollowingPool(at_once, "kb-search"))
    queue = TurnQueue(settings.max_searches, at_once, gives_way=lambda: worker.is_busy)
    recall = stack.enter_context(closing(RecallMonitor(store, instruments)))
    pictures = stack.enter_context(PagePictures(store, originals, drawing_limits(settings)))
    reembedder = start_reembedder(core, settings, instruments, stack)

    def is_alone() -> bool:
        return has_gpu or not (queue.is_crowded or worker.is_busy or reembedder.is_busy)

    search_service = SearchService(store, embedder, pool, instruments, recall, is_alone)
    return Services(
        settings,
        store,
        embedder,
        worker,
        originals,
        search_service,
        core.stop,
        queue,
        keyring,
        pictures,
        reembedder,
        TurnQueue(MAX_PICTURES, 1, TOO_MANY_PICTURES),
        stack.enter_context(DocumentMap(store)),
        TurnQueue(MAX_MAPS, MAPS_AT_ONCE, TOO_MANY_MAPS),
        stack.enter_context(MaintenanceTasks(settings)),
        instruments,
        DiskUse(partial(kept_sizes, blobs)),
        DiskUse(partial(sizes, settings.backup_dir) if settings.backup_dir else None),
    )


def open_models(settings: Settings, instruments: Instruments) -> tuple[Embedder, VectorSpace, VectorSpace]:
    """Return the model that the database's vectors are of, its space, and that of the one that the settings name.

    Where the first is not to be found it is the other, which the store refuses.
    """
    named = open_embedder(
        settings.model_dir, settings.data_dir, settings.device, settings.precision, on_batch=instruments.embedded
    )
    wanted = VectorSpace.of(named.spec, settings.model_dir)
    in_use = space_in_use(settings.database_url, settings.data_dir, wanted)
    if in_use == wanted:
        return named, wanted, wanted
    try:
        found = open_model_of(in_use, settings, instruments.embedded)
    except ModelError:
        return named, wanted, wanted
    logger.warning("the vectors are of %s, and stay so until 'kb reembed' makes those of %s", in_use, wanted)
    return found, in_use, wanted


def retention_of(settings: Settings) -> Retention:
    """Return how long what was changed or deleted is kept."""
    return Retention(
        settings.history_days, settings.history_mb << 20, settings.bin_days, settings.audit_days, settings.audit_lines
    )


def limits_of(settings: Settings) -> Limits:
    """Return what reading one file may take, and give."""
    return Limits(
        settings.parse_seconds,
        settings.parse_memory_mb,
        settings.parse_output_mb,
        settings.parse_pages,
        settings.index_ratio,
        settings.max_tags if settings.own_tags else 0,
        settings.max_tag_chars,
    )


def extractors_of(settings: Settings) -> Extractors:
    """Return what reads the files that no reader does.

    Raises:
        SettingError: the setting is wrong, or a program is not there.
    """
    try:
        return Extractors.parse(settings.extractors, settings.ocr)
    except ValueError as error:
        raise SettingError(f"KB_EXTRACTORS, KB_OCR: {error}") from None


def drawing_limits(settings: Settings) -> Limits:
    """Return what drawing one page may take."""
    return replace(limits_of(settings), seconds=min(settings.parse_seconds, DRAWING_SECONDS))


def about(embedder: Embedder) -> dict[str, str]:
    """Return what the engine is, as a metric."""
    model = {"model": embedder.spec.name, "precision": embedder.spec.precision, "provider": embedder.provider}
    return {"version": __version__} | model


async def ready(request: Request) -> bool:
    """Return whether the model is warm and the database answers."""
    services: Services | Core | None = request.app.state.services
    return services is not None and await run_in_threadpool(answers, services.store)


def answers(store: Store) -> bool:
    """Return whether the database can be read; the log says why not."""
    try:
        store.check()
    except (StoreError, StoreUnavailable) as error:
        logger.warning("%s", error)
        return False
    return True
