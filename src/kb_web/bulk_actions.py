"""Change many documents or jobs at once, as one operation that can be undone."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from typing import Final

from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Invalid, KbError, NotFound
from kb.api.job_error_phrases import remedy_for
from kb.api.tag_tree import split_tags
from kb.folders.safe_names import safe_name
from kb_web.document_html import Row, plain
from kb_web.documents import Linking, documents_asked, folder_of_file, linking_documents, number_in, told_of
from kb_web.export_zip import exported
from kb_web.notices import one_operation, place_in
from kb_web.pages import count, redirect, render, zone_of
from kb_web.sessions import Notice, Visit

Act = Callable[[int], Awaitable[object]]

DONE: Final = {
    "retag": "Tags changed in",
    "move": "Moved",
    "delete": "Deleted",
    "restore": "Restored",
    "purge": "Deleted for good:",
    "retry": "Trying again:",
    "dismiss": "Dismissed",
}
UNCHANGED: Final = {
    "retag": "The tags were already like that, so kb changed nothing.",
    "move": "The documents were already in this folder, so kb changed nothing.",
}
OF_JOBS: Final = ("retry", "dismiss")
OF_BIN: Final = ("restore", "purge")
FINAL: Final = (*OF_JOBS, "purge")
"""Actions that cannot be undone."""
SECONDS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{3}")


@dataclass(slots=True)
class Tally:
    """The numbers of rows that were changed and not changed, with the first reason."""

    done: int = 0
    skipped: int = 0
    reason: str = ""


async def many(request: Request, visit: Visit) -> Response:
    """Change the selected rows of a list, or all rows that match its filters."""
    form = await visit.form(request)
    act, back = wanted(form), place_in(form)
    if not act:
        return redirect(visit, back)
    if act == "export":
        return await exported(visit, await chosen(visit, form, act, zone_of(request)))
    if act not in DONE:
        raise Invalid("act: choose an action for the selected rows.")
    ids = await chosen(visit, form, act, zone_of(request))
    kept = number_in(str(form.get("keep", "")))
    linking = await linking_documents(visit, ids, kept) if act == "delete" else Linking([])
    if act == "delete" and form.get("sure") != "1":
        synced = await synced_files(visit, ids)
        if synced or (linking.documents and kept is not None):
            shown: Row = {"ids": ids, "synced": synced, "linking": linking, "kept": kept, "back": back}
            shown |= {"where": str(form.get("where", "")), "seen": str(form.get("seen", ""))}
            shown["is_all"] = form.get("all") == "1" and "found" not in form
            return render(request, "delete_many.html", **shown)
    if act in FINAL:
        visit.leave_notice(Notice(told(act, await carry_out(ids, await action(visit, act, form)))))
        return redirect(visit, back)
    async with one_operation(visit, back) as outcome:
        tally = await carry_out(ids, await action(visit, act, form))
        outcome.text = told(act, tally) + (told_of(linking, "them") if tally.done else "")
        if not tally.skipped:
            outcome.if_unchanged = UNCHANGED.get(act, "")
    return redirect(visit, back)


def wanted(form: FormData) -> str:
    """Return the action of a form; empty if it has none, as Enter on a check box sends it.

    Enter in a field also sends none, so the field decides.
    """
    act = str(form.get("act", ""))
    if act:
        return act
    if str(form.get("folder", "")).strip():
        return "move"
    return "retag" if any(str(form.get(name, "")).strip() for name in ("add", "remove")) else ""


async def chosen(visit: Visit, form: FormData, act: str, zone: tzinfo) -> list[int]:
    """Return the ids of the selected rows, or of all that match; the document to keep is not among them.

    Raises:
        Invalid: no row is selected, or the list or one of the duplicates has changed.
        NotFound: the document to keep does not exist.
    """
    if form.get("all") == "1" and "found" not in form:
        params, total = QueryParams(str(form.get("where", ""))), number_in(str(form.get("total", "")))
        asked = documents_asked(params, zone)
        return await every(visit, act, asked, total, seconds_in(str(form.get("seen", ""))))
    given = str(form.get("found")).split(",") if form.get("all") == "1" else form.getlist("id")
    ids = [number for each in given if (number := number_in(str(each))) is not None]
    if (kept := number_in(str(form.get("keep", "")))) is not None:
        await check_copies(visit, ids, kept, seconds_in(str(form.get("seen", ""))))
        ids = [number for number in ids if number != kept]
    if not ids:
        raise Invalid("id: select at least one row first.")
    return list(dict.fromkeys(ids))


async def check_copies(visit: Visit, ids: list[int], kept: int, seen: float) -> None:
    """Refuse to keep only one document of a page made at `seen` if one of them has changed since then.

    Raises:
        Invalid: a document has changed, so it may no longer be a duplicate.
        NotFound: the document to keep does not exist.
    """
    for number in dict.fromkeys([kept, *ids]):
        try:
            document = await visit.engine.document(number, chunks=1)
        except NotFound:
            if number == kept:
                raise
        else:
            if last_change(document) > seen:
                title = plain(document["title"], 100) or f"Document {number}"
                raise Invalid(f"keep: “{title}” has changed. Go back, reload the page, and look at it again.")


async def every(visit: Visit, act: str, asked: Row, total: int | None, seen: float) -> list[int]:
    """Return the ids of all rows of a list; of failed jobs, only the ids of jobs that the action can change.

    Raises:
        Invalid: the list differs from the page with `total` documents that was made at `seen`.
    """
    if act in OF_JOBS:
        failed = [job async for job in visit.engine.iter_jobs(status="failed") if seconds(job["finished_at"]) <= seen]
        return [job["id"] for job in failed if act == "dismiss" or remedy_for(job["error"]) == "retry"]
    documents = visit.engine.iter_bin() if act in OF_BIN else visit.engine.iter_documents(**asked)
    rows = [document async for document in documents]
    check_unchanged(rows, total, seen)
    return [document["id"] for document in rows]


def check_unchanged(documents: list[Row], total: int | None, seen: float) -> None:
    """Refuse to change all documents of a list that differs from the list on the page.

    Args:
        documents: the documents now.
        total: their number on the page.
        seen: the time of the page in seconds.

    Raises:
        Invalid: documents were added, changed or removed since then.
    """
    if len(documents) != total:
        now = f"has {count(len(documents), 'document')} now"
    elif any(last_change(document) > seen for document in documents):
        now = "has changed"
    else:
        return
    raise Invalid(f"all: the list {now}. Go back, reload it, and choose the action again.")


def last_change(document: Row) -> float:
    return seconds(document.get("deleted_at") or document["updated_at"] or document["created_at"])


def seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def seconds_in(text: str) -> float:
    """Return the number of seconds in a text, 0 without one."""
    return float(text) if SECONDS.fullmatch(text) else 0.0


async def action(visit: Visit, act: str, form: FormData) -> Act:
    engine = visit.engine
    if act == "retag":
        add, remove = split_tags(str(form.get("add", ""))), split_tags(str(form.get("remove", "")))
        if not (add or remove):
            raise Invalid("add, remove: name the tags to add or to remove.")
        return lambda number: engine.change_tags(number, add=add, remove=remove)
    if act == "move":
        folder, folders = str(form.get("folder", "")).strip(), (await engine.folders())["folders"]
        if not folder:
            raise Invalid("folder: name the folder to move the documents to.")
        return lambda number: move(visit, number, folder, folders)
    if act == "delete":
        leave_out = form.get("leave_out") == "1"
        return lambda number: engine.delete_document(number, leave_out=leave_out)
    simple: dict[str, Act] = {
        "restore": engine.restore,
        "purge": partial(engine.delete_document, purge=True, only_binned=True),
        "retry": engine.retry_job,
        "dismiss": engine.drop_job,
    }
    return simple[act]


async def move(visit: Visit, document_id: int, folder: str, folders: list[Row]) -> None:
    """Move a document to a folder under its file name; a note without a file gets the name of its title.

    For a note in a vault, the folder is one of the vault, unless its path says otherwise.

    Raises:
        Invalid: it has no file name, its file is in a synced folder, or it would leave its vault.
    """
    shown = await visit.engine.document(document_id, chunks=1)
    path = shown["source_path"]
    name = path.rpartition("/")[2] if path else safe_name(f"{shown['title'].replace('/', '-')}.md")
    if not name or shown["part_of"] or not (path or shown["doc_type"] == "note"):
        raise Invalid("It has no file of its own.")
    if folder_of_file(shown, folders):
        raise Invalid("Its file is in a synced folder. Move the file there.")
    prefixes = sorted((each["prefix"] for each in folders), key=len, reverse=True)
    around = next((each for each in prefixes if (path or "").startswith(each)), "")
    is_whole = folder.startswith("/") or any(f"{folder}/".startswith(each) for each in prefixes)
    place = folder if is_whole else f"{around}{folder}"
    await visit.engine.move_document(document_id, f"{place.rstrip('/')}/{name}")


async def carry_out(ids: list[int], act: Act) -> Tally:
    """Change the rows one after another; skip rows that cannot be changed."""
    tally = Tally()
    for number in ids:
        try:
            await act(number)
        except KbError as error:
            tally.skipped += 1
            tally.reason = tally.reason or error.detail
        else:
            tally.done += 1
    return tally


def told(act: str, tally: Tally) -> str:
    """Return the outcome in words."""
    noun = "failed job" if act in OF_JOBS else "document"
    skipped = f" {count(tally.skipped, noun)} not changed: {plain(tally.reason, 300)}" if tally.skipped else ""
    return f"{DONE[act]} {count(tally.done, noun)}.{skipped}"


async def synced_files(visit: Visit, ids: list[int]) -> list[Row]:
    """Return the synced folders that contain files of the documents, each with their number."""
    folders = (await visit.engine.folders())["folders"]
    if not folders:
        return []
    counts: dict[str, Row] = {}
    for document_id in ids:
        try:
            folder = folder_of_file(await visit.engine.document(document_id, chunks=1), folders)
        except KbError:
            continue
        if folder:
            row = counts.setdefault(folder["prefix"], {"folder": folder, "count": 0})
            row["count"] += 1
    return list(counts.values())
