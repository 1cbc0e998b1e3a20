"""`kb` commands in processes of their own that have nothing to import: they are forked from one that did it once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import httpx2
import psutil

from tests.support.eventually import SECONDS, eventually

IMPORTED = ("kb.app", "kb_cli.server", "kb_cli.commands.serve", "kb_cli.commands.worker", "kb.store.postgres.store")


class Forks:
    """Starts commands: `forks.start("worker", folder, port, KB_DATABASE_URL=…)`."""

    def __init__(self, environment):
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, command, folder, port, **environment):
        """Start one; it may not be ready yet."""
        folder.mkdir(parents=True, exist_ok=True)
        arguments = [command, "--port", str(port), "--data-dir", str(folder)]
        print(json.dumps([arguments, environment, str(folder / "server.log")]), file=self._parent.stdin, flush=True)
        return psutil.Process(int(self._parent.stdout.readline()))

    def close(self):
        """End all of them."""
        family = [psutil.Process(self._parent.pid), *psutil.Process(self._parent.pid).children(recursive=True)]
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._parent.wait()
        self._parent.stdin.close()
        self._parent.stdout.close()


@contextmanager
def forks(environment):
    """Forks that end with the block."""
    made = Forks(environment)
    try:
        yield made
    finally:
        made.close()


def kill(process):
    """End a process without a word; what it started ends with it."""
    process.kill()
    psutil.wait_procs([process], SECONDS)


def await_ready(process, port):
    """Wait until a command serves."""
    eventually("it is ready", lambda: _is_ready(process, port))


def _is_ready(process, port):
    assert process.is_running(), "it ended by itself; its log says why"
    with suppress(httpx2.TransportError):
        return httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200


def _main():
    from importlib import import_module

    from kb_cli.main import main

    for name in IMPORTED:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    for line in sys.stdin:
        arguments, environment, log = json.loads(line)
        if child := os.fork():
            print(child, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.update(environment)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in (1, 2):
            os.dup2(descriptor, number)
        sys.argv = ["kb", *arguments]
        main()


if __name__ == "__main__":
    _main()
