"""Backups, checks, repairs, re-embedding and the notes folder, for callers with all rights."""

from fastapi import APIRouter

from kb.api.errors import Invalid
from kb.api.folder_models import NotesFolderRequest, NotesFolderStatus
from kb.api.maintenance_models import ModelList, Reembedding, ReembedRequest
from kb.api.overview_models import Maintenance, MaintenanceRequest
from kb.routes.dependencies import ADMIN, ServicesDep
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.worker.model_list import list_models

router = APIRouter(route_class=ThreadRoute)


@router.get("/reembed", summary="Get the state of the vectors", tags=["reembed"], dependencies=[ADMIN])
def get_reembedding(services: ServicesDep) -> Reembedding:
    """Return the model of the vectors in use, and the progress of new vectors."""
    return services.reembedder.progress()


@router.post(
    "/reembed",
    summary="Recompute all vectors",
    tags=["reembed"],
    dependencies=[ADMIN],
    responses=problems(400, 409, 413, 507),
)
def change_reembedding(reembed_request: ReembedRequest, services: ServicesDep) -> Reembedding:
    """Recompute all vectors in the background with another model, or stop or undo this.

    Searches use the current vectors until all new ones are ready; then kb switches at once.
    """
    if reembed_request.model is None:
        return services.reembedder.act(reembed_request.action)
    if reembed_request.action != "start":
        raise Invalid("model: only 'start' takes a model.")
    return services.reembedder.use(reembed_request.model)


@router.get("/models", summary="List the models", tags=["reembed"], dependencies=[ADMIN])
def get_models(services: ServicesDep) -> ModelList:
    """Return the models that kb can use: their languages, their quality, and their time on this machine."""
    return list_models(services.store, services.embedder, services.settings)


@router.get("/maintenance", summary="Get the backups and the last check", tags=["maintenance"], dependencies=[ADMIN])
def get_maintenance(services: ServicesDep) -> Maintenance:
    """Return the backups, and the result of the last check of the data."""
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
    """Start a backup, a check or a repair in the background. `GET /maintenance` returns its progress."""
    return services.maintenance.begin(maintenance_request.action)


@router.post(
    "/notes-folder",
    summary="Decide about missing files",
    tags=["maintenance"],
    dependencies=[ADMIN],
    responses=problems(400, 409, 413),
)
def decide_about_missing_files(notes_folder_request: NotesFolderRequest, services: ServicesDep) -> NotesFolderStatus:
    """Delete the notes of files that are missing from the notes folder, or write these files again.

    kb asks if many files are missing at once. `GET /status` returns the state of the folder.
    """
    return services.kept_folders.act(notes_folder_request.action, notes_folder_request.folder)
