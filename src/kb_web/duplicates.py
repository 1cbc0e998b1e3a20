"""Show duplicates, and keep one of them."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Invalid
from kb.wording import describe_shared
from kb_web.bulk_actions import check_copies, seconds_in
from kb_web.document_html import Row, plain
from kb_web.documents import number_in
from kb_web.history import difference_shown
from kb_web.pages import later_page, redirect, render
from kb_web.rows import document_row
from kb_web.sessions import Notice, Visit

PAGE: Final = 20
SECONDS: Final = 1.5
"""The time after which the page appears, even if few near duplicates were found so far."""


async def duplicates(request: Request, visit: Visit) -> Response:
    """List documents with the same content, or with nearly the same text."""
    kind = "near" if request.query_params.get("kind") == "near" else "same"
    dismissed = kind == "near" and request.query_params.get("dismissed") == "1"
    cursor = request.query_params.get("cursor") or None
    before = number_in(request.query_params.get("seen")) or 0
    page, status = await asyncio.gather(found(visit, kind, cursor, dismissed), visit.engine.status())
    seen = before + page["compared"]
    for group in page["groups"]:
        group["documents"] = [document_row(document) for document in group["documents"]]
        group["have"] = describe_shared(group["total"], group["shared"])
    return render(
        request,
        "duplicates.html",
        kind=kind,
        groups=page["groups"],
        dismissed=dismissed,
        later=later_page(
            page,
            ("kind", kind),
            *([("seen", str(seen))] if kind == "near" else []),
            *([("dismissed", "1")] if dismissed else []),
        ),
        is_later=bool(cursor),
        compared=seen,
        total=sum(status["documents"].values()),
    )


async def dismiss(request: Request, visit: Visit) -> Response:
    """Leave a group of near duplicates out, or show it again, unless one has changed since the page was made."""
    form = await visit.form(request)
    ids = [number for each in form.getlist("id") if (number := number_in(str(each))) is not None]
    if not ids:
        raise Invalid("id: name the documents of a group.")
    dismissed = form.get("act") == "dismiss"
    await check_copies(visit, ids, ids[0], seconds_in(str(form.get("seen", ""))))
    await visit.engine.dismiss_duplicates(ids, dismissed=dismissed)
    place = "duplicates?kind=near"
    if dismissed:
        links = ((f"{place}&dismissed=1", "Dismissed groups"),)
        visit.leave_notice(Notice("kb leaves this group out until it changes.", links=links))
    else:
        visit.leave_notice(Notice("kb shows this group again."))
    return redirect(visit, place)


async def found(visit: Visit, kind: str, cursor: str | None, dismissed: bool) -> Row:
    """Return the next duplicates; look for near duplicates until some are found or time is up."""
    ends = time.monotonic() + SECONDS
    page = await visit.engine.duplicates(kind=kind, limit=PAGE, cursor=cursor, dismissed=dismissed)
    while len(page["groups"]) < PAGE and page["next_cursor"] and time.monotonic() < ends:
        more = await visit.engine.duplicates(kind=kind, limit=PAGE, cursor=page["next_cursor"], dismissed=dismissed)
        more["groups"] = page["groups"] + more["groups"]
        more["compared"] += page["compared"]
        page = more
    page["groups"].sort(key=lambda group: -(group["shared"] or 0))
    return page


async def compare(request: Request, visit: Visit) -> Response:
    ids = [request.path_params["id"], request.path_params["other"]]
    difference, *shown = await asyncio.gather(
        visit.engine.compare(*ids), *(visit.engine.document(number, chunks=1) for number in ids)
    )
    both, *own = (words_in(difference["changes"], each) for each in ("equal", "delete", "insert"))
    return render(
        request,
        "compare.html",
        both=both,
        own=own,
        documents=[document_row(document) for document in shown],
        titles=[plain(document["title"], 200) or "Untitled" for document in shown],
        fields=different_fields(*shown),
        **difference_shown(request, difference["changes"]),
    )


def words_in(changes: Sequence[Row], side: str) -> int:
    """Return the number of words in the changes of a kind."""
    return sum(len(each["text"].split()) for each in changes if each["kind"] == side)


def different_fields(one: Row, other: Row) -> list[tuple[str, str, str]]:
    """Return the fields with different values, which may come from front matter: their names and both values."""
    pairs = [("Title", one["title"], other["title"]), ("Date", one["date"], other["date"])]
    pairs.append(("Tags", ", ".join(sorted(one["tags"])), ", ".join(sorted(other["tags"]))))
    return [(name, plain(a or "", 400), plain(b or "", 400)) for name, a, b in pairs if (a or "") != (b or "")]
