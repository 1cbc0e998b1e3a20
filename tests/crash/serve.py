"""`kb serve` that ends as a kill would, when it does something for the n-th time: `KB_TEST_KILL=rename:3`.

Its clock may jump meanwhile: `KB_TEST_CLOCK=1.5:-3000`.

What it does is watched from outside: by audit events, by SQLite's trace of the writer's statements, and around `os.fsync`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace

import apsw

import kb.store.sqlite.store as module
from kb import clock
from kb.clock import read_machine
from kb_cli.main import main

AUDITED = {"os.rename": "rename", "os.remove": "unlink", "os.link": "link"}
FAILPOINTS = ("statement", "commit", "committed", "fsync", "fsynced", *AUDITED.values())


class Failpoint:
    """Counts how often something is done."""

    def __init__(self, text):
        self._name, _, count = text.partition(":")
        self._left = int(count)
        self._lock = threading.Lock()

    def reached(self, name):
        if name == self._name:
            with self._lock:
                self._left -= 1
                if not self._left:
                    os.kill(os.getpid(), signal.SIGKILL)

    def install(self):
        fsync, connect = os.fsync, module.connect

        def watched_fsync(descriptor):
            self.reached("fsync")
            fsync(descriptor)
            self.reached("fsynced")

        def watched_connect(path, **options):
            connection = connect(path, **options)
            if not options:
                connection.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, self._traced)
            return connection

        os.fsync, module.connect = watched_fsync, watched_connect
        sys.addaudithook(lambda event, _: event in AUDITED and self.reached(AUDITED[event]))

    def _traced(self, event):
        is_commit = event.get("sql") == "COMMIT"
        if event["code"] == apsw.SQLITE_TRACE_STMT:
            self.reached("commit" if is_commit else "statement")
        elif is_commit:
            self.reached("committed")


def have_clock_jump(text):
    """Have the machine's clock jump some seconds after the start, by so many seconds."""
    after, _, by = text.partition(":")
    at = time.monotonic() + float(after)

    def read():
        mark = read_machine()
        return replace(mark, at=mark.at + float(by)) if time.monotonic() >= at else mark

    clock.own._read = read


if __name__ == "__main__":
    if jump := os.environ.pop("KB_TEST_CLOCK", None):
        have_clock_jump(jump)
    if kill := os.environ.pop("KB_TEST_KILL", None):
        Failpoint(kill).install()
    main()
