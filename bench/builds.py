"""Two builds of kb on one machine: this working tree, and another commit in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from bench.collection import DATA
from bench.databases import SqliteDatabase
from bench.origin import ROOT, commit, git
from bench.serving import launched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Command = tuple[list[str], dict[str, str]]
    """A command and its settings."""

WRITERS: Final = ("src/kb/store", "src/kb/lexical", "src/kb/vectors", "src/kb/index", "bench/corpus.py")
"""The sources of a filled database."""

CONVERTERS: Final = ("src/kb/embed",)
"""The sources of a converted model."""

FILL: Final = """
import sys
from pathlib import Path
from bench.corpus import fill, load_sentences
fill(Path(sys.argv[1]), load_sentences(None, Path(sys.argv[2])), int(sys.argv[3]))
"""
PREPARE: Final = """
import sys
from pathlib import Path
from kb.embed.models.prepare import prepare
print(prepare(None, Path(sys.argv[1]), sys.argv[2]).onnx.parent)
"""


@dataclass(frozen=True, slots=True)
class Build:
    """A tree of sources with its environment. It uses the model and the databases that it made in its `folder`.

    Two builds with the same `WRITERS` share their databases, and with the same `CONVERTERS` their models.
    """

    commit: str
    root: Path
    python: Path
    folder: Path

    def run(self, code: str, *arguments: object) -> str:
        """Return the output of a program that imports this build."""
        environment = os.environ | {"KB_TEST_DATA": str(DATA)}
        command = [self.python, "-c", code, *map(str, arguments)]
        return subprocess.run(
            command, cwd=self.root, env=environment, stdout=subprocess.PIPE, check=True, text=True
        ).stdout.strip()

    def database(self, size: int, sentences: Path) -> SqliteDatabase:
        """Return the database of so many passages, which is made first if it is missing."""
        home = self.folder / "databases" / self._digest(WRITERS)
        home.mkdir(parents=True, exist_ok=True)
        database = SqliteDatabase(home, size)
        with FileLock(home / f"{size}.lock"):
            if not database.is_there():
                scratch = Path(tempfile.mkdtemp(dir=home))
                self.run(FILL, scratch / "kb.db", sentences, size)
                scratch.rename(database.folder)
        return database

    @contextmanager
    def served(self, database: SqliteDatabase, precision: str) -> Iterator[Command]:
        """Give the command of a server on a copy of a database that has started once, so all is ready."""
        model = self.run(PREPARE, self.folder / "models" / self._digest(CONVERTERS), precision)
        environment = {"KB_MODEL_DIR": model, "KB_PRECISION": precision}
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            for file in database.folder.glob("kb.db*"):
                subprocess.run(["cp", "--reflink=auto", file, scratch], check=True)
            command = [str(self.python), "-m", "kb_cli.main", "serve", "--data-dir", scratch]
            with launched(command, **environment):
                pass
            yield command, environment

    def _digest(self, sources: Iterable[str]) -> str:
        found = sha256()
        for name in sources:
            place = self.root / name
            for file in sorted(place.rglob("*.*")) if place.is_dir() else [place]:
                if file.is_file() and file.suffix != ".pyc":
                    found.update(f"{file.relative_to(self.root)}\n".encode() + file.read_bytes())
        return found.hexdigest()[:12]


def this_build(folder: Path) -> Build:
    """Return this working tree, also with changes that are not committed."""
    return Build(commit(), ROOT, Path(sys.executable), folder)


def other_build(reference: str, folder: Path) -> Build:
    """Return the build of a commit, which is installed first if it is missing."""
    name = git("rev-parse", "--short=8", f"{reference}^{{commit}}")
    root = folder / "builds" / name
    root.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{root}.lock"):
        if not (root / ".venv/runtime.stamp").exists():
            shutil.rmtree(root, ignore_errors=True)
            _install(name, root)
    return Build(name, root, root / ".venv/bin/python", folder)


def _install(commit: str, root: Path) -> None:
    """Write the sources of a commit into a folder, and install them there."""
    root.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x"], cwd=root, input=archive.stdout, check=True)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    python = f"PYTHON={Path(sys.executable).resolve()}"
    subprocess.run(["make", "-s", ".venv/runtime.stamp", python], cwd=root, env=inherited, check=True)
