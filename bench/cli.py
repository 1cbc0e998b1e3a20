"""Measure the start of commands as ratios to the parts that they need at least, in one run.

The engine of the test answers immediately, so only the command line counts. Rounds are interleaved, so that a busy
machine slows all of them; the ratio is the ratio of the medians.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

ROUNDS = 15
KB = str(Path(sys.executable).with_name("kb"))
FLOORS = {"import typer": "import typer", "import typer, httpx2": "import typer, httpx2"}
COMMANDS = {
    "kb --help": (["--help"], "import typer", 1.3),
    "kb --version": (["--version"], "import typer", 1.3),
    "kb search x --json": (["search", "x", "--json"], "import typer, httpx2", 1.5),
    "kb updatenote 1 text": (["updatenote", "1", "text"], "import typer, httpx2", 1.5),
    "kb list --json": (["list", "--json"], "import typer, httpx2", None),
    "kb tags --json": (["tags", "--json"], "import typer, httpx2", None),
    "kb search --help": (["search", "--help"], "import typer", None),
    "kb stdio": (["stdio"], "import typer", None),
}
ANSWER = {"results": [{"document_id": 1}], "documents": [], "tags": [], "next_cursor": None, "omitted": 0, "pending": 0}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of a connection with the same JSON."""
    body = json.dumps(ANSWER).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nkb-version: 3.0.0\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with suppress(asyncio.IncompleteReadError):
        while True:
            header = await reader.readuntil(b"\r\n\r\n")
            length = header.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(head.encode() + body)
    writer.close()


async def serve() -> None:
    """Say the port, then answer until killed."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """How long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print each command's median and its ratio."""
    with subprocess.Popen([sys.executable, "-m", "bench.cli", "serve"], stdout=subprocess.PIPE, stderr=-3) as server:
        port = int(server.stdout.readline())  # type: ignore[union-attr] # it is a pipe
        environment = os.environ | {"KB_ENGINE_URL": f"http://127.0.0.1:{port}"}
        commands = {name: [sys.executable, "-c", code] for name, code in FLOORS.items()}
        commands |= {name: [KB, *words] for name, (words, _, _) in COMMANDS.items()}
        times: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(ROUNDS + 1):
            for name, command in commands.items():
                taken = seconds(command, environment)
                if number:  # the first round compiles
                    times[name].append(taken)
        server.kill()
    for name in FLOORS:
        print(f"{name:24} {1000 * median(times[name]):6.0f} ms")
    for name, (_, floor, limit) in COMMANDS.items():
        ratio = median(times[name]) / median(times[floor])
        aim = f" (at most {limit})" if limit else ""
        print(f"{name:24} {1000 * median(times[name]):6.0f} ms  {ratio:.2f}x of {floor}{aim}")


if __name__ == "__main__":
    asyncio.run(serve()) if sys.argv[1:] == ["serve"] else main()
