"""`kb serve` that says how many tasks it runs, at /tasks."""

from __future__ import annotations

import asyncio

from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.support.modified_server import serve_altered


async def tasks(_):
    return JSONResponse(len(asyncio.all_tasks()))


if __name__ == "__main__":
    serve_altered(lambda app: app.router.routes.insert(0, Route("/tasks", tasks)))
