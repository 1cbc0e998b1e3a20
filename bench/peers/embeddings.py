"""kb's own model as an API that other programs know, so that all of them search with the same vectors."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from kb.embed.open import open_embedder
from kb.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from kb.embed.protocol import Embedder

MODEL = "all-MiniLM-L6-v2"


def create_app(embedder: Embedder) -> Starlette:
    """Return `POST /v1/embeddings`."""

    def embeddings(body: dict[str, str | list[str]]) -> JSONResponse:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = embedder.embed_passages(texts).tolist()
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return JSONResponse({"object": "list", "model": MODEL, "data": data, "usage": usage})

    async def answer(request: Request) -> JSONResponse:
        return embeddings(await request.json())

    return Starlette(routes=[Route("/v1/embeddings", answer, methods=["POST"])])


@contextmanager
def embeddings_served() -> Iterator[str]:
    """The address of the API, without `/embeddings`."""
    settings = Settings.read()
    embedder = open_embedder(settings.model_dir, settings.data_dir, settings.device, settings.precision)
    server = uvicorn.Server(uvicorn.Config(create_app(embedder), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        thread.join()
