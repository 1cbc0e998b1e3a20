"""Send changes to open pages."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from kb.api.errors import KbError
from kb.asgi.security_headers import PAGE_HEADERS
from kb_web.sessions import Visit

PAUSE_SECONDS: Final = 1.5
SEARCH_ROUNDS: Final = 4
"""Check searches only once in this many rounds: each new search makes all open pages redraw."""

SILENT_ROUNDS: Final = 10
"""Send an empty message after this many rounds without news, so that no proxy closes the connection."""


async def events(request: Request, visit: Visit) -> Response:
    """Stream the engine's state on every change, as server-sent events."""
    await visit.engine.status()  # an error here is shown as a page
    stream = _states(visit, request.app.state.stopping)
    return StreamingResponse(
        stream, media_type="text/event-stream", headers={**PAGE_HEADERS, "X-Accel-Buffering": "no"}
    )


async def _states(visit: Visit, stopping: asyncio.Event) -> AsyncIterator[str]:
    before, silent, searches, rounds = None, 0, None, 0
    while not stopping.is_set():
        try:
            status, newest = await asyncio.gather(visit.engine.status(), visit.engine.documents(sort="recent", limit=1))
            if rounds % SEARCH_ROUNDS == 0:
                searches = (await visit.engine.activity())["searches"]
        except KbError:
            return
        rounds += 1
        state = {
            "queue": status["queue"],
            "documents": sum(status["documents"].values()),
            "chunks": status["chunks"],
            "changed": [document["updated_at"] for document in newest["documents"]],  # also covers a change of tags
            "searches": searches and searches["count"],
        }
        silent += 1
        if state != before:
            before, silent = state, 0
            yield f"data: {json.dumps(state)}\n\n"
        elif silent >= SILENT_ROUNDS:
            silent = 0
            yield ":\n\n"
        try:
            await asyncio.wait_for(stopping.wait(), PAUSE_SECONDS)
        except TimeoutError:
            continue
