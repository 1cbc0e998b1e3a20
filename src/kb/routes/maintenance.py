"""Backups and examinations, for those who may do anything."""

from __future__ import annotations

from fastapi import APIRouter

from kb.api.overview_models import Maintenance, MaintenanceRequest
from kb.routes.dependencies import ADMIN, ServicesDep
from kb.routes.problems import problems
from kb.routes.thread_route import ThreadRoute

router = APIRouter(route_class=ThreadRoute, tags=["maintenance"])


@router.get("/maintenance", summary="Get the backups and the last examination", dependencies=[ADMIN])
def get_maintenance(services: ServicesDep) -> Maintenance:
    """The backups that there are, and what was found when the data were last examined."""
    return services.maintenance.state()


@router.post(
    "/maintenance",
    summary="Back up or examine",
    status_code=202,
    dependencies=[ADMIN],
    responses=problems(400, 409, 413),
)
def begin_maintenance(wanted: MaintenanceRequest, services: ServicesDep) -> Maintenance:
    """Begin it in the background, in a process of its own. `GET /maintenance` says how far it is."""
    return services.maintenance.begin(wanted.action)
