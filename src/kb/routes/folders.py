"""Synced and watched folders."""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Path, Request

from kb.api.errors import FolderTaken, Forbidden, NotFound
from kb.api.folder_models import (
    FolderClaim,
    KnownWatch,
    KnownWatches,
    SeenWatches,
    SyncedFolder,
    SyncedFolders,
    WatchId,
    WatchReport,
    WatchRequest,
)
from kb.api.limit_errors import check_tags
from kb.documents import watched_folders
from kb.routes.dependencies import READ, WRITE, Services, ServicesDep, check_right, get_caller
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.store import rows
from kb.store.protocol import Store

Id = Annotated[WatchId, Path(description="The id of the watch.")]

router = APIRouter(route_class=ThreadRoute, prefix="/folders", tags=["folders"])


@router.get("", summary="List synced folders", dependencies=[READ])
def list_folders(services: ServicesDep) -> SyncedFolders:
    """Return the folders of `kb sync` and `kb watch`, and the files in them that kb skips."""
    with services.store.view() as tx:
        folders, left_out = tx.folders.all(), tx.folders.left_out()
    return SyncedFolders(folders=list(map(watched_folders.shown, folders)), left_out=left_out)


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
    return watched_folders.shown(claim(services.store, folder, take_over=folder_claim.take_over))


@router.put(
    "/watches/{watch_id}", summary="Watch a folder", dependencies=[WRITE], responses=problems(400, 404, 409, 413, 507)
)
def watch_folder(watch_id: Id, watch_request: WatchRequest, services: ServicesDep, request: Request) -> SyncedFolder:
    """Record that a program on a machine watches a registered folder there. The id is the program's choice.

    With `both`, the engine itself keeps the folder, which needs all rights.
    """
    check_tags(tags=watch_request.tags)
    if watch_request.both:
        check_may_keep(request, services)
    with services.store.write() as tx:
        folder = watched_folders.begin(tx, watch_id, watch_request)
        if watch_request.both:
            services.kept_folders.check(folder, watch_request)
    services.kept_folders.follow()
    return watched_folders.shown(folder)


@router.delete(
    "/watches/{watch_id}", summary="Stop watching a folder", dependencies=[WRITE], responses=problems(404, 507)
)
def stop_watching(watch_id: Id, services: ServicesDep) -> SyncedFolder:
    """Forget a watch. The documents of the folder stay. The program that watches it stops within seconds."""
    with services.store.write() as tx:
        folder = watched_folders.end(tx, watch_id)
    services.kept_folders.follow()
    return watched_folders.shown(folder)


@router.post(
    "/watches/{watch_id}/sync", summary="Sync a watched folder now", dependencies=[WRITE], responses=problems(404, 507)
)
def sync_now(watch_id: Id, services: ServicesDep) -> SyncedFolder:
    """Ask the program that watches a folder for a round. `asked_at` is set until the round has ended."""
    with services.store.write() as tx:
        return watched_folders.shown(watched_folders.ask(tx, watch_id))


@router.post(
    "/watches/{watch_id}/report",
    summary="Report a round of a watched folder",
    dependencies=[WRITE],
    responses=problems(400, 404, 413, 507),
)
def report_round(watch_id: Id, watch_report: WatchReport, services: ServicesDep) -> SyncedFolder:
    """Record the result of a round, or the reason why it did not run."""
    with services.store.write() as tx:
        return watched_folders.shown(watched_folders.report(tx, watch_id, watch_report))


@router.post("/seen", summary="Report running watches", dependencies=[WRITE], responses=problems(400, 413, 507))
def note_running(seen_watches: SeenWatches, services: ServicesDep) -> KnownWatches:
    """Record which watches a program runs, and return the known watches. A program calls this every few seconds."""
    seen = {watch.id: watch.is_syncing for watch in seen_watches.watches}
    with services.store.view() as tx:
        watched = list(watched_folders.watched(tx))
    # Another machine may have a copy of the records.
    known = [record for folder, record in watched if record.id in seen and folder.machine == seen_watches.machine]
    for record in known:
        if not watched_folders.is_noted(record, is_syncing=seen[record.id]):
            with suppress(NotFound), services.store.write() as tx:  # it may have ended
                watched_folders.note(tx, record.id, is_syncing=seen[record.id])
    return KnownWatches(watches=[KnownWatch.model_validate(record) for record in known])


def check_may_keep(request: Request, services: Services) -> None:
    """Refuse to keep a folder for strangers and limited keys: kb writes there with the rights of its own account.

    Raises:
        Forbidden: the caller does not have all rights, or other machines can connect without a key.
    """
    check_right(request, "admin")
    state = services.live_settings.state()
    if get_caller(request, services).limit or (state.reachable and not state.keyed):
        raise Forbidden("Only a key with all rights can let kb write to a folder. If there is none yet, make one.")


def claim(store: Store, folder: rows.SyncedFolder, *, take_over: bool) -> rows.SyncedFolder:
    """Register a synced folder under its prefix, and return it with its watch.

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
            if other.prefix != folder.prefix:
                tx.folders.remove(other.prefix)
        tx.folders.put(folder)
        return next(known for known in tx.folders.all() if known.prefix == folder.prefix)


def is_in_conflict(one: rows.SyncedFolder, other: rows.SyncedFolder) -> bool:
    """Return whether two folders have different files but would change the same documents."""
    outer, inner = sorted((one, other), key=lambda folder: len(folder.prefix))
    if not inner.prefix.startswith(outer.prefix):
        return False
    place = inner.prefix.removeprefix(outer.prefix).rstrip("/")
    return one.machine != other.machine or inner.path != "/".join(filter(None, (outer.path.rstrip("/"), place)))
