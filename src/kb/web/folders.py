"""Show synced folders and their last rounds, and sync them now."""

from __future__ import annotations

import shlex
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kb.web.document_html import Row, plain
from kb.web.pages import redirect, render
from kb.web.sessions import Notice, Visit

MAX_PATH: Final = 500


async def folders(request: Request, visit: Visit) -> Response:
    """List the watched folders, and the folders that were synced by a command."""
    rows = list(map(folder_row, (await visit.engine.folders())["folders"]))
    watched = [row for row in rows if row["watch"]]
    return render(
        request,
        "folders.html",
        watched=watched,
        others=[row for row in rows if not row["watch"]],
        is_busy=any(map(is_busy, watched)),
    )


def folder_row(folder: Row) -> Row:
    """Return a folder with printable names, and the command that confirms deletions."""
    name = folder["prefix"].rstrip("/") or "/"
    confirm = plain(shlex.join(["kb", "watch", "now", name, "--yes"]), MAX_PATH)
    shown = {key: plain(folder[key], MAX_PATH) for key in ("path", "host")}
    return folder | shown | {"name": plain(name, MAX_PATH), "confirm": confirm}


def is_busy(row: Row) -> bool:
    """Return whether a folder is syncing, or will soon."""
    watch = row["watch"]
    return watch["state"] == "syncing" or bool(watch["asked_at"] and watch["state"] != "stopped")


async def sync_folder(request: Request, visit: Visit) -> Response:
    """Ask for a round of a watched folder."""
    await visit.form(request)
    await visit.engine.sync_now(request.path_params["watch_id"])
    return redirect(visit, "folders")


async def stop_folder(request: Request, visit: Visit) -> Response:
    """Stop watching a folder."""
    await visit.form(request)
    stopped = await visit.engine.stop_watching(request.path_params["watch_id"])
    visit.leave_notice(Notice(f"kb no longer watches {stopped['path']}. Its documents stay."))
    return redirect(visit, "folders")
