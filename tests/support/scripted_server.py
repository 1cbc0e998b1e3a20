"""Servers that a test controls byte by byte."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def listening(serve, **options):
    """Serves each connection by `serve(reader, writer)`, whatever becomes of it; answers the URL."""
    writers = []

    async def served(reader, writer):
        writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0, **options)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
