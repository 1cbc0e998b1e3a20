"""Writing notes."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse

from kb.api.errors import Changed, Invalid, NotANote, TooLarge, TooManyTags
from kb.web.documents import split_tags
from kb.web.forms import MAX_FIELD
from kb.web.pages import HEADERS, redirect, render
from kb.web.text import markdown

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.requests import Request
    from starlette.responses import Response

    from kb.web.pages import Row
    from kb.web.visits import Visit

WAIT_SECONDS = 20
HASH: Final = re.compile("[0-9a-f]{64}")


async def new(request: Request, visit: Visit) -> Response:
    """Write a note."""
    if request.method != "POST":
        await visit.require()
        params = request.query_params
        text = "\n\n".join(filter(None, (params.get("text"), params.get("url"))))
        draft = {"title": params.get("title", ""), "text": text, "tags": params.get("tags", "")}
        return render(request, "edit.html", draft=draft, id=None, content_hash="", wrong=None)
    form = await note_form(request, visit)
    draft = sent(form)
    try:
        note = {name: value for name, value in draft.items() if name != "tags" and value}
        job = await visit.engine.add_note(**note, tags=split_tags(draft["tags"]), wait=WAIT_SECONDS)
    except (Invalid, TooLarge) as error:
        return render(request, "edit.html", error.status, draft=draft, id=None, content_hash="", wrong=error.detail)
    saved = f"d/{job['document_id']}" if job["document_id"] else "jobs"
    return redirect(visit, f"{saved}?saved=new")


async def edit(request: Request, visit: Visit) -> Response:
    """Change a note, unless someone else has meanwhile."""
    note_id = request.path_params["id"]
    note = await visit.engine.document(note_id)
    if note["doc_type"] != "note":
        raise NotANote
    if request.method != "POST":
        draft = as_draft(note)
        return render(request, "edit.html", draft=draft, id=note_id, content_hash=note["content_hash"], wrong=None)
    form = await note_form(request, visit)
    draft, base = sent(form), str(form.get("content_hash", ""))
    tags, former = split_tags(draft["tags"]), note["tags"]
    try:
        if not HASH.fullmatch(base):  # it does not say which text it changes
            raise Changed
        await visit.engine.update_note(
            note_id,
            draft["text"],
            if_match=base,
            title=draft["title"] or None,
            tags_add=[tag for tag in tags if tag not in former],
            tags_remove=[tag for tag in former if tag not in tags],
        )
    except Changed:
        note = await visit.engine.document(note_id)
        return render(
            request,
            "conflict.html",
            412,
            mine=draft,
            theirs=as_draft(note),
            id=note_id,
            content_hash=note["content_hash"],
        )
    except (Invalid, TooLarge, TooManyTags) as error:
        return render(
            request, "edit.html", error.status, draft=draft, id=note_id, content_hash=base, wrong=error.detail
        )
    return redirect(visit, f"d/{note_id}?saved={note_id}")


async def preview(request: Request, visit: Visit) -> Response:
    """A note's text as it will be shown."""
    form = await note_form(request, visit)
    html = await asyncio.to_thread(markdown, str(form.get("text", ""))[:200_000])
    return HTMLResponse(str(html), headers=HEADERS)


async def note_form(request: Request, visit: Visit) -> FormData:
    """Return a form whose fields may hold a note. Raises as `Visit.form`."""
    return await visit.form(request, field=max(MAX_FIELD, 4 * request.app.state.settings.max_note_chars))


def sent(form: FormData) -> dict[str, str]:
    """Return what was written, with the line ends of a text."""
    return {name: str(form.get(name, "")).replace("\r\n", "\n") for name in ("title", "text", "tags")}


def as_draft(note: Row) -> dict[str, str]:
    """Return a note as the form shows it: as it is, since what the form shows is what it saves."""
    return {
        "title": note["title"],
        "text": "".join(chunk["text"] for chunk in note["chunks"]),
        "tags": ", ".join(note["tags"]),
    }
