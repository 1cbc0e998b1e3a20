"""Show changes by operation, and undo them."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kb.api.operation_words import count_changes, describe_step
from kb.web.document_html import Row, plain
from kb.web.notices import place_in
from kb.web.pages import later_page, redirect, render
from kb.web.sessions import Notice, Visit

PAGE: Final = 30
SHOWN: Final = 200


async def changes(request: Request, visit: Visit) -> Response:
    """List the operations that can be undone, newest first."""
    page = await visit.engine.operations(limit=PAGE, cursor=request.query_params.get("cursor") or None)
    operations = list(map(operation_row, page["operations"]))
    return render(request, "changes.html", operations=operations, later=later_page(page))


async def change(request: Request, visit: Visit) -> Response:
    """Show the effect of undoing an operation."""
    planned = await visit.engine.undo(operation=request.path_params["id"], dry_run=True)
    return show(request, planned)


async def take_back(request: Request, visit: Visit) -> Response:
    form = await visit.form(request)
    done = await visit.engine.undo(operation=request.path_params["id"])
    if any(step["skipped"] for step in done["steps"]):
        return show(request, done)
    visit.leave_notice(Notice(f"Undone: {count_changes(done, 'nothing')}."))
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


def operation_row(row: Row) -> Row:
    by = " · ".join(plain(row[name], 80) for name in ("by", "client") if row[name])
    return {**row, "by": by, "what": count_changes(row, "nothing")}
