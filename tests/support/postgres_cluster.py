"""PostgreSQL servers of their own, on ports, which are killed, started again and promoted; and streaming replicas of them."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import psutil
import psycopg

from tests.support.eventually import SECONDS, eventually
from tests.support.postgres import new_folder, server

LOCAL = "127.0.0.1"
CHECKED = {"fsync": "off", "max_connections": "200", "unix_socket_directories": ""}
"""Servers are killed here, not machines: what was written to the system is there afterwards."""


class Node:
    """A server, or a replica of one, from its making until `remove`."""

    def __init__(self, port, of=None):
        self.port = port
        self.process = None
        self._folder = Path(new_folder("kb-postgres-node-"))
        self._data = self._folder / "data"
        self._user = server().system_user
        self._settings = {}
        if self._user:
            shutil.chown(self._folder, self._user, self._user)
        if of is None:
            self._run("initdb", "--auth=trust", "--encoding=UTF8", "--username=postgres", "-D", self._data)
        else:
            source = ("-h", LOCAL, "-p", str(of.port), "-U", "postgres")
            self._run("pg_basebackup", *source, "-D", self._data, "-R", "-X", "stream", "-c", "fast")

    @property
    def url(self):
        return url_of(self)

    def start(self, **settings):
        """Start, and wait until it answers; the settings are those of the last time if none are given."""
        self._settings = settings or self._settings
        chosen = [f"-c{name}={value}" for name, value in (CHECKED | self._settings).items()]
        command = [self._program("postgres"), "-D", self._data, "-p", str(self.port), "-h", LOCAL, *chosen]
        with (self._folder / "log").open("ab") as log:
            self.process = psutil.Popen(command, stdout=log, stderr=log, user=self._user, start_new_session=True)
        eventually(f"a server answers, whose log is in {self._folder}", lambda: self.ask("SELECT 1"))

    def kill(self):
        """End all its processes at once, as a machine that loses its power does."""
        family = [self.process, *self.process.children(recursive=True)]
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(family, SECONDS)

    def freeze(self):
        """Stop all its processes, while its machine still answers."""
        for each in (self.process, *self.process.children()):
            each.suspend()

    def thaw(self):
        """Let them go on."""
        for each in (self.process, *self.process.children()):
            each.resume()

    def promote(self):
        """Make a replica a server that takes changes."""
        self._run("pg_ctl", "promote", "-w", "-D", self._data)

    def fall_silent(self):
        """Stop sending changes to replicas, until it is killed."""
        for sender in self.process.children():
            if "walsender" in " ".join(sender.cmdline()):
                sender.suspend()

    def ask(self, query, dbname="postgres"):
        """Return the rows of a statement; None if the server does not answer."""
        with (
            suppress(psycopg.OperationalError),
            closing(psycopg.connect(self.url, dbname=dbname, autocommit=True, connect_timeout=5)) as connection,
        ):
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    def remove(self):
        """End it, and delete its data."""
        if self.process and self.process.is_running():
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program, *arguments):
        subprocess.run(
            [self._program(program), *arguments], check=True, capture_output=True, user=self._user, cwd=self._folder
        )

    def _program(self, name):
        return server().bin_path / name


def url_of(*nodes):
    """The URL of a database on any of several servers."""
    hosts = ",".join(f"{LOCAL}:{node.port}" for node in nodes)
    return f"postgresql://postgres@{hosts}/kb"
