"""A change of a database, killed before its first statement, before its second, and so on to the last.

Run as a program, which forks for each: `python -m tests.support.interrupted ACTION DATABASE FOLDER EVERY`. The folder gets a
database `kb.db` in a folder of its own for each statement, or each of so many, as the kill left it.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import apsw

import kb.store.sqlite.store as module
from kb.store.rows import NOBODY
from tests.support.spaces import space

ROOT = Path(__file__).parents[2]


def killed_at_each_statement(action, database, folder, every=1):
    """The databases that the kills left, in order of the statements: of each of them, or of each of so many."""
    program = [sys.executable, "-m", "tests.support.interrupted"]
    subprocess.run([*program, action, database, folder, str(every)], check=True, cwd=ROOT)
    return [folder / name / "kb.db" for name in sorted((place.name for place in folder.iterdir()), key=int)]


def migrate(path, count):
    with Counted(count):
        module.SqliteStore(path, space())


def update_note(path, count):
    """The write transaction of a note update; what is to be written lies beside the database."""
    document_id, content = pickle.loads(path.with_name("content.pickle").read_bytes())
    with Counted(count):
        store = module.SqliteStore(path, space(content.vectors.shape[1]))
        count.begin()
        with store.write() as tx:
            tx.history.keep(document_id, NOBODY)
            tx.documents.replace(document_id, content)


def delete(path, count):
    """The write transaction of a delete."""
    document_id, content = pickle.loads(path.with_name("content.pickle").read_bytes())
    with Counted(count):
        store = module.SqliteStore(path, space(content.vectors.shape[1]))
        count.begin()
        with store.write() as tx:
            tx.history.discard(document_id, NOBODY)


def restore(path, count):
    """The write transaction of a restore; what is to be written lies beside the database."""
    document_id, content = pickle.loads(path.with_name("content.pickle").read_bytes())
    with Counted(count):
        store = module.SqliteStore(path, space(content.vectors.shape[1]))
        count.begin()
        with store.write() as tx:
            tx.history.restore(document_id, content, NOBODY)


ACTIONS = {"migrate": migrate, "update_note": update_note, "delete": delete, "restore": restore}


class Count:
    """Counts statements, triggers' and virtual tables' own among them, and ends the process before one of them."""

    def __init__(self, last):
        self.number, self._last = 0, last

    def begin(self):
        self.number = 0

    def __call__(self, _):
        self.number += 1
        if self.number == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


class Counted:
    """Within it, the store's writer counts."""

    def __init__(self, count):
        self._count, self._connect = count, module.connect

    def __enter__(self):
        module.connect = self._traced

    def __exit__(self, *_):
        module.connect = self._connect

    def _traced(self, path, **options):
        connection = self._connect(path, **options)
        if not options:
            connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._count)
        return connection


def fork(action, database, folder, last):
    """Whether it was killed."""
    place = folder / str(last)
    shutil.copytree(database.parent, place)
    if not (child := os.fork()):
        count = Count(last)
        action(place / database.name, count)
        os._exit(0 if count.number else 2)
    status = os.waitpid(child, 0)[1]
    if status and not os.WIFSIGNALED(status):
        sys.exit(f"{place}: {os.waitstatus_to_exitcode(status)}")
    return os.WIFSIGNALED(status)


def main():
    action, database, folder, every = ACTIONS[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    last = 1
    while fork(action, database, folder, last):
        last += every


if __name__ == "__main__":
    main()
