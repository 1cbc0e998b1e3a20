"""The documents as points: near each other, if they are about the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kb.web.pages import HEADERS, render
from kb.web.search import document_row

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kb.web.visits import Visit

MAX_SHOWN: Final = 10_000
"""How many documents the engine puts on its map."""

LISTED: Final = 12


async def document_map(request: Request, visit: Visit) -> Response:
    """The map; our script draws it, and lists what is in view."""
    page, status = await asyncio.gather(visit.engine.documents(sort="recent", limit=LISTED), visit.engine.status())
    total = sum(status["documents"].values())
    documents = [document_row(each) for each in page["documents"]]
    return render(request, "map.html", documents=documents, total=total, most=MAX_SHOWN)


async def points(_: Request, visit: Visit) -> Response:
    """Where the documents lie, as the engine says it: that may be a megabyte, which nobody here looks at."""
    return visit.stream("map", HEADERS)
