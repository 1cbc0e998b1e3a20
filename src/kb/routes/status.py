"""GET /status."""

from __future__ import annotations

from fastapi import APIRouter

from kb import __version__
from kb.api.models import ModelStatus, QueueStatus, Status
from kb.routes.services import EngineDep
from kb.routes.thread_route import ThreadRoute

router = APIRouter(route_class=ThreadRoute, tags=["status"])


@router.get("/status", summary="Get the engine's state")
def status(engine: EngineDep) -> Status:
    """Say what this engine is, and how much is in it."""
    embedder = engine.embedder
    with engine.store.read() as tx:
        counts = tx.counts()
    return Status(
        version=__version__,
        schema_version=engine.store.schema_version,
        model=ModelStatus(
            name=embedder.model,
            dimensions=embedder.dimensions,
            window=embedder.window,
            precision=embedder.precision,
        ),
        device=embedder.device,
        provider=embedder.provider,
        documents=counts.documents,
        chunks=counts.chunks,
        queue=QueueStatus(**{state: counts.jobs.get(state, 0) for state in ("queued", "running", "done", "failed")}),
        database_size=counts.size,
    )
