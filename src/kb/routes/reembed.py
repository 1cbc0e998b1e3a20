"""Every vector made anew by another model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from kb.api.models import Reembedding, ReembedRequest
from kb.routes.dependencies import ADMIN, ServicesDep
from kb.routes.problems import problems
from kb.routes.thread_route import ThreadRoute

if TYPE_CHECKING:
    from kb.worker.reembed import Progress

router = APIRouter(route_class=ThreadRoute, tags=["reembed"])


@router.get("/reembed", summary="Get the state of the vectors", dependencies=[ADMIN])
def get_reembedding(services: ServicesDep) -> Reembedding:
    """Say what the vectors are of, and how far others are made that are to take their place."""
    return reembedding(services.reembedder.progress())


@router.post("/reembed", summary="Make every vector anew", dependencies=[ADMIN], responses=problems(400, 409, 413, 507))
def change_reembedding(wanted: ReembedRequest, services: ServicesDep) -> Reembedding:
    """Have every vector made anew in the background by the model that the settings name, or stop that, or take it back.

    Searches go on with the vectors in use, until all others are made: they take their place at once then.
    """
    return reembedding(services.reembedder.act(wanted.action))


def reembedding(progress: Progress) -> Reembedding:
    """Return how far it is, as it is answered."""
    second = progress.second
    return Reembedding(
        in_use=str(progress.in_use),
        wanted=str(progress.wanted),
        other=str(second.space) if second else None,
        state=second.state if second else None,
        done=progress.done,
        total=progress.total,
        error=progress.error,
    )
