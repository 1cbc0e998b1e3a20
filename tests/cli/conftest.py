from __future__ import annotations

import json
import os
import pty
import sys
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import kb_cli
from tests.conftest import KEY, without_settings
from tests.support.eventually import SECONDS
from tests.support.fork_server import open_process, run

KB = (sys.executable, "-m", "kb_cli.main")
WITHOUT_ROOTS_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@dataclass
class Shell:
    """A place to type `kb …`: an environment and a working folder."""

    folder: Path
    environment: dict
    program: tuple = KB

    @property
    def without_roots_rights(self):
        """The same, with file permissions that apply, as for everyone but root."""
        return self if os.geteuid() else replace(self, program=(*WITHOUT_ROOTS_RIGHTS, *self.program))

    def start(self, *words, **options):
        environment = self.environment | options.pop("env", {})
        return open_process([*self.program, *map(str, words)], cwd=self.folder, env=environment, **options)

    def __call__(self, *words, text=None, env=None, timeout=SECONDS):
        """Run kb without a terminal, with `text` on standard input."""
        return run(
            [*self.program, *map(str, words)],
            input=text or "",
            timeout=timeout,
            cwd=self.folder,
            env=self.environment | (env or {}),
        )

    def json(self, *words, **options):
        """The output of kb with --json, which must be only JSON."""
        ended = self(*words, "--json", **options)
        assert ended.stderr == ""
        return json.loads(ended.stdout)

    def note(self, text, *options):
        """The id of a new note."""
        job = self.json("addnote", text, "--wait", *options)
        return job["document_id"]

    def in_terminal(self, *words, typed="", env=None):
        """Run kb in a terminal of 80 columns, and return the exit code and all output."""
        ours, its = pty.openpty()
        size = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color", "PAGER": ""}
        process = self.start(*words, stdin=its, stdout=its, stderr=its, env=size | (env or {}))
        os.close(its)
        os.write(ours, typed.encode())
        shown = b"".join(iter(lambda: read(ours), b"")).decode()
        os.close(ours)
        return process.wait(timeout=SECONDS), shown.replace("\r\n", "\n")


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that a terminal's other side is closed
        return b""


@pytest.fixture
def outside(tmp_path, model_cache):
    """kb as on a fresh machine: no settings, no configuration. Compiled modules are kept, as an installed kb has them."""
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    program = {"PYTHONPATH": str(Path(kb_cli.__file__).parents[1]), "PYTHONPYCACHEPREFIX": str(model_cache / "pyc")}
    unwanted = {"PYTHONDONTWRITEBYTECODE", "VISUAL", "EDITOR", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}
    kept = {name: value for name, value in without_settings().items() if name not in unwanted}
    return Shell(tmp_path, kept | home | program)


@pytest.fixture
def kb(server, outside):
    """kb with a real engine."""
    return Shell(outside.folder, outside.environment | {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY})


@pytest.fixture
def tag():
    """A tag of this test's own, because all tests share the engine."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def folder(tmp_path, tag):
    """A folder with two files, one of them in a subfolder, and hidden files. The texts are this test's own."""
    folder = tmp_path / "papers"
    for name, text in {
        "rust.md": f"# Rust {tag}\n\nThe borrow checker verifies references.\n",
        "deep/cat.txt": f"Cats {tag} sleep for most of the day.\n",
        ".hidden.txt": f"A hidden file {tag}.\n",
        ".git/config.txt": f"A file in a hidden folder {tag}.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def here(model_files, tmp_path):
    """The settings of commands that open a data folder without an engine."""
    return {"KB_MODEL_DIR": str(model_files.onnx.parent), "KB_DATA_DIR": str(tmp_path / "data")}
