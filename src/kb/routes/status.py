"""GET /status."""

import logging
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from kb import __version__, clock
from kb.api.document_models import TagCount
from kb.api.errors import StoreError, StoreUnavailable
from kb.api.fields import JobStatus
from kb.api.overview_models import Activity, Minute, Storage, Work
from kb.api.status_models import (
    ClockStatus,
    HistoryStatus,
    ModelStatus,
    ParserStatus,
    QueueStatus,
    ReplicaStatus,
    Status,
)
from kb.formats.installed_types import DOC_TYPES
from kb.routes.dependencies import READ, ServicesDep, get_caller
from kb.routes.thread_route import ThreadRoute
from kb.store.protocol import Store
from kb.telemetry import last_hour

TopTags = Annotated[int, Query(ge=0, le=100, description="How many of the most used tags to return.")]

router = APIRouter(route_class=ThreadRoute, tags=["status"])

logger = logging.getLogger(__name__)


@router.get("/activity", summary="Get the activity of the last hour", dependencies=[READ])
def activity(services: ServicesDep, request: Request) -> Activity:
    """Return the numbers and times of searches and added documents in the last hour, or since the engine's start."""
    if get_caller(request, services).limit:
        return Activity(searches=None, ingestions=None)
    instruments = services.instruments
    return Activity(searches=work(instruments.searches), ingestions=work(instruments.ingestions))


@router.get("/storage", summary="Get the size of the data", dependencies=[READ])
def storage(services: ServicesDep, request: Request) -> Storage:
    """Return the bytes of the database, the original files and the backups. kb measures the files every 5 minutes."""
    if get_caller(request, services).limit:
        return Storage(database=None, originals=None, backups=None)
    with services.store.read() as tx:
        database = tx.counts().size
    originals, backups = services.originals_use.size(), services.backups_use.size()
    return Storage(database=database, originals=originals, backups=backups)


def work(passed: last_hour.LastHour) -> Work:
    """Return the response for the activity of the last hour."""
    minutes = [Minute(**in_ms(minute)) for minute in passed.minutes()]
    return Work(**in_ms(passed.hour()), minutes=minutes)


def in_ms(minute: last_hour.MinuteCounts) -> dict[str, Any]:
    """Return the fields of a minute."""
    p50, p95 = (None if seconds is None else round(seconds * 1000, 1) for seconds in (minute.p50, minute.p95))
    return {"count": minute.count, "p50_ms": p50, "p95_ms": p95}


@router.get("/status", summary="Get the engine's state", dependencies=[READ])
def status(services: ServicesDep, request: Request, top_tags: TopTags = 0) -> Status:
    """Return the version, model and state of this engine, and the counts of its content."""
    embedder, folders = services.embedder, services.kept_folders
    is_limited = bool(get_caller(request, services).limit)
    with services.store.read() as tx:
        counts, history = tx.counts(), tx.history.counts()
        attention = [] if is_limited else services.attention(tx, counts)
    most_used = sorted(used_tags(services.store), key=lambda pair: -pair[1])[:top_tags] if top_tags else []
    return Status(
        version=__version__,
        schema_version=services.store.schema_version,
        full_text=services.store.full_text,
        model=ModelStatus.model_validate(embedder.spec),
        device=embedder.device,
        provider=embedder.provider,
        documents=counts.documents,
        doc_types=sorted(DOC_TYPES),
        languages=counts.languages,
        top_tags=[TagCount(tag=tag, documents=count) for tag, count in most_used],
        chunks=counts.chunks,
        precisions=counts.precisions,
        queue=QueueStatus(**dict.fromkeys(get_args(JobStatus), 0) | counts.jobs),
        parser=ParserStatus.model_validate(services.worker.sandbox),
        history=HistoryStatus(
            versions=history.versions,
            size=history.size,
            begins=history.begins,
            bin=history.binned,
            bin_days=services.settings.bin_days,
        ),
        database_size=counts.size,
        replica=ReplicaStatus.model_validate(replica) if (replica := services.store.replica) else None,
        clock=clock_status(),
        foreign=list(counts.foreign),
        notes_folder=None if is_limited else folders.status(),
        attention=attention,
    )


def used_tags(store: Store) -> list[tuple[str, int]]:
    """Return all tags that the caller sees, with their numbers of documents."""
    with store.view() as tx:
        return tx.documents.tags()


def clock_status() -> ClockStatus | None:
    """Return the jump of the machine's clock, if there is one."""
    jump = clock.own.look()
    return ClockStatus(moved=jump.moved, until=clock.shown(jump.until), says=clock.describe(jump)) if jump else None


async def ready(request: Request) -> bool:
    """Return whether the model is warm and the database answers."""
    services = request.app.state.services
    return services is not None and await run_in_threadpool(answers, services.store)


def answers(store: Store) -> bool:
    """Return whether the database can be read; the log says why not."""
    try:
        store.check()
    except (StoreError, StoreUnavailable) as error:
        logger.warning("%s", error)
        return False
    return True
