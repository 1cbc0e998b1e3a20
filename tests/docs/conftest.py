"""The home folder that the docs assume: some folders, a knowledge base with notes and a file, and an editor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.conftest import ALL_APPS, ROOT, without_settings
from tests.support.eventually import SECONDS
from tests.support.pdf import pdf

DOCUMENTS = 60
"""The documents that a reader has before they paste anything."""


@pytest.fixture(scope="session")
def filled(start_server, tmp_path_factory):
    """A server without keys, with a reader's own documents: notes and a PDF."""
    with (
        start_server(tmp_path_factory.mktemp("filled"), KB_APPS=ALL_APPS) as server,
        httpx2.Client(base_url=f"{server.url}/api/v1") as engine,
    ):
        lease = {"file": ("lease.pdf", pdf("The lease ends in March 2028."))}
        assert engine.post("jobs", params={"wait": 30}, files=lease).json()["document_id"] == 1
        for number in range(2, DOCUMENTS + 1):
            tides = {"text": f"Tide table, day {number}.", "tags": ["tides"]}
            assert engine.post("jobs", json=tides).json()["document_id"] == number
        yield server


def own_documents(server):
    """Return the reader's own documents, each with all its fields and its text."""
    with httpx2.Client(base_url=f"{server.url}/api/v1") as engine:
        return [engine.get(f"documents/{number}").json() for number in range(1, DOCUMENTS + 1)]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The pages of docs/reference as the program makes them now, by name."""
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, "-m", "tests.docs.reference", folder], cwd=ROOT, check=True)
    return {page.stem: page.read_text() for page in folder.iterdir()}


@pytest.fixture
def home(tmp_path):
    """Someone's home folder."""
    for name, content in {
        "Documents/reports/report.pdf": pdf("Revenue of the last quarter rose by nine percent."),
        "Documents/reports/plan.md": b"# Plan\n\nMoorings are renewed before the spring tides.\n",
        "Documents/reports/budget.csv": b"month,revenue\nMay,1200\nJune,1350\n",
        "vault/Daily/2026-01-31.md": b"---\ntags: [daily]\n---\nRopes ordered. #boat\n",
        "vault/Anna.md": b"# Anna\n\nReads on the phone.\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    editor = tmp_path / ".editor"
    editor.write_text('#!/bin/sh\necho "Ask for Anna." >> "$1"\n')
    editor.chmod(0o755)
    return tmp_path


@pytest.fixture
def run_in_home(filled, home):
    """Runs a bash script in that home folder, with `kb` on the path."""
    environment = without_settings() | {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "EDITOR": str(home / ".editor"),
        "KB_ENGINE_URL": filled.url,
    }
    for unwanted in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "VISUAL"):
        environment.pop(unwanted, None)

    def run(script):
        before = own_documents(filled)
        shown = home / ".shown.sh"
        shown.write_text(script.replace("127.0.0.1:8000", f"127.0.0.1:{filled.port}"))
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", shown],
            stdin=subprocess.DEVNULL,
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert own_documents(filled) == before, "a pasted block changed the reader's documents"
        return ended

    return run
