"""The targets of make in a clone, on a machine with Python and make."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from fastmcp import Client

from kb_cli.server import APPS
from tests.conftest import Server, free_port, without_settings
from tests.images.conftest import fresh_copy, output_of
from tests.support.eventually import SECONDS

INSTALLERS = {"python3", ".venv/bin/python", ".venv/bin/uv", "touch"}


@pytest.fixture
def clone(tmp_path):
    return fresh_copy(tmp_path / "clone")


@pytest.fixture
def installed_clone(clone):
    """A clone whose environment is the one that these tests run in."""
    (clone / ".venv").mkdir()
    (clone / ".venv/bin").symlink_to(Path(sys.executable).parent)
    for stamp in ("runtime", "dev"):
        (clone / ".venv" / f"{stamp}.stamp").touch()
    return clone


def as_from_a_shell():
    """This process's environment without kb's settings, and without what a make around it hands down."""
    return {name: value for name, value in without_settings().items() if not name.startswith(("MAKE", "MFLAGS"))}


def steps(folder, target):
    return output_of("make", "--dry-run", target, cwd=folder, env=as_from_a_shell()).splitlines()


@contextmanager
def make_serve(folder, **environment):
    """`make serve` in a terminal, where Ctrl-C goes to make and to what it runs."""
    log, port = folder / "served.log", free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["make", "serve"],
            cwd=folder,
            env=as_from_a_shell() | {"KB_PORT": str(port)} | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(port, process, log)
    try:
        server.await_ready()
        yield server
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=SECONDS)


async def assert_serves_all(server):
    async with httpx2.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/api/v1/status")).json()["version"] == "3.0.0"
        assert (await http.get("/docs")).headers["content-type"].startswith("text/html")
    async with Client(f"{server.url}/mcp") as agent:
        assert (await agent.call_tool("kb_status", {})).structured_content["version"] == "3.0.0"


@pytest.mark.requirement("S-1")
def test_one_tree_holds_the_packages_and_what_they_are_built_and_tried_with(clone):
    shipped = tomllib.loads((clone / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    packages = sorted(path.parent for path in (clone / "src").glob("*/__init__.py"))
    assert [path.name for path in packages] == ["kb", "kb_cli", "kb_mcp", "kb_web"]
    assert sorted(shipped["packages"]) == [str(path.relative_to(clone)) for path in packages]
    for name in ("containers", "compose", "tests"):
        assert (clone / name).is_dir()
    for name in ("pyproject.toml", "Makefile"):
        assert (clone / name).is_file()


@pytest.mark.requirement("R-1")
@pytest.mark.requirement("R-2")
def test_make_setup_only_installs_into_the_clone_and_takes_nothing_but_pinned_packages(clone):
    setup = steps(clone, "setup")
    assert setup[0] == "python3 -m venv .venv"
    assert {step.split()[0] for step in setup} == INSTALLERS | {"echo"}  # it says how long it takes
    assert [step for step in setup if " install " in step and "uv pip" in step] == [
        ".venv/bin/uv pip install -q --python .venv/bin/python --require-hashes -r requirements/runtime.txt",
        ".venv/bin/uv pip install -q --python .venv/bin/python --no-deps --no-build-isolation -e .",
    ]
    pinned = re.sub(r"\\\n|#.*", "", (clone / "requirements/runtime.txt").read_text())
    for requirement in filter(None, map(str.strip, pinned.splitlines())):
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ .*--hash=sha256:", requirement), requirement


@pytest.mark.requirement("R-1")
@pytest.mark.requirement("R-2")
def test_make_serve_and_make_test_install_what_they_need_and_a_second_run_only_runs(clone):
    assert steps(clone, "serve") == [*steps(clone, "setup"), ".venv/bin/kb serve"]
    *install, run = steps(clone, "test")
    assert run.split()[0] == ".venv/bin/pytest"
    assert {step.split()[0] for step in install} == INSTALLERS
    assert any(step.endswith("--require-hashes -r requirements/dev.txt") for step in install)


@pytest.mark.requirement("R-1")
def test_a_second_run_installs_nothing(installed_clone):
    assert steps(installed_clone, "serve") == [".venv/bin/kb serve"]
    assert len(steps(installed_clone, "test")) == 1


def old_python(path):
    """A Python that is too old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.10.12\n')
    path.chmod(0o755)
    return path


def test_a_python_that_is_too_old_is_named_before_anything_is_installed(clone):
    python = old_python(clone / "old")
    ended = subprocess.run(
        ["make", "serve", f"PYTHON={python}"],
        cwd=clone,
        env=as_from_a_shell(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert f"kb needs Python 3.11 or newer with venv; '{python}' is Python 3.10.12" in ended.stderr
    assert "make serve PYTHON=python3.12" in ended.stderr
    assert not (clone / ".venv").exists()


@pytest.mark.rare
def test_what_an_older_python_left_is_made_anew(clone):
    old_python(clone / ".venv/bin/python")
    (clone / ".venv/pyvenv.cfg").write_text("version = 3.10.12\n")
    (clone / ".venv/bin/uv").touch()
    (clone / ".venv/runtime.stamp").touch()
    assert "python3 -m venv .venv" in steps(clone, "setup")


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_make_install_brings_a_command_and_nothing_else_and_uninstall_leaves_the_data(clone, tmp_path):
    home = tmp_path / "home"
    (home / ".local/share/kb").mkdir(parents=True)
    (home / ".local/share/kb/kb.db").touch()
    environment = as_from_a_shell() | {"HOME": str(home), "PATH": f"{home}/.local/bin:{os.environ['PATH']}"}
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    output_of("make", "install", cwd=clone, env=environment)
    assert [path.name for path in (home / ".local/bin").iterdir()] == ["kb"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert output_of("kb", "--version", cwd=elsewhere, env=environment) == "kb 3.0.0\n"
    output_of("make", "uninstall", cwd=clone, env=environment)
    left = [path for path in (home / ".local").rglob("*") if path.is_file() or path.is_symlink()]
    assert left == [home / ".local/share/kb/kb.db"]


def test_make_uninstall_leaves_another_program_of_the_name_alone(clone, tmp_path):
    command = tmp_path / "my home/.local/bin/kb"
    command.parent.mkdir(parents=True)
    command.write_text("another program")
    environment = as_from_a_shell() | {"HOME": str(tmp_path / "my home")}
    output_of("make", "uninstall", cwd=clone, env=environment)
    assert command.read_text() == "another program"
    command.unlink()
    command.symlink_to(tmp_path / "my home/.local/lib/kb/bin/kb")
    output_of("make", "uninstall", cwd=clone, env=environment)
    assert not command.is_symlink()


def test_make_uninstall_leaves_no_trace_of_searches(clone, tmp_path):
    last = tmp_path / "state/kb/last-search.json"
    last.parent.mkdir(parents=True)
    last.write_text("[]")
    output_of(
        "make",
        "uninstall",
        cwd=clone,
        env=as_from_a_shell() | {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    assert list((tmp_path / "state").iterdir()) == []


@pytest.mark.slow
@pytest.mark.requirement("R-1")
@pytest.mark.requirement("R-2")
async def test_make_serve_serves_engine_mcp_and_pages_in_one_process_until_ctrl_c(installed_clone, model_files):
    model, data = str(model_files.onnx.parent), str(installed_clone / "data")
    with make_serve(installed_clone, KB_MODEL_DIR=model, KB_DATA_DIR=data) as server:
        await assert_serves_all(server)
    assert "Traceback" not in server.log.read_text()


@pytest.mark.requirement("R-1")
@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_a_fresh_clone_is_served_by_make_alone_and_again_without_the_network(clone, monkeypatch):
    monkeypatch.setattr("tests.support.eventually.SECONDS", 900)
    home = {"HOME": str(clone), "XDG_CACHE_HOME": str(clone / "cache")}
    with make_serve(clone, **home) as server:
        await assert_serves_all(server)
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
    with make_serve(clone, **home, **nowhere) as server:
        await assert_serves_all(server)


@pytest.mark.requirement("R-2")
@pytest.mark.parametrize(
    ("image", "app", "factory"), [("engine", "api", "kb.app:create_app"), ("mcp", "mcp", "kb_mcp.app:create_app")]
)
def test_each_image_serves_the_factory_of_its_app(clone, image, app, factory):
    containerfile = (clone / "containers" / f"{image}.Containerfile").read_text()
    assert '\nENTRYPOINT ["kb"]\nCMD ["serve"]\n' in containerfile
    assert set(re.findall(r"\b(?:ARG |KB_)APPS=(\w+)", containerfile)) == {app}
    assert APPS[app].factory == factory
