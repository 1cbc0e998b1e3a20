"""Show synced folders and their last rounds, and sync them now."""

import asyncio
import shlex
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import PureWindowsPath
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Forbidden, Invalid, KbError
from kb.api.fields import NOTE
from kb.asgi.subapps import WatchFolder
from kb.folders.left_out import outcome_of
from kb_web.bulk_actions import carry_out
from kb_web.document_html import Row, plain
from kb_web.notices import one_operation
from kb_web.pages import count, redirect, render
from kb_web.sessions import Notice, Visit

MAX_PATH: Final = 500
STOP_SECONDS: Final = 5.0
"""The time in which a program ends its round of a folder that is no longer watched: it looks every two seconds."""

READ_SECONDS: Final = 60.0
FIELDS: Final = ("path", "name", "delete", "both")
"""The fields of the form that watches a folder."""


async def folders(request: Request, visit: Visit) -> Response:
    """List the watched folders, and the folders that were synced by a command; a form watches another folder."""
    if request.method != "POST":
        return await show(request, visit)
    form = await visit.form(request)
    sent = {name: str(form.get(name, "")).strip() for name in FIELDS}
    try:
        await require_all_rights(visit)
        outcome = await watch_folder(request, sent)
    except KbError as error:
        return await show(request, visit, error.status, wrong=error.detail, sent=sent)
    visit.leave_notice(Notice(plain(outcome, MAX_PATH)))
    return redirect(visit, "folders")


async def show(
    request: Request, visit: Visit, status: int = HTTPStatus.OK, wrong: str = "", sent: Row | None = None
) -> Response:
    rows = list(map(folder_row, (await visit.engine.folders())["folders"]))
    watched = [row for row in rows if row["watch"]]
    for row in watched:
        row["outcome"] = outcome_of(row["watch"]["result"]) if row["watch"]["result"] else ""
        row["documents"] = await visit.engine.count_documents(source_prefix=row["prefix"])
    may_watch = visit.right == "admin" and request.app.state.watch_folder and not await is_open_to_others(visit)
    return render(
        request,
        "folders.html",
        status,
        watched=watched,
        others=[row for row in rows if not row["watch"]],
        is_busy=any(map(is_busy, watched)),
        may_watch=may_watch,
        has_bin=await has_bin(visit),
        host=socket.gethostname(),
        wrong=wrong,
        sent=sent or dict.fromkeys(FIELDS, ""),
    )


async def require_all_rights(visit: Visit) -> None:
    """Refuse strangers and limited keys: kb reads a watched folder with the rights of its own account.

    Raises:
        Forbidden: the key does not have all rights, or other machines can connect without a key.
    """
    own = await visit.engine.own_rights()
    if own["right"] != "admin" or own["tags"] or own["path"]:
        raise Forbidden
    if await is_open_to_others(visit):
        raise Forbidden("Other machines can connect without a key. Make a key first, or run 'kb watch add'.")


async def is_open_to_others(visit: Visit) -> bool:
    """Return whether other machines may connect without a key."""
    state = await visit.engine.settings()
    return bool(state["reachable"] and not state["keyed"])


async def watch_folder(request: Request, sent: Mapping[str, str]) -> str:
    """Watch a folder of this machine, and return the outcome in words.

    Raises:
        Invalid: kb cannot watch it.
    """
    watch: WatchFolder | None = request.app.state.watch_folder
    if watch is None:
        raise Invalid("This server cannot watch folders. Run 'kb watch add' on the machine that has the folder.")
    if not sent["path"].startswith(("/", "~")) and not PureWindowsPath(sent["path"]).drive:
        raise Invalid("Enter the whole path of the folder, such as ~/Documents/vault or /home/ada/vault.")
    flags = {name: bool(sent[name]) for name in ("delete", "both")}
    return await asyncio.to_thread(watch, sent["path"], name=sent["name"], **flags)


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
    await visit.form(request)
    await visit.engine.sync_now(request.path_params["watch_id"])
    return redirect(visit, "folders")


async def stop_folder(request: Request, visit: Visit) -> Response:
    """Stop watching a folder. Its documents stay in kb, or go to the bin if the form asks for that."""
    form = await visit.form(request)
    id_ = request.path_params["watch_id"]
    folders = (await visit.engine.folders())["folders"]
    watches = [row["watch"] for row in folders if row["watch"]]
    is_both = any(watch["both"] for watch in watches if watch["id"] == id_)
    is_running = any(watch["state"] not in ("new", "stopped") for watch in watches if watch["id"] == id_)
    stopped = await visit.engine.stop_watching(id_)
    told = f"kb no longer watches {plain(stopped['path'], MAX_PATH)}, and its files stay there."
    keeps = form.get("bin") != "1" or not await has_bin(visit)
    if keeps or is_both:  # kb may still be writing to a folder of both sides
        visit.leave_notice(Notice(f"{told} Their documents stay in kb."))
        return redirect(visit, "folders")
    await until_read(visit, stopped["prefix"], is_running=is_running)
    others = [row["prefix"] for row in folders if row["prefix"] != stopped["prefix"]]
    ids = await ids_below(visit, stopped["prefix"], others)
    async with one_operation(visit, "folders") as outcome:
        await carry_out(ids, visit.engine.delete_document)  # attachments go with their mails
        left = len(await ids_below(visit, stopped["prefix"], others))
        stay = f" {count(left, 'document')} could not be moved." if left else ""
        outcome.text = f"{told} {count(len(ids) - left, 'document')} moved to the bin.{stay}"
        outcome.if_unchanged = told
    return redirect(visit, "folders")


async def has_bin(visit: Visit) -> bool:
    """Return whether deleted documents can be restored."""
    return bool((await visit.engine.status())["history"]["bin_days"])


async def ids_below(visit: Visit, prefix: str, others: Sequence[str]) -> list[int]:
    """Return the ids of the documents of a folder, without those of other folders inside it, and without notes.

    Nothing but its files made these documents; a note at such a path was written in kb, and a sync spares it too.
    """
    inner = tuple(other for other in others if other.startswith(prefix))
    documents = visit.engine.iter_documents(source_prefix=prefix)
    own = [row async for row in documents if not row["source_path"].startswith(inner)]
    return [row["id"] for row in own if row["doc_type"] != NOTE]


async def until_read(visit: Visit, prefix: str, *, is_running: bool) -> None:
    """Wait until the program that watched a folder sends no more files, and those that it sent are read."""
    if is_running:
        await asyncio.sleep(STOP_SECONDS)
    jobs = [job for status in ("queued", "running") async for job in visit.engine.iter_jobs(status=status)]
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_SECONDS):
            for job in jobs:
                if (job["source_path"] or "").startswith(prefix):
                    await visit.engine.wait_for_job(job["id"])
