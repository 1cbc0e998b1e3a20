"""Each image contains only its own groups of packages, so nothing else can be imported by accident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

LIST_MODULES = "import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Makes environments with some groups only: `environment("engine", "cpu")` answers their Python."""
    uv = Path(sys.executable).with_name("uv")

    def make(*groups):
        folder = tmp_path_factory.mktemp("environment") / "venv"
        python = folder / "bin" / "python"
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], check=True)
        pins = ROOT / "requirements" / "runtime.txt"
        install = [uv, "pip", "install", "-q", "--python", python]
        chosen = [word for group in ("command", *groups) for word in ("--group", group)]
        subprocess.run([*install, "-c", pins, *chosen], check=True, cwd=ROOT)
        subprocess.run([*install, "--no-deps", ROOT], check=True)
        return python

    return make


def modules_after(python, module):
    command = [python, "-c", LIST_MODULES.format(module=module)]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.slow
@pytest.mark.requirement("S-2")
def test_the_gateway_needs_neither_database_nor_model_nor_the_engines_framework(environment):
    python = environment("gateway")
    loaded = modules_after(python, "kb_mcp.app")
    assert "fastmcp" in loaded
    assert not loaded & {"apsw", "sqlite_vec", "onnxruntime", "tokenizers", "numpy", "fastapi"}
    for absent in ("apsw", "sqlite_vec", "onnxruntime", "fastapi"):
        assert subprocess.run([python, "-c", f"import {absent}"], capture_output=True).returncode != 0


@pytest.mark.slow
@pytest.mark.requirement("S-2")
def test_the_engine_needs_no_mcp_library(environment):
    python = environment("engine", "cpu")
    loaded = modules_after(python, "kb.app")
    assert {"fastapi", "onnxruntime"} <= loaded
    assert not loaded & {"fastmcp", "mcp", "mcp_types", "typer"}
    assert subprocess.run([python, "-c", "import fastmcp"], capture_output=True).returncode != 0
