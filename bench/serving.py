"""A real server in a process of its own, for all benchmarks."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from kb.embed.models.prepare import prepare
from kb.embed.open import open_embedder
from kb.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kb.client.client import EngineClient
    from kb.embed.onnx.embedder import OnnxEmbedder

CONNECTIONS = 8
PLACES = ("KB_DATABASE_URL", "KB_DATABASE_READ_URL", "KB_BLOB_URL")
"""The settings that lead to the user's own knowledge base, which a measured server must not use."""


def open_model(folder: Path) -> OnnxEmbedder:
    """Return the model on the CPU, and have the servers that start from now on use the same files.

    It is the model of KB_MODEL_DIR, or prepared in `folder`. It has the precision of KB_PRECISION or of a new database.
    """
    settings = Settings.read()
    embedder = open_embedder(settings.model_dir, folder, "cpu", settings.precision)
    files = prepare(settings.model_dir, folder, embedder.spec.precision)
    os.environ.update(KB_MODEL_DIR=str(files.onnx.parent), KB_PRECISION=files.precision)
    return embedder


@contextmanager
def serving(data_dir: Path | None = None, **environment: str) -> Iterator[str]:
    """The URL of a server, fresh without a data folder.

    Its model comes from KB_MODEL_DIR or from the user's own data folder, if one exists.
    """
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", str(data_dir or scratch)]
        with running(command, **environment) as url:
            yield url


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers: where, its process, and how many seconds its start took."""

    url: str
    process: int
    seconds: float

    def memory(self, kind: str = "VmRSS") -> int:
        """Bytes that it takes, or took at most (`VmHWM`); on Linux."""
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(status.partition(f"{kind}:")[2].split()[0]) << 10

    def cpu(self) -> float:
        """Seconds of CPU time that it and its children have taken; on Linux."""
        return _cpu(self.process)


def _cpu(process: int) -> float:
    """Return the seconds of a process, of its children, and of its ended children."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{process}/task").glob("*/children")
        running = [int(child) for each in children for child in each.read_text().split()]
        own = time.clock_gettime(
            ~process << 3 | 2
        )  # the clock of a process, as in clock_getcpuclockid(3): in ns, not ticks
    except OSError:
        return 0.0  # a child has ended
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return own + ended + sum(map(_cpu, running))


@contextmanager
def running(command: Sequence[str], **environment: str) -> Iterator[str]:
    """The URL of a server that takes `--port` and answers `/readyz`."""
    with launched(command, **environment) as server:
        yield server.url


@contextmanager
def launched(command: Sequence[str], **environment: str) -> Iterator[Server]:
    """A server that takes `--port` and answers `/readyz`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        inherited = {name: value for name, value in os.environ.items() if name not in PLACES}
        process = subprocess.Popen(
            [*command, "--port", str(port)], stderr=subprocess.DEVNULL, env=inherited | environment
        )
        begun = time.perf_counter()
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}", process)
            yield Server(f"http://127.0.0.1:{port}", process.pid, time.perf_counter() - begun)
        finally:
            process.terminate()
            process.wait()


async def add_all(
    client: EngineClient, documents: Iterable[tuple[str, dict[str, str]]], connections: int = CONNECTIONS
) -> None:
    """Send documents as notes, each under its id as the path and with its scope as a tag; wait until all are done.

    One connection keeps their order.
    """
    todo = ((path, document) for path, document in documents if document["text"].strip())

    async def send() -> None:
        for path, document in todo:
            await client.add_note(
                text=document["text"],
                title=document.get("title") or None,
                source_path=path,
                tags=[document["scope"]] if "scope" in document else [],
            )

    await asyncio.gather(*(send() for _ in range(connections)))
    await until_done(client)


async def until_done(client: EngineClient) -> None:
    """Wait until no job is left.

    Raises:
        RuntimeError: a job has failed.
    """
    while (queue := (await client.status())["queue"])["queued"] + queue["running"]:
        await asyncio.sleep(0.05)
    if queue["failed"]:
        raise RuntimeError(f"{queue['failed']} documents failed")


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            if httpx2.get(f"{url}/readyz").is_success:
                return
        except httpx2.TransportError:
            time.sleep(0.05)
    raise RuntimeError("the server did not start")
