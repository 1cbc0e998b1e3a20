"""A place where kb runs: data, a backup of it and an export, a shell, and an engine when it is needed."""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kb.api.errors import KbError
from kb.client.client import EngineClient
from tests.cli.conftest import WITHOUT_ROOTS_RIGHTS, Shell
from tests.conftest import KB_SERVE, KEY, ServerEnded, free_port, launch, without_settings
from tests.support.stores import TRIED

ON_POSTGRES = TRIED[-1] == "postgres"
NOTE = "The lighthouse keeper of Heligoland counts every ship twice. " * 40
FILE = "A ledger of patient clerks. " * 40


@dataclass
class Place:
    """A folder with `data`, `backups` or `dump`, and `export`.

    Args:
        folder: the folder.
        model: the folder of the model.
        changes: settings that differ from what kb has here otherwise.
        is_closed: whether file permissions apply, as they do for everybody but root.
        said: what was answered to somebody who met the fault.
        has_more: whether the fault itself brought documents.
        library: the library that lets a disk fail.
        every: how many changes of the disk one of them stands for.
    """

    folder: Path
    model: Path
    changes: dict = field(default_factory=dict)
    is_closed: bool = False
    said: str = ""
    has_more: bool = False
    library: Path | None = None
    every: int = int(os.environ.get("KB_DRILL_EVERY", "20"))

    @property
    def data(self):
        return self.folder / "data"

    @property
    def backups(self):
        return self.folder / "backups"

    @property
    def settings(self):
        """The settings of kb here."""
        own = {
            "MODEL": self.model,
            "KB_DATA_DIR": self.data,
            "KB_MODEL_DIR": self.model,
            "KB_API_KEY": KEY,
            "KB_APPS": "api",
        }
        if ON_POSTGRES:
            from tests.support.postgres import database_url

            own["KB_DATABASE_URL"] = database_url(self.folder)
        else:
            own["KB_BACKUP_DIR"] = self.backups
        return {name: str(value) for name, value in (own | self.changes).items()}

    @property
    def kb(self):
        shell = Shell(self.folder, without_settings() | self.settings)
        return shell.without_roots_rights if self.is_closed else shell

    def run(self, line):
        """Run a line that an administrator types; return what it says and its exit code."""
        if line == "kb serve":
            return self.serve_shortly()
        if line.startswith("kb ") and "$" not in line:
            ended = self.kb(*line.split()[1:])
        else:
            environment = without_settings() | self.settings | tools()
            ended = subprocess.run(
                ["sh", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
            )
        return ended.stdout + ended.stderr, ended.returncode

    def serve_shortly(self):
        """Start an engine, end it when it is ready, and return its log."""
        for log in self.folder.rglob("server.log"):
            log.unlink()
        try:
            with self.served() as server:
                pass
        except ServerEnded as error:
            return str(error), 1
        return server.log.read_text(), 0

    @contextmanager
    def served(self, program=KB_SERVE, **environment):
        """An engine, and its end if it has not ended."""
        folder = self.folder if self.data.is_file() else self.data
        prefix = WITHOUT_ROOTS_RIGHTS if self.is_closed else ()
        server = launch(folder, free_port(), program, self.settings | environment, prefix)
        try:
            server.await_ready()
            yield server
        finally:
            if server.process.poll() is None:
                server.stop()

    def client(self, server):
        return EngineClient(server.url, KEY)

    def call(self, method, *words, server, **fields):
        """The answer of the engine to a client, or its refusal."""

        async def called():
            async with self.client(server) as api:
                return await getattr(api, method)(*words, **fields)

        try:
            return asyncio.run(called())
        except KbError as error:
            return str(error)

    def has(self, state):
        """Return whether everything of an earlier `state` is here, and nothing else unless the fault brought it."""
        found = self.state()
        if not self.has_more:
            return found == state
        return all(set(raw.splitlines()) <= set(found[name].splitlines()) for name, raw in state.items())

    def state(self):
        """Everything that an export has, by the name of its file."""
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        said, status = self.run("kb export state")
        assert status == 0, said
        names = sorted(
            path for path in (self.folder / "state").rglob("*") if path.is_file() and path.name != "kb-export.json"
        )
        return {str(path.relative_to(self.folder / "state")): without_times(path) for path in names}


def without_times(path):
    """The bytes of a file of an export, without what differs from one export to the next."""
    raw = path.read_bytes()
    return (
        re.sub(rb'"(used_at|exported_at|made_at)": ?"[^"]*"', b"", raw) if path.suffix in (".json", ".jsonl") else raw
    )


def tools():
    """The path with kb, and with the programs of PostgreSQL."""
    folders = [Path(sys.executable).parent]
    if ON_POSTGRES:
        from tests.support.postgres import server

        folders.append(server().bin_path)
    return {"PATH": ":".join([*map(str, folders), os.environ["PATH"]])}


async def fill(place):
    """Give a new place its documents, a key, a backup or dump, and an export."""
    with place.served() as server:
        async with place.client(server) as api:
            await api.make_key("reader", right="read")
            note = await api.add_note(text=NOTE, title="Heligoland", tags=["sea"], source_path="/heligoland.md")
            file = await api.add_file("ledger.txt", io.BytesIO(FILE.encode()), source_path="/ledger.txt")
            gone = await api.add_note(text="This is in the bin.")
            for job in (note, file, gone):
                assert (await api.wait_for_job(job["job_id"]))["status"] == "done"
            await api.delete_document(gone["document_id"])
    for line in (DUMP if ON_POSTGRES else "kb backup", "kb export export"):
        said, status = place.run(line)
        assert status == 0, said


DUMP = 'pg_dump --format=custom --schema=kb --no-owner --file=dump "$KB_DATABASE_URL"'
