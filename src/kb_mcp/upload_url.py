"""The URL for uploads with `curl -T FILE URL`. It needs no key and accepts one file."""

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api.errors import Invalid, KbError
from kb.asgi.error_replies import on_http_exception, problem
from kb.asgi.hosts import outer_address
from kb.client.client import JSON, EngineClient
from kb_mcp.auth import acting_for
from kb_mcp.clients import acting_as_client
from kb_mcp.tools.compact_answers import receipt
from kb_mcp.upload_store import Upload, UploadStore

PREFIX: Final = "/upload"
WAIT_SECONDS: Final = 10
"""How long a response waits for the file to be ingested."""


def upload_url(request: Request, upload_id: str) -> str:
    """Return the URL of an upload, with the host name that the agent uses for the gateway."""
    return f"{outer_address(request)}{PREFIX}/{upload_id}"


class UploadAddresses:
    """Receives files before other middleware sees the request: no other body may be so large.

    Args:
        app: handles other requests.
        engine: receives the files.
        store: the uploads in progress.
    """

    def __init__(self, app: ASGIApp, engine: EngineClient, store: UploadStore) -> None:
        self._app = app
        self._route = upload_route(engine, store)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a PUT to an upload URL, refuse other methods there, or pass the request on."""
        match, child = self._route.matches(scope) if scope["type"] == "http" else (Match.NONE, {})
        if match is Match.NONE:
            await self._app(scope, receive, send)
        elif match is Match.FULL:
            await self._route.handle({**scope, **child}, receive, send)
        else:
            error = HTTPException(405, "Send a file to this URL with PUT: curl -T FILE URL.", {"Allow": "PUT"})
            refusal = await on_http_exception(Request(scope), error)
            await refusal(scope, receive, send)


def upload_route(engine: EngineClient, store: UploadStore) -> Route:
    async def put(request: Request) -> Response:
        try:
            upload = await run_in_threadpool(store.get, request.path_params["upload_id"].partition("/")[0])
            with store.whole(upload) as write:
                async for part in request.stream():
                    await run_in_threadpool(write, part)
            return JSONResponse(receipt(await _hand_over(engine, store, upload)), 201)
        except KbError as error:
            return problem(error)
        except ClientDisconnect:
            return problem(Invalid("The connection closed before the whole file arrived. Send the file again."))

    # curl -T adds the file's name to a URL that ends with a slash.
    return Route(f"{PREFIX}/{{upload_id:path}}", put, methods=["PUT"])


async def _hand_over(engine: EngineClient, store: UploadStore, upload: Upload) -> JSON:
    taken, file = await run_in_threadpool(store.take, upload.id)
    try:
        path = taken.source_path
        with acting_for(taken.by), acting_as_client(taken.client):
            return await engine.add_file(taken.filename, file, tags=taken.tags, source_path=path, wait=WAIT_SECONDS)
    finally:
        file.close()
        await run_in_threadpool(store.discard, taken)
