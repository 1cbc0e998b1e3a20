"""Measure the cost of the gateway: calls of kb_status, against the engine's own answer and against the frameworks.

    python -m bench.mcp [--json FILE]

Each server is a process of its own, and they are called in turn, so that all use the same machine. The overhead of the
gateway is the time of a call minus the engine's own answer to the same question (`GET /status`, p50). The floors are
servers that answer a constant of the same size: a Starlette route, the protocol's own server, fastmcp.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import math
import re
import secrets
import sys
import time
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvloop

from bench.origin import Record
from bench.serving import running, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ROUNDS = 5
CALLS_A_ROUND = 600
WARM_UP = 200
MANY = 16
UPLOAD_MB = 64
MEBIBYTE = 1 << 20

MOST_OVERHEAD_MS = 1.0
MOST_TAIL = 5.0
MOST_OF_FLOOR = 2.0
LEAST_UPLOAD = 60.0

KEY = secrets.token_hex()
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
IDENTITY = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Connection:
    """HTTP with the smallest possible client, so that only the server counts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer.

        Raises:
            RuntimeError: the answer is an error.
        """
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        body = await self._reader.readexactly(int(length[1])) if length else b""
        if not head.startswith(b"HTTP/1.1 200") or b'"isError":true' in body:
            raise RuntimeError(f"{head.decode()}{body.decode()}")
        return body


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    """A connection that is kept."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port, limit=16 * MEBIBYTE)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


def http(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """A request as it goes over the wire."""
    headers |= {"Host": "127.0.0.1:80", "Authorization": f"Bearer {KEY}", "Content-Length": str(len(body))}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body


def tool_call(tool: str, **arguments: object) -> bytes:
    """A call of a tool in the protocol's current revision."""
    params = {"name": tool, "arguments": arguments, "_meta": IDENTITY}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
    revision = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": tool}
    return http("POST", "/mcp", body, **headers, **revision)


@dataclass
class Target:
    """A server, the question it is asked, and how long each answer took, in ms, by the number of clients."""

    name: str
    url: str
    request: bytes
    times: dict[int, list[float]] = field(default_factory=lambda: {1: [], MANY: []})

    def percentile(self, clients: int, percent: float) -> float:
        """Milliseconds in which that part of the answers came."""
        ordered = sorted(self.times[clients])
        return ordered[math.ceil(len(ordered) * percent / 100) - 1]

    async def measure(self, clients: int, calls: int) -> list[float]:
        """Ask that many times, with one question at a time from each client."""
        todo, times = iter(range(calls)), []

        async def client() -> None:
            async with connected(self.url) as connection:
                for _ in todo:
                    begun = time.perf_counter()
                    await connection.ask(self.request)
                    times.append((time.perf_counter() - begun) * 1000)

        await asyncio.gather(*(client() for _ in range(clients)))
        return times

    def __str__(self) -> str:
        figures = (self.percentile(clients, percent) for clients in (1, MANY) for percent in (50, 99))
        return f"{self.name:28}" + "".join(f"{figure:9.2f}" for figure in figures)


async def upload(url: str, uploads: int) -> float:
    """Chunks of 1 MiB, in that many uploads at once: MB of raw bytes a second."""
    chunk = base64.b64encode(secrets.token_bytes(MEBIBYTE)).decode()
    chunks = UPLOAD_MB // uploads

    async def prepared() -> list[bytes]:
        async with connected(url) as connection:
            start = tool_call("kb_upload_start", filename="bench.bin", total_size=chunks * MEBIBYTE)
            upload_id = json.loads(await connection.ask(start))["result"]["structuredContent"]["upload_id"]
        call = {"upload_id": upload_id, "data": chunk}
        return [tool_call("kb_upload_chunk", chunk_index=index, **call) for index in range(chunks)]

    async def send(requests: list[bytes]) -> None:
        async with connected(url) as connection:
            for request in requests:
                await connection.ask(request)

    files = [await prepared() for _ in range(uploads)]
    begun = time.perf_counter()
    await asyncio.gather(*map(send, files))
    return uploads * chunks * MEBIBYTE / 1e6 / (time.perf_counter() - begun)


def start(stack: ExitStack) -> dict[str, Target]:
    """Every server there is to measure."""
    keys = {"KB_API_KEY": KEY, "KB_MCP_API_KEY": KEY}
    together = stack.enter_context(serving(**keys))
    apart = stack.enter_context(serving(KB_APPS="mcp", KB_ENGINE_URL=together, **keys))
    status = tool_call("kb_status")
    floors = {
        name: stack.enter_context(running([sys.executable, "-m", "bench.floors", name]))
        for name in ("starlette", "mcp", "fastmcp")
    }
    return {
        "engine": Target("engine, GET /status", together, http("GET", "/api/v1/status?top_tags=40")),
        "starlette": Target("bare Starlette route", floors["starlette"], status),
        "mcp": Target("bare mcp server", floors["mcp"], status),
        "fastmcp": Target("bare fastmcp server", floors["fastmcp"], status),
        "in process": Target("gateway, engine in process", together, status),
        "network": Target("gateway, engine over network", apart, status),
    }


async def ask_all(targets: dict[str, Target]) -> None:
    """Several rounds over all of them."""
    for target in targets.values():
        await target.measure(MANY, WARM_UP)
    for _, target, clients in itertools.product(range(ROUNDS), targets.values(), (1, MANY)):
        target.times[clients] += await target.measure(clients, CALLS_A_ROUND)


def within(name: str, figure: float, limit: float, is_good: Callable[[float, float], bool]) -> bool:
    """Whether a figure is; prints it."""
    good = is_good(figure, limit)
    print(f"  {name:52}{figure:8.2f}   {'within' if good else 'NOT within'} {limit}")
    return good


def judge(targets: dict[str, Target]) -> list[bool]:
    """Whether the gateway keeps its limits, with the engine in its process and apart from it."""
    engine, floor = targets["engine"].percentile(1, 50), targets["fastmcp"].percentile(1, 50)
    verdicts = []
    for name in ("in process", "network"):
        gateway = targets[name]
        overhead, middle = gateway.percentile(1, 50) - engine, gateway.percentile(MANY, 50)
        print(f"{gateway.name}")
        verdicts += [
            within("overhead p50, ms", overhead, MOST_OVERHEAD_MS, float.__le__),
            within("overhead / bare fastmcp", overhead / floor, MOST_OF_FLOOR, float.__le__),
            within(f"p99 / p50 at {MANY} clients", gateway.percentile(MANY, 99) / middle, MOST_TAIL, float.__le__),
        ]
    return verdicts


async def measure(targets: dict[str, Target], record: Record | None) -> bool:
    """Print every figure, and write the JSON if requested; whether all are within their limits."""
    await ask_all(targets)
    print(f"{'ms':28}{'p50':>9}{'p99':>9}{'p50':>9}{'p99':>9}\n{'clients':28}{1:>9}{1:>9}{MANY:>9}{MANY:>9}")
    for target in targets.values():
        print(target)
    if record:
        record.save({target.name: {"p50, ms": target.percentile(1, 50)} for target in targets.values()})
    verdicts = judge(targets)
    print("chunks of 1 MiB, MB/s of raw bytes")
    for uploads in (1, 4):
        await upload(targets["in process"].url, uploads)
        speed = await upload(targets["in process"].url, uploads)
        verdicts.append(within(f"{uploads} upload(s) at once", speed, LEAST_UPLOAD, float.__ge__))
    return all(verdicts)


def main() -> int:
    """0 if every figure is within its limit."""
    parser = argparse.ArgumentParser(description="Measure the cost of the gateway.")
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        targets: dict[str, Any] = start(stack)
        return int(not uvloop.run(measure(targets, arguments.json)))


if __name__ == "__main__":
    sys.exit(main())
