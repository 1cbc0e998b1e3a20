"""Backups, checks, and every vector made anew by another model, for those who may do anything."""

from __future__ import annotations

from fastapi import APIRouter

from kb.api.models import Reembedding, ReembedRequest
from kb.api.overview_models import Maintenance, MaintenanceRequest
from kb.routes.dependencies import ADMIN, ServicesDep
from kb.routes.problems import problems
from kb.routes.thread_route import ThreadRoute

router = APIRouter(route_class=ThreadRoute)


@router.get("/reembed", summary="Get the state of the vectors", tags=["reembed"], dependencies=[ADMIN])
def get_reembedding(services: ServicesDep) -> Reembedding:
    """Say what the vectors are of, and how far others are made that are to take their place."""
    return services.reembedder.progress()


@router.post(
    "/reembed",
    summary="Make every vector anew",
    tags=["reembed"],
    dependencies=[ADMIN],
    responses=problems(400, 409, 413, 507),
)
def change_reembedding(reembed_request: ReembedRequest, services: ServicesDep) -> Reembedding:
    """Have every vector made anew in the background by the model that the settings name, or stop that, or take it back.

    Searches go on with the vectors in use, until all others are made: they take their place at once then.
    """
    return services.reembedder.act(reembed_request.action)


@router.get("/maintenance", summary="Get the backups and the last check", tags=["maintenance"], dependencies=[ADMIN])
def get_maintenance(services: ServicesDep) -> Maintenance:
    """The backups that there are, and what was found when the data were last checked."""
    return services.maintenance.state()


@router.post(
    "/maintenance",
    summary="Back up, check or repair",
    status_code=202,
    tags=["maintenance"],
    dependencies=[ADMIN],
    responses=problems(400, 409, 413),
)
def begin_maintenance(maintenance_request: MaintenanceRequest, services: ServicesDep) -> Maintenance:
    """Begin it in the background, in a process of its own. `GET /maintenance` says how far it is."""
    return services.maintenance.begin(maintenance_request.action)
