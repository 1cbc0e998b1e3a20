"""What changes, told to pages that are open."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from kb.api.errors import KbError
from kb.web.pages import HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from kb.web.visits import Visit

PAUSE_SECONDS: Final = 1.5
SILENT_ROUNDS: Final = 10
"""After so many pauses without news something is sent, so that no proxy closes the connection."""


async def events(request: Request, visit: Visit) -> Response:
    """The engine's state when it changes, as server-sent events."""
    await visit.engine.status()  # an error has a page of its own
    stream = _states(visit, request.app.state.stopping)
    return StreamingResponse(stream, media_type="text/event-stream", headers={**HEADERS, "X-Accel-Buffering": "no"})


async def _states(visit: Visit, stopping: asyncio.Event) -> AsyncIterator[str]:
    before, silent = None, 0
    while not stopping.is_set():
        try:
            status = await visit.engine.status()
        except KbError:
            return
        state = {"queue": status["queue"], "documents": sum(status["documents"].values()), "chunks": status["chunks"]}
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
