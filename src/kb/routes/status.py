"""GET /status."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter

from kb import __version__
from kb.api.models import HistoryStatus, JobStatus, ModelStatus, ParserStatus, QueueStatus, Status
from kb.routes.dependencies import READ, ServicesDep
from kb.routes.thread_route import ThreadRoute

router = APIRouter(route_class=ThreadRoute, tags=["status"])


@router.get("/status", summary="Get the engine's state", dependencies=[READ])
def status(services: ServicesDep) -> Status:
    """Say what this engine is, and how much is in it."""
    embedder = services.embedder
    with services.store.read() as tx:
        counts, history = tx.counts(), tx.history.counts()
    return Status(
        version=__version__,
        schema_version=services.store.schema_version,
        model=ModelStatus(
            name=embedder.spec.name,
            dimensions=embedder.spec.dimensions,
            window=embedder.spec.window,
            precision=embedder.spec.precision,
        ),
        device=embedder.device,
        provider=embedder.provider,
        documents=counts.documents,
        chunks=counts.chunks,
        queue=QueueStatus(**dict.fromkeys(get_args(JobStatus), 0) | counts.jobs),
        parser=ParserStatus(confined=services.worker.confined, extracts=services.worker.extracts),
        history=HistoryStatus(versions=history.versions, size=history.size, begins=history.begins, bin=history.binned),
        database_size=counts.size,
    )
