"""The files of a release are the same each time, and each of them works where there is no clone."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from tests.conftest import ROOT, without_settings

ADDRESS = "https://example.org/kb/3.0.0"

pytestmark = pytest.mark.slow


def release(folder):
    subprocess.run([sys.executable, "packaging/release.py", folder, ADDRESS], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return release(tmp_path_factory.mktemp("release") / "one")


def test_two_runs_give_the_same_bytes_and_the_sums_are_those_of_the_files(made, tmp_path):
    assert (release(tmp_path / "two") / "SHA256SUMS").read_text() == (made / "SHA256SUMS").read_text()
    for line in (made / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == digest
    assert {"kb.mcpb", "server.json", "kb.rb", "compose.yaml", "NOTES.md"} <= {each.name for each in made.iterdir()}


def test_the_plain_package_brings_the_engine_the_gateway_and_the_web_interface(made):
    [wheel] = made.glob("*.whl")
    with ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        about = message_from_string(archive.read(name).decode())
    always = {re.split(r"[\[<>=;]", each)[0] for each in about.get_all("Requires-Dist") if "extra ==" not in each}
    assert {"apsw", "fastmcp", "jinja2", "onnxruntime", "typer"} <= always
    assert {"cuda", "rocm", "openvino", "postgres", "s3", "otel"} <= set(about.get_all("Provides-Extra"))


def test_the_formula_names_the_source_distribution_with_its_digest(made):
    [source] = made.glob("*.tar.gz")
    formula = (made / "kb.rb").read_text()
    assert f'url "{ADDRESS}/{source.name}"' in formula
    assert hashlib.sha256(source.read_bytes()).hexdigest() in formula


def test_the_stack_needs_no_clone(made):
    stack = yaml.safe_load((made / "compose.yaml").read_text())
    assert {service["image"].partition(":")[0] for service in stack["services"].values()} == {"kb-engine", "kb-mcp"}
    assert "build" not in (made / "compose.yaml").read_text()


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_kb_starts_from_each_distribution_in_an_empty_environment(made, kind, tmp_path):
    [package] = made.glob(kind)
    uv = Path(sys.executable).with_name("uv")
    python = tmp_path / "venv/bin/python"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True)
    install = [uv, "pip", "install", "-q", "--python", python]
    subprocess.run([*install, "-c", made / "requirements.txt", package], check=True)
    environment = without_settings() | {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    shown = subprocess.run([tmp_path / "venv/bin/kb", "--version"], env=environment, capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.strip().split()[-1]) == (0, "3.0.0"), shown.stderr
    imported = "import kb.app, kb_mcp.app, kb_web.app, kb_cli.server; print('all')"
    assert subprocess.run([python, "-c", imported], env=environment, check=True, capture_output=True).stdout == b"all\n"
