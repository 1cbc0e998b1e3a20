"""The parts of the deployment that need no Docker: settings, keys, make."""

from __future__ import annotations

import json
import os
import re
import runpy
import stat
import subprocess
import sys
from dataclasses import replace

import pytest

from kb.embed.artifact import load_model, write_manifest
from kb.embed.models.install import install, pack
from kb.embed.models.prepare import in_precision
from kb.settings import Settings as EngineSettings
from kb_mcp.settings import GatewaySettings as GatewaySettings
from tests.conftest import ROOT
from tests.images.conftest import fresh_copy, output_of
from tests.support.model_hub import model_hub
from tests.support.rare_cases import mostly_rare
from tests.support.small_models import write_small_model

IN_THE_IMAGE = {"data_dir", "model_dir", "database_url", "database_read_url", "blob_url"}


@pytest.mark.requirement("R-3")
@pytest.mark.parametrize(("service", "settings"), [("engine", EngineSettings), ("gateway", GatewaySettings)])
def test_every_setting_reaches_its_container(service, settings):
    compose = (ROOT / "compose" / "compose.yaml").read_text()
    [environment] = re.findall(rf"\n  {service}:\n.*?\n    environment:\n(.*?)\n    \w", compose, re.DOTALL)
    names = {f"KB_{name.upper()}" for name in settings.model_fields.keys() - IN_THE_IMAGE}
    assert names <= set(re.findall(r"\bKB_\w+", environment))


@pytest.mark.parametrize("image", ["engine-cpu", "engine-cuda", "engine-rocm", "gateway-otel"])
def test_the_images_that_can_send_traces_have_what_it_takes(image):
    packages = (ROOT / "requirements" / f"{image}.txt").read_text()
    for name in ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"):
        assert f"\n{name}==" in packages


def test_every_proxy_that_is_shown_says_itself_who_calls():
    pages = [path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    locations = [each for page in pages for each in re.findall(r"location [^{]*\{[^}]*proxy_pass[^}]*\}", page)]
    assert len(locations) == 5
    for location in locations:
        assert "proxy_set_header X-Forwarded-For $remote_addr;" in location
    assert "option forwardfor\n" in (ROOT / "containers" / "haproxy.cfg").read_text()


def test_keys_are_made_once_for_their_owner_alone_and_never_shown(tmp_path):
    script = fresh_copy(tmp_path) / "compose" / "make-env.sh"
    file = script.with_name(".env")
    said = output_of(script)
    made = file.read_text()
    keys = [line.partition("=")[2] for line in made.splitlines() if line.startswith(("KB_API_KEY=", "KB_MCP_API_KEY="))]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [len(key) for key in keys] == [64, 64]
    assert keys[0] != keys[1]
    assert not any(key in said for key in keys)
    assert output_of(script) == ""
    assert file.read_text() == made


def test_a_key_that_is_missing_is_made_and_the_rest_left_alone(tmp_path):
    script = fresh_copy(tmp_path) / "compose" / "make-env.sh"
    file = script.with_name(".env")
    file.write_text("KB_API_KEY=mine\nKB_MCP_PORT=9000\n")
    output_of(script)
    first, second, third = file.read_text().splitlines()
    assert (first, second) == ("KB_API_KEY=mine", "KB_MCP_PORT=9000")
    assert third.startswith("KB_MCP_API_KEY=")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_make_publishes_the_engine_only_if_asked(tmp_path):
    folder = fresh_copy(tmp_path)
    command = ["make", "-n", "up-gpu"]
    asked = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
    assert "engine-port.yaml" not in output_of(*command, cwd=folder, env=asked)
    (folder / "compose" / ".env").write_text("KB_ENGINE_PORT=8001\n")
    said = files_of(output_of(*command, cwd=folder, env=asked))
    assert said == ["compose/compose.yaml", "compose/engine-port.yaml", "compose/cuda.yaml"]


def test_make_builds_no_image_where_none_can_be_built(tmp_path):
    folder = fresh_copy(tmp_path)
    assert " build" in output_of("make", "-n", "up", cwd=folder)
    said = output_of("make", "-n", "up", "BUILD=no", cwd=folder)
    assert (" build" in said, "back-up-first.sh" in said, " up --detach" in said) == (False, True, True)


@pytest.mark.parametrize("target", mostly_rare(["up", "up-gpu", "logs", "down"]))
def test_make_honours_a_file_of_the_operators_own_and_gives_it_the_last_word(tmp_path, target):
    folder = fresh_copy(tmp_path)
    (folder / "compose" / "compose.override.yaml").write_text("services: {}\n")
    assert files_of(output_of("make", "-n", target, cwd=folder))[-1] == "compose/compose.override.yaml"


@pytest.mark.parametrize("environment", ["runtime", "dev"])
def test_all_that_make_installs_or_builds_with_is_pinned_with_hashes(tmp_path, environment):
    said = output_of("make", "-n", f".venv/{environment}.stamp", cwd=fresh_copy(tmp_path))
    installs = [line for line in said.splitlines() if "pip install" in line]
    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or line.endswith("--no-deps --no-build-isolation -e ."), line
    pinned = (ROOT / "requirements" / "build.txt").read_text()
    assert re.findall(r"^(uv|hatchling|editables)==", pinned, re.MULTILINE) == ["editables", "hatchling", "uv"]


@pytest.fixture
def put_model(tmp_path, monkeypatch):
    """Puts the model of an image into a folder, as its build does, with files that were given to it."""
    (tmp_path / "given").mkdir()
    monkeypatch.chdir(tmp_path / "given")
    put = runpy.run_path(str(ROOT / "containers" / "model" / "put.py"))["put"]

    def run(wanted):
        put(wanted, tmp_path / "model")
        return load_model(tmp_path / "model")

    return run


@pytest.mark.parametrize("suits_int8", [True, False])
def test_an_image_takes_a_packed_model_and_int8_if_that_suits_it(put_model, tmp_path, suits_int8):
    files = install(str(write_small_model(tmp_path / "small")), tmp_path / "data")
    write_manifest(files.onnx.parent, replace(files.manifest, suits_int8=suits_int8))
    files.onnx.chmod(0o600)
    pack(files, tmp_path / "given" / "mine.kbmodel")
    found = put_model("mine.kbmodel")
    assert stat.S_IMODE(found.onnx.stat().st_mode) == 0o644
    assert (found.manifest.model, found.manifest.suits_int8) == ("small", suits_int8)
    rounded = in_precision(replace(found, manifest=replace(found.manifest, suits_int8=True)), tmp_path / "none", "int8")
    assert rounded.onnx.is_relative_to(tmp_path / "model") is suits_int8


def test_an_image_takes_a_model_of_the_hub_or_of_a_mirror(put_model, tmp_path, monkeypatch):
    with model_hub(write_small_model(tmp_path / "small")) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert put_model("someone/small-model").manifest.model == "small-model"


def test_the_arguments_of_the_build_reach_the_engines_image():
    lines = (ROOT / "containers" / "engine.Containerfile").read_text().splitlines()
    declared = {line.removeprefix("ARG ").partition("=")[0] for line in lines if line.startswith("ARG ")}
    compose = (ROOT / "compose" / "compose.yaml").read_text()
    [given] = re.findall(r"\n      args: &args\n(.*?)\n    environment:", compose, re.DOTALL)
    assert set(re.findall(r"^ +(\w+):", given, re.MULTILINE)) <= declared


def test_memory_and_open_files_have_limits():
    services = re.split(r"\n  (?=engine:|gateway:)", (ROOT / "compose" / "compose.yaml").read_text())[1:]
    assert ["mem_limit: " in service for service in services] == [True, True]
    unit = (ROOT / "systemd" / "kb.service").read_text()
    assert re.search(r"^MemoryMax=\d+G$", unit, re.MULTILINE)
    assert "\nLimitNOFILE=" in unit


def test_the_unit_lets_the_engine_make_backups_in_a_folder_that_it_may_write():
    unit = (ROOT / "systemd" / "kb.service").read_text()
    folders = re.search(r"^StateDirectory=(.*)$", unit, re.MULTILINE)[1].split()
    assert re.search(r"KB_BACKUP_DIR=%S/(\S+)", unit)[1] in folders


def test_the_units_are_hardened_alike():
    hardenings = []
    for name in ("kb.service", "kb-dump.service"):
        unit = (ROOT / "systemd" / name).read_text()
        hardenings.append(unit.partition("NoNewPrivileges=")[2].partition("\n[Install]")[0].strip())
    assert len(set(hardenings)) == 1


ADVISORY = {"id": "PYSEC-1", "fix_versions": ["1.1"]}


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ([{"name": "a", "version": "1.0", "vulns": [ADVISORY]}], 1, "a 1.0: PYSEC-1, fixed in: 1.1"),
        ([{"name": "a", "version": "1.0", "vulns": []}], 0, "1 packages audited, 0 not: none"),
        ([{"name": "b", "skip_reason": "not found"}], 2, "0 packages audited, 1 not: b"),
        (None, 2, "not audited: the advisories cannot be reached from here: no network"),
    ],
    ids=["vulnerable", "clean", "unknown", "unreachable"],
)
@pytest.mark.parametrize("offline", [[], ["--allow-offline"]], ids=["strict", "offline"])
def test_an_audit_fails_on_what_it_finds_and_if_it_looked_nothing_up(tmp_path, answer, status, words, offline):
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    tool = tmp_path / "pip-audit"
    said = f"echo '{json.dumps({'dependencies': answer})}'" if answer else "echo 'no network' >&2; exit 1"
    tool.write_text(f"#!/bin/sh\n{said}\n")
    tool.chmod(0o700)
    done = subprocess.run(
        [python, ROOT / "requirements/audit.py", *offline, "x.txt"], capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if offline and status == 2 else status)
    assert words in done.stdout


def files_of(said):
    """The files that the first call of compose is given."""
    [call, *_] = re.findall(r"docker compose (.*?) (?:up|logs|down)", said)
    return call.split()[1::2]
