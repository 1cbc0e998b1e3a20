"""Show changes by operation, and undo them."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import KbError, Unauthorized
from kb.api.operation_words import count_changes, describe_step
from kb.web.document_html import Row, plain
from kb.web.history import tag_words
from kb.web.notices import place_in
from kb.web.pages import count, later_page, redirect, render
from kb.web.sessions import Notice, Visit

PAGE: Final = 30
SHOWN: Final = 200
NAMED: Final = 3
"""The number of documents that the list names for each operation."""

PLANNED: Final = 20
"""If an operation changed more documents, the list neither names them nor checks whether anything is left to undo."""


async def changes(request: Request, visit: Visit) -> Response:
    """List the operations that can be undone, newest first."""
    page = await visit.engine.operations(limit=PAGE, cursor=request.query_params.get("cursor") or None)
    operations = await asyncio.gather(*(listed(visit, operation) for operation in page["operations"]))
    return render(request, "changes.html", operations=operations, later=later_page(page))


async def listed(visit: Visit, operation: Row) -> Row:
    """Return an operation for the list, with the titles of some documents, and whether it can be undone."""
    row = operation_row(operation)
    total = sum(operation[name] for name in ("added", "changed", "deleted"))
    if visit.right == "read" or total > PLANNED:
        return row
    try:
        steps = (await visit.engine.undo(operation=operation["number"], dry_run=True))["steps"]
        about: Row = {"titles": [plain(step["title"], 80) or "Untitled" for step in steps[:NAMED]]}
        about["more"] = len(steps) - len(about["titles"])
        about["is_left"] = bool(operation["jobs"]) or any(not step["skipped"] for step in steps)
        if steps and all(step["action"] == "retag" and step["version"] for step in steps):
            about["what"] = await tag_change(visit, steps) or row["what"]
    except Unauthorized:
        raise
    except KbError:  # the operation was undone or forgotten in the meantime
        return row
    return row | about


async def tag_change(visit: Visit, steps: list[Row]) -> str:
    """Return the change of tags that these steps undo, in words; empty if other changes followed."""
    changes = {*await asyncio.gather(*(tags_changed(visit, step["document_id"], step["version"]) for step in steps))}
    change = changes.pop() if len(changes) == 1 else "changed tags"
    return f"{change} in {count(len(steps), 'document')}" if change else ""


async def tags_changed(visit: Visit, document_id: int, number: int) -> str:
    """Return the change of tags that followed a version of a document, in words; empty if kb keeps no version."""
    page = await visit.engine.history(document_id, limit=2, cursor=str(number + 2))
    tags = {version["number"]: version["tags"] for version in page["versions"]}
    return tag_words(tags[number], tags[number + 1]) if {number, number + 1} <= tags.keys() else ""


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
    return {**row, "by": by, "what": count_changes(row, "nothing"), "titles": [], "more": 0, "is_left": True}
