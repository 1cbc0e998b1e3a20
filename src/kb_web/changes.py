"""Show changes by operation, and undo them."""

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import KbError
from kb.wording import count_changes, describe_step
from kb_web.document_html import Row, plain
from kb_web.history import tag_words
from kb_web.notices import place_in
from kb_web.pages import count, later_page, redirect, render
from kb_web.sessions import Notice, Visit

PAGE: Final = 30
SHOWN: Final = 200
NAMED: Final = 3
"""The number of documents that the list names for each operation."""

PLANNED: Final = 20
"""If an operation changed more documents, the list neither names them nor checks whether anything is left to undo."""


async def changes(request: Request, visit: Visit) -> Response:
    """List the operations that can be undone, newest first."""
    page = await visit.engine.operations(limit=PAGE, cursor=request.query_params.get("cursor") or None)
    rows = page["operations"]
    shown = [name for name in ("by", "client") if len({row[name] for row in rows}) > 1]
    operations = await asyncio.gather(*(listed(visit, operation, shown) for operation in rows))
    return render(request, "changes.html", operations=operations, later=later_page(page))


async def listed(visit: Visit, operation: Row, shown: Sequence[str]) -> Row:
    """Return an operation for the list, with the titles of some documents, and whether it can be undone."""
    row = operation_row(operation, shown)
    total = sum(operation[name] for name in ("added", "changed", "deleted"))
    if visit.right == "read" or total > PLANNED:
        return row
    try:
        steps = (await visit.engine.undo(operation=operation["number"], dry_run=True))["steps"]
        about: Row = {"titles": [plain(step["title"], 80) or "Untitled" for step in steps[:NAMED]]}
        about["more"] = len(steps) - len(about["titles"])
        about["is_left"] = bool(operation["jobs"]) or any(not step["skipped"] for step in steps)
        has_tags = operation["tags_added"] or operation["tags_removed"]
        if steps and not has_tags and all(step["action"] == "retag" and step["version"] for step in steps):
            about["what"] = f"changed tags in {count(len(steps), 'document')}"
    except KbError:  # the operation was undone or forgotten in the meantime
        return row
    return row | about


async def change(request: Request, visit: Visit) -> Response:
    """Show the effect of undoing an operation."""
    return show(request, await visit.engine.undo(operation=request.path_params["id"], dry_run=True))


async def take_back(request: Request, visit: Visit) -> Response:
    form = await visit.form(request)
    done = await visit.engine.undo(operation=request.path_params["id"])
    if any(step["skipped"] for step in done["steps"]):
        return show(request, done)
    visit.leave_notice(Notice(f"Undone: “{count_changes(done, 'nothing')}”."))
    return redirect(visit, place_in(form, "changes"))


def show(request: Request, undone: Row) -> Response:
    """Show the steps of an undo, planned or done."""
    steps = [
        {
            "id": step["document_id"],
            "title": plain(step["title"], 200) or "Untitled",
            "does": describe_step(step),
            "stays": bool(step["skipped"]),
        }
        for step in undone["steps"]
    ]
    return render(
        request,
        "change.html",
        operation=operation_row(undone["operation"]),
        steps=steps[:SHOWN],
        more=max(0, len(steps) - SHOWN),
        is_done=not undone["dry_run"],
        summary=count_changes(undone, "nothing"),
    )


def operation_row(row: Row, shown: Sequence[str] = ("by", "client")) -> Row:
    """Return an operation for a page, with these of its authors."""
    by = " · ".join(plain(row[name], 80) for name in shown if row[name])
    tags = tag_words(row["tags_removed"], row["tags_added"])
    is_only_tags = tags and not (row["added"] or row["deleted"] or row["jobs"])
    what = f"{tags} in {count(row['changed'], 'document')}" if is_only_tags else count_changes(row, "nothing")
    return {**row, "by": by, "what": what, "titles": [], "more": 0, "is_left": True}
