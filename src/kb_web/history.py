"""Show earlier versions of documents, and the bin."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, groupby
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import HistoryGone, Invalid, NotInBin, Occupied
from kb_web.document_html import Row, plain
from kb_web.documents import number_in
from kb_web.notices import one_operation
from kb_web.pages import later_page, redirect, render
from kb_web.rows import document_row
from kb_web.sessions import Visit

CONTEXT: Final = 160
"""Number of unchanged characters shown around a change."""

BLANK_LINES: Final = re.compile(r"\A\s*\n")
PAGE: Final = 50

BIN_PAGE: Final = 35
"""Fewer rows, because each has two forms, and a page has at most 120 kB."""


async def versions(request: Request, visit: Visit) -> Response:
    document_id = request.path_params["id"]
    page = await visit.engine.history(document_id, limit=PAGE, cursor=request.query_params.get("cursor") or None)
    found = page["versions"]
    pairs = zip(found, [*found[1:], None], strict=True)
    rows = [version_row(row) | {"what": change_words(row, former)} for row, former in pairs]
    return render(
        request,
        "history.html",
        id=document_id,
        title=rows[0]["title"] if rows else f"Document {document_id}",
        versions=rows,
        later=later_page(page),
    )


async def version(request: Request, visit: Visit) -> Response:
    """Show the differences between a version and the newest one; of the newest, those to the version before it."""
    document_id, number = request.path_params["id"], request.path_params["number"]
    shown = version_row(await visit.engine.version(document_id, number))
    newest = await visit.engine.history(document_id, limit=2)
    begin = number if shown["until"] else newest["versions"][-1]["number"]
    difference = await visit.engine.diff(document_id, begin)
    return render(
        request,
        "version.html",
        id=document_id,
        former=shown,
        begin=begin,
        newest=difference["end"],
        **difference_shown(request, difference["changes"]),
    )


def difference_shown(request: Request, found: Sequence[Row]) -> Row:
    """Return the fields of a page that shows changes: all of the text if it asks for that."""
    is_same, is_whole = all(each["kind"] == "equal" for each in found), request.query_params.get("whole") == "1"
    changes = without_beginning(found)
    return {
        "changes": changes if is_whole or is_same else list(shortened(changes)),
        "is_whole": is_whole,
        "is_same": is_same,
    }


def change_words(row: Row, before: Row | None) -> str:
    """Return the changes of a version since the version before it, if that is on the same page, in words."""
    if row["number"] == 1:
        return "added"
    if before is None:
        return ""
    parts = ["restored from the bin"] if before["until"] < row["at"] else []
    parts += ["text changed"] if row["content_hash"] != before["content_hash"] else []
    parts += ["title changed"] if row["title"] != before["title"] else []
    parts += ["moved"] if row["source_path"] != before["source_path"] else []
    tags = tag_words(before["tags"], row["tags"])
    return ", ".join([*parts, *([tags] if tags else [])])


def tag_words(before: Sequence[str], after: Sequence[str]) -> str:
    """Return a change of tags in words; empty if they are the same."""
    parts = [("added", sorted({*after} - {*before})), ("removed", sorted({*before} - {*after}))]
    changes = [
        f"{does} {'tag' if len(tags) == 1 else 'tags'} {plain(', '.join(tags), 200)}" for does, tags in parts if tags
    ]
    return ", ".join(changes)


def version_row(row: Row) -> Row:
    by = " · ".join(plain(row[name], 80) for name in ("by", "client") if row[name])
    title, path = plain(row["title"], 200) or "Untitled", plain(row["source_path"] or "", 300)
    return {**row, "title": title, "path": path, "by": by, "why": plain(row["why"] or "", 300)}


def without_beginning(changes: Sequence[Row]) -> list[Row]:
    """Return the changes without the blank lines at the beginning. The blank lines stand in for the front matter."""
    begun = list(dropwhile(lambda change: not change["text"].strip(), changes))
    return [{**begun[0], "text": BLANK_LINES.sub("", begun[0]["text"])}, *begun[1:]] if begun else list(changes)


def shortened(changes: Sequence[Row]) -> Iterator[Row]:
    """Yield the changes with shortened unchanged text."""
    for is_equal, group in groupby(changes, key=lambda change: change["kind"] == "equal"):
        if not is_equal:
            yield from group
            continue
        text = "".join(change["text"] for change in group)
        if len(text) <= 3 * CONTEXT:  # a shorter gap is not worth a line of its own
            yield {"kind": "equal", "text": text}
            continue
        yield {"kind": "equal", "text": text[:CONTEXT]}
        yield {"kind": "left out", "text": f"{len(text) - 2 * CONTEXT:,} unchanged characters"}
        yield {"kind": "equal", "text": text[-CONTEXT:]}


async def revert(request: Request, visit: Visit) -> Response:
    form, document_id = await visit.form(request), request.path_params["id"]
    number = number_in(str(form.get("version", "")))
    if number is None:
        raise Invalid("version: this document has no such version.")
    back = f"d/{document_id}"
    async with one_operation(visit, back) as outcome:
        await visit.engine.revert(document_id, number)
        outcome.text = f"Restored version {number}."
    return redirect(visit, back)


async def binned(request: Request, visit: Visit) -> Response:
    """List deleted documents that can be restored."""
    page, status = await asyncio.gather(
        visit.engine.bin(limit=BIN_PAGE, cursor=request.query_params.get("cursor") or None), visit.engine.status()
    )
    rows = [document_row(document) | {"why": plain(document["why"] or "", 300)} for document in page["documents"]]
    return render(request, "bin.html", documents=rows, status=status, later=later_page(page))


async def restore(request: Request, visit: Visit) -> Response:
    await visit.form(request)
    document_id = request.path_params["id"]
    back = f"d/{document_id}"
    try:
        async with one_operation(visit, back) as outcome:
            restored = await visit.engine.restore(document_id)
            outcome.text = f"Restored “{plain(restored['title'], 100) or 'Untitled'}”."
    except (Occupied, NotInBin, HistoryGone) as error:
        shown = {"title": "The document cannot be restored", "detail": error.detail, "status": error.status}
        return render(request, "error.html", error.status, **shown, present=error.extra.get("document_id"))
    return redirect(visit, back)


async def purge(request: Request, visit: Visit) -> Response:
    await visit.form(request)
    await visit.engine.delete_document(request.path_params["id"], purge=True, only_binned=True)
    return redirect(visit, "bin")
