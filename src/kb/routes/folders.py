"""Synced folders."""

from __future__ import annotations

from fastapi import APIRouter

from kb.api.errors import FolderTaken
from kb.api.models import FolderClaim, SyncedFolder, SyncedFolders
from kb.routes.dependencies import READ, WRITE, ServicesDep
from kb.routes.problems import problems
from kb.routes.thread_route import ThreadRoute
from kb.store import rows
from kb.store.protocol import Store

router = APIRouter(route_class=ThreadRoute, prefix="/folders", tags=["folders"])


@router.get("", summary="List synced folders", dependencies=[READ])
def list_folders(services: ServicesDep) -> SyncedFolders:
    """Return the folders of `kb sync`, and the files in them that kb skips."""
    with services.store.view() as tx:
        folders, left_out = tx.folders.all(), tx.folders.left_out()
    return SyncedFolders(folders=[SyncedFolder.model_validate(folder) for folder in folders], left_out=left_out)


@router.put("", summary="Register a synced folder", dependencies=[WRITE], responses=problems(400, 409, 413, 507))
def claim_folder(folder_claim: FolderClaim, services: ServicesDep) -> SyncedFolder:
    """Register a folder of a machine under a name. Each name belongs to one folder of one machine."""
    folder = rows.SyncedFolder(
        folder_claim.prefix,
        folder_claim.machine,
        folder_claim.host,
        folder_claim.path,
        folder_claim.mounts,
        rows.now_iso(),
    )
    claim(services.store, folder, take_over=folder_claim.take_over)
    return SyncedFolder.model_validate(folder)


def claim(store: Store, folder: rows.SyncedFolder, *, take_over: bool) -> None:
    """Register a synced folder under its prefix.

    Raises:
        FolderTaken: another folder has this prefix, and `take_over` is not set; the message names that folder.
    """
    with store.write() as tx:
        others = [other for other in tx.folders.all() if is_in_conflict(folder, other)]
        if others and not take_over:
            [first, *_] = others
            raise FolderTaken(
                f"{first.prefix.rstrip('/')!r} is already the name of {first.path} on {first.host}, last synced at"
                f" {first.at}.",
                extra={
                    "machine": first.machine,
                    "host": first.host,
                    "path": first.path,
                    "prefix": first.prefix,
                    "mounts": first.mounts,
                },
            )
        for other in others:
            tx.folders.remove(other.prefix)
        tx.folders.put(folder)


def is_in_conflict(one: rows.SyncedFolder, other: rows.SyncedFolder) -> bool:
    """Return whether two folders have different files but would change the same documents."""
    outer, inner = sorted((one, other), key=lambda folder: len(folder.prefix))
    if not inner.prefix.startswith(outer.prefix):
        return False
    place = inner.prefix.removeprefix(outer.prefix).rstrip("/")
    return one.machine != other.machine or inner.path != "/".join(filter(None, (outer.path.rstrip("/"), place)))
