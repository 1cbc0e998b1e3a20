"""Connections with behaviour of no real client, and their effect on a server."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 60


def connect(server):
    """A connection, with nothing said."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


@contextmanager
def connected(server, number, said=b""):
    """Open several connections, and send the same bytes on each."""
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(connect(server))) for _ in range(number)]
        for number, each in enumerate(opened):
            each.sendall(said)
            if number % 25 == 0:  # some hundreds a second: what each costs is asked, not how many fit into an instant
                time.sleep(0.05)
        yield opened


def request(method, path, *headers, body=b""):
    """A request as it goes over the wire."""
    length = [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *length, *headers, "", ""]).encode() + body


def answer(connection):
    """All that comes until the server closes; what came before, if it breaks off."""
    received = b""
    try:
        while part := connection.recv(1 << 16):
            received += part
    except ConnectionError:
        pass
    return received


def asked(server, *parts):
    """The answer to what is sent in parts, as far as they are taken, on a connection of its own."""
    with closing(connect(server)) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except ConnectionError:
            pass
        return answer(connection)


def memory(server):
    """The memory of a server's process, in MB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@dataclass
class Probe:
    """Asks for /healthz, on a new connection each time; keeps how long each answer took."""

    server: object
    seconds: list[float] = field(default_factory=list)
    wrong: list[bytes] = field(default_factory=list)

    def __enter__(self):
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    @property
    def worst(self):
        """In ms."""
        return max(self.seconds) * 1000

    def _run(self):
        while not self._done.wait(0.01):
            begun = time.perf_counter()
            try:
                said = asked(self.server, request("GET", "/healthz", "Connection: close"))
            except OSError as error:
                said = repr(error).encode()
            self.seconds.append(time.perf_counter() - begun)
            if not said.endswith(b"ok"):
                self.wrong.append(said)
