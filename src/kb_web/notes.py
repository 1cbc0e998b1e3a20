"""Write and edit notes."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from kb.api.errors import Changed, Forbidden, Invalid, KbError, NotANote, NotFound
from kb.api.fields import NOTE
from kb.api.tag_tree import clean_tag, split_tags
from kb.asgi.body_limits import MAX_FIELD
from kb.asgi.security_headers import PAGE_HEADERS
from kb.markdown.merge import merged
from kb.markdown.signs import plain_line, ticked
from kb_web.document_html import Row, plain
from kb_web.documents import number_in
from kb_web.forms import BYTES_OF_CHARACTER
from kb_web.history import shortened, version_row
from kb_web.markdown_html import rendered
from kb_web.notices import one_operation
from kb_web.pages import is_script, redirect, render
from kb_web.sessions import Notice, Visit
from kb_web.surroundings import surroundings_of_text

WAIT_SECONDS = 20
PREVIEWED: Final = 200_000
"""The number of characters of a note that the preview shows."""

DELETED: Final = (
    "This note was deleted while you were writing. Save your text as a new note, or restore the old note from the bin."
)
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
SEEN: Final = 20
"""The number of notes named after days among which the last file is looked for."""

HASH: Final = re.compile("[0-9a-f]{64}")

Draft = dict[str, str]
"""The contents of a note form: title, text and tags."""

NOTHING: Final[Draft] = {"title": "", "tags": ""}


async def new(request: Request, visit: Visit) -> Response:
    if request.method != "POST":
        await visit.require_writing()
        params = request.query_params
        text = "\n\n".join(filter(None, (params.get("text"), params.get("url"))))
        draft = {"title": params.get("title", ""), "text": text, "tags": params.get("tags", "")}
        return _form(request, draft, path=params.get("source_path", ""))
    form = await note_form(request, visit)
    draft, path = sent(form), str(form.get("source_path", ""))
    try:
        note: dict[str, Any] = {name: value for name, value in draft.items() if name != "tags" and value}
        if path and not (await visit.engine.documents(source_path=path, limit=1))["documents"]:
            note["source_path"] = path
        note |= {"tags": split_tags(draft["tags"]), "inline_tags": True}
        try:
            job = await visit.engine.add_note(**note)
        except Forbidden:  # a key that is limited to tags cannot use new paths
            if not note.pop("source_path", None):
                raise
            job = await visit.engine.add_note(**note)
        if job["document_id"] is None:  # a note with pictures, which become a file
            job |= await visit.engine.job(job["job_id"], wait=WAIT_SECONDS)
        if job["status"] == "failed":
            raise Invalid(f"The note was not saved: {job['error']}")
    except KbError as error:
        if is_script(request):
            raise
        return _form(request, draft, error=error, path=path)
    if notice := _known_notice(job):
        visit.leave_notice(notice)
    return saved(request, visit, f"d/{job['document_id']}" if job["document_id"] else "jobs", "new")


def saved(request: Request, visit: Visit, place: str, draft: object) -> Response:
    """Lead to what was saved; a script only learns the place."""
    place = f"{place}?saved={draft}"
    return JSONResponse({"place": place}) if is_script(request) else redirect(visit, place)


def _known_notice(answer: Row) -> Notice | None:
    """Return a notice if kb already had the text of a new note, or has similar notes."""
    links = tuple((f"d/{note['document_id']}", note["title"]) for note in answer.get("alike", ()))
    known = "kb already had this text." if answer["existed"] else ""
    similar = "Similar notes:" if links else ""
    text = " ".join(filter(None, (known, similar)))
    return Notice(text, links=links) if text else None


async def today(request: Request, visit: Visit) -> Response:
    """Lead to the note that is named after a day, or to a new one; without a day, it is the server's own."""
    await visit.require()
    asked = request.query_params.get("day", "")
    day = asked if DAY.fullmatch(asked) else f"{datetime.now().astimezone():%Y-%m-%d}"
    [link] = (await visit.engine.look_up_links(f"[[{day}]]"))["links"]
    if link["document_id"] is None:
        folder = await folder_of_days(visit)
        place = {"title": day} | ({"source_path": f"{folder}/{day}.md"} if folder else {})
        return redirect(visit, f"new?{urlencode(place)}")
    shown = await visit.engine.document(link["document_id"], chunks=1)
    return redirect(visit, f"d/{shown['id']}" + ("/edit" if shown["doc_type"] == "note" else ""))


async def folder_of_days(visit: Visit) -> str:
    """Return the folder of the last note with a file that is named after a day, or an empty string if there is none."""
    notes = (await visit.engine.documents(name="????-??-??*", doc_type=NOTE, sort="recent", limit=SEEN))["documents"]
    paths = (PurePosixPath(note["source_path"] or "") for note in notes)
    return next((str(path.parent) for path in paths if DAY.fullmatch(path.stem) and len(path.parts) > 1), "")


async def edit(request: Request, visit: Visit) -> Response:
    """Edit a note; show a conflict if it has changed since."""
    note_id = request.path_params["id"]
    if request.method != "POST":
        await visit.require_writing()
        note = await note_with(visit, note_id)
        return _form(request, as_draft(note), as_draft(note), note_id, note["content_hash"])
    form = await note_form(request, visit)
    mine, base = sent(form), str(form.get("content_hash", ""))
    try:
        note = await note_with(visit, note_id)
    except (NotFound, NotANote):
        if is_script(request):
            raise
        return _form(request, mine, error=NotFound(DELETED))
    shown = sent(form, "shown_") if "shown_tags" in form else as_draft(note)
    try:
        if not HASH.fullmatch(base):  # the form does not name the text that it changes
            raise Changed
        await visit.engine.update_note(note_id, mine["text"], if_match=base, inline_tags=True, **changes(mine, shown))
    except Changed:
        if conflict := await combine(visit, note_id, mine, shown, base):
            if is_script(request):
                raise
            return render(request, "conflict.html", 412, id=note_id, **conflict)
    except KbError as error:
        if is_script(request):
            raise
        return _form(request, mine, shown, note_id, base, error)
    return saved(request, visit, f"d/{note_id}", note_id)


async def tick(request: Request, visit: Visit) -> Response:
    """Tick or untick a task in the displayed text of a note."""
    form, note_id = await visit.form(request), request.path_params["id"]
    await visit.require_writing()
    note = await note_with(visit, note_id)
    lines, number = as_draft(note)["text"].split("\n"), number_in(str(form.get("line", ""))) or 0
    changed = ticked(lines[number - 1]) if 0 < number <= len(lines) else None
    start = number_in(str(form.get("from", "")))
    place = f"d/{note_id}?from={start}" if start else f"d/{note_id}"
    if changed is None or form.get("content_hash") != note["content_hash"]:
        visit.leave_notice(Notice("The note had changed in the meantime. Tick the task again."))
        return redirect(visit, place)
    lines[number - 1] = changed
    async with one_operation(visit, place) as outcome:
        text = "\n".join(lines)
        await visit.engine.update_note(note_id, text, if_match=note["content_hash"], inline_tags=True)
        outcome.text = f"Changed: {plain(plain_line(changed), 100)}"
    return redirect(visit, f"{place}#task-{number}")


async def combine(visit: Visit, note_id: int, mine: Draft, shown: Draft, base: str) -> Row | None:
    """Save a draft of a note that has changed since, combined by lines as in a notes folder.

    Return the fields of the page that shows a conflict, if both changed the same lines.
    """
    note, versions = await visit.engine.document(note_id), (await visit.engine.history(note_id))["versions"]
    theirs = as_draft(note)
    if mine == theirs:  # the answer to an earlier save was lost
        return None
    number = next((version["number"] for version in versions if version["content_hash"] == base), None)
    origin = (await visit.engine.version(note_id, number))["text"] if number else None
    text = None if origin is None else await asyncio.to_thread(merged, origin, mine["text"], theirs["text"])
    if text is not None:
        with suppress(Changed):
            change = changes(mine, shown)
            await visit.engine.update_note(
                note_id,
                text,
                if_match=note["content_hash"],
                inline_tags=True,
                **change,
                why="combined with other changes",
            )
            history = ((f"d/{note_id}/history", "History"),)
            visit.leave_notice(Notice("The note had changed in the meantime. kb combined both changes.", links=history))
            return None
    return {
        "mine": mine | with_fields(mine, shown, theirs),
        "theirs": theirs,
        "content_hash": note["content_hash"],
        "last": version_row(versions[0]),
        "changes": list(shortened([*differences(theirs["text"], mine["text"])])),
    }


def differences(before: str, after: str) -> Iterator[Row]:
    """Yield the differences of two texts by lines."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for kind, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
        for name, lines in (("equal" if kind == "equal" else "delete", old[start:end]), ("insert", new[first:last])):
            if lines and not (kind == "equal" and name == "insert"):
                yield {"kind": name, "text": "".join(lines)}


async def note_with(visit: Visit, note_id: int) -> Row:
    """Return a note. Raises `NotFound`, and `NotANote` for another document."""
    note = await visit.engine.document(note_id)
    if note["doc_type"] != "note":
        raise NotANote
    return note


async def preview(request: Request, visit: Visit) -> Response:
    form = await note_form(request, visit)
    text = str(form.get("text", "")).replace("\r\n", "\n")[:PREVIEWED]
    about = await surroundings_of_text(visit, text, number_in(str(form.get("id", ""))))
    html = await asyncio.to_thread(rendered, text, about)
    return HTMLResponse(str(html), headers=PAGE_HEADERS)


async def note_form(request: Request, visit: Visit) -> FormData:
    """Return a form with a size limit that fits a note. Raises the same errors as `Visit.form`."""
    return await visit.form(
        request, field=max(MAX_FIELD, BYTES_OF_CHARACTER * request.app.state.settings.max_note_chars)
    )


def sent(form: FormData, prefix: str = "") -> Draft:
    """Return the submitted fields with normalized line ends."""
    return {name: str(form.get(prefix + name, "")).replace("\r\n", "\n") for name in ("title", "text", "tags")}


def changes(mine: Draft, shown: Draft) -> dict[str, Any]:
    """Return the changes of title and tags between a form and the values it first showed."""
    former = split_tags(shown["tags"])
    tags = [tag if tag in former else clean_tag(tag) or tag for tag in split_tags(mine["tags"])]
    return {
        "title": mine["title"] if mine["title"] not in ("", shown["title"]) else None,
        "tags_add": [tag for tag in tags if tag not in former],
        "tags_remove": [tag for tag in former if tag not in tags],
    }


def with_fields(mine: Draft, shown: Draft, theirs: Draft) -> Draft:
    """Return the current title and tags of the note with the changes of the form applied."""
    change = changes(mine, shown)
    remaining = [tag for tag in split_tags(theirs["tags"]) if tag not in change["tags_remove"]]
    tags = dict.fromkeys([*remaining, *change["tags_add"]])
    return {"title": change["title"] or theirs["title"], "tags": ", ".join(tags)}


def as_draft(note: Row) -> Draft:
    """Return a note as form fields; nothing is changed, because the form saves the fields that it shows."""
    return {
        "title": note["title"],
        "text": "".join(chunk["text"] for chunk in note["chunks"]),
        "tags": ", ".join(note["tags"]),
    }


def _form(
    request: Request,
    draft: Draft,
    shown: Draft = NOTHING,
    note_id: int | None = None,
    content_hash: str = "",
    error: KbError | None = None,
    path: str = "",
) -> Response:
    """Return the form with a draft, and the original title and tags of the note."""
    fields = {"draft": draft, "shown": shown, "id": note_id, "content_hash": content_hash, "path": path}
    status = error.status if error else 200
    return render(request, "edit.html", status, wrong=error.detail if error else None, **fields)
