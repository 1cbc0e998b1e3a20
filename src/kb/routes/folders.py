"""The folders that are kept in step."""

from __future__ import annotations

from fastapi import APIRouter

from kb.api.models import FolderClaim, SyncedFolder, SyncedFolders
from kb.documents.folders import claim
from kb.routes.dependencies import READ, WRITE, ServicesDep
from kb.routes.problems import problems
from kb.routes.thread_route import ThreadRoute
from kb.store import rows

router = APIRouter(route_class=ThreadRoute, prefix="/folders", tags=["folders"])


@router.get("", summary="List synced folders", dependencies=[READ])
def list_folders(services: ServicesDep) -> SyncedFolders:
    """The folders that `kb sync` keeps in step, and the files that stay out."""
    with services.store.view() as tx:
        folders, left_out = tx.folders.all(), tx.folders.left_out()
    return SyncedFolders(folders=[SyncedFolder.model_validate(each) for each in folders], left_out=left_out)


@router.put("", summary="Claim a folder", dependencies=[WRITE], responses=problems(400, 409, 413, 507))
def claim_folder(wanted: FolderClaim, services: ServicesDep) -> SyncedFolder:
    """Keep a folder of a machine in step under a name. Each name belongs to one folder of one machine."""
    folder = rows.SyncedFolder(wanted.prefix, wanted.machine, wanted.host, wanted.path, wanted.mounts, rows.now_iso())
    claim(services.store, folder, take_over=wanted.take_over)
    return SyncedFolder.model_validate(folder)
