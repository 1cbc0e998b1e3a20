"""The files of a release are the same each time, and each of them works where there is no clone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from email import message_from_string
from itertools import product
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from tests.conftest import ROOT, without_settings
from tests.support.package_index import package_index
from tests.support.rare_cases import mostly_rare

ADDRESS = "https://example.org/kb/3.0.0"
IMAGES = "registry.example.org/kb"
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.slow


def release(folder):
    subprocess.run([sys.executable, "packaging/release.py", folder, ADDRESS, IMAGES], cwd=ROOT, check=True)
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


def test_the_entry_of_the_registry_keeps_the_rules_of_its_schema(made):
    entry = json.loads((made / "server.json").read_text())
    assert set(entry) == {"$schema", "name", "description", "version", "packages"}
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert len(entry["description"]) <= 100
    [package] = entry["packages"]
    assert set(package) == {"registryType", "identifier", "version", "fileSha256", "transport"}
    assert package["fileSha256"] == hashlib.sha256((made / "kb.mcpb").read_bytes()).hexdigest()
    assert package["identifier"] == f"{ADDRESS}/kb.mcpb"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://example.org/kb/kb.mcpb", "org.example/kb"),
        ("https://github.com/Ada/notes/releases/download/v3.0.0/kb.mcpb", "io.github.Ada/kb"),
        ("kb.mcpb", "local.kb/kb"),
    ],
)
def test_the_registry_lets_the_owner_of_the_address_publish_under_that_name(address, name):
    shown = subprocess.run(
        [sys.executable, "-c", f"import bundle; print(bundle.name_in_registry({address!r}))"],
        cwd=ROOT / "packaging",
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == name


def test_the_stack_needs_no_clone(made):
    stack = yaml.safe_load((made / "compose.yaml").read_text())
    images = {service["image"].partition(":")[0] for service in stack["services"].values()}
    assert images == {f"{IMAGES}/kb-engine", f"{IMAGES}/kb-mcp"}
    assert "build" not in (made / "compose.yaml").read_text()


@pytest.mark.parametrize("how", [(), ("--no-binary-package", "kb-local")], ids=["wheel", "source"])
def test_what_is_published_installs_kb_by_its_name_in_one_line(made, how, published, tmp_path):
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    install = [BIN / "uv", "tool", "install", "-q", "--python", sys.executable, "--index", f"{published}/simple/"]
    # The pins, as in an image, so that a new package of others breaks no test here.
    subprocess.run([*install, *how, "-c", made / "requirements.txt", "kb-local"], env=os.environ | folders, check=True)
    environment = without_settings() | {"HOME": str(tmp_path)}
    shown = subprocess.run([tmp_path / "bin/kb", "--version"], env=environment, capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.strip().split()[-1]) == (0, "3.0.0"), shown.stderr
    imported = "import kb.app, kb_mcp.app, kb_web.app, kb_cli.server; print('all')"
    python = tmp_path / "tools/kb-local/bin/python"
    assert subprocess.run([python, "-c", imported], env=environment, check=True, capture_output=True).stdout == b"all\n"


@pytest.fixture(scope="module")
def published(made, tmp_path_factory):
    """The URL of an index to which the packages were uploaded."""
    with package_index(tmp_path_factory.mktemp("index")) as url:
        keys = {"UV_PUBLISH_URL": f"{url}/upload", "UV_PUBLISH_TOKEN": "secret", "PATH": f"{BIN}:{os.environ['PATH']}"}
        subprocess.run(["packaging/publish.sh", made], cwd=ROOT, env=os.environ | keys, check=True)
        yield url


def test_nothing_is_published_without_naming_the_index_or_if_a_file_is_not_the_one_that_was_made(made, tmp_path):
    def publish(folder, **named):
        environment = {name: value for name, value in os.environ.items() if name != "UV_PUBLISH_URL"} | named
        script = ["packaging/publish.sh", folder]
        return subprocess.run(script, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    unnamed = publish(made)
    assert (unnamed.returncode != 0, "names the package index" in unnamed.stderr) == (True, True)
    shutil.copytree(made, tmp_path / "changed")
    (tmp_path / "changed/NOTES.md").write_text("Other notes.\n")
    changed = publish(tmp_path / "changed", UV_PUBLISH_URL="http://127.0.0.1:9/")
    assert (changed.returncode != 0, "NOTES.md" in changed.stdout + changed.stderr) == (True, True)


PYTHONS = ["3.13", "3.11", "3.12", "3.14"]
PLATFORMS = ["aarch64-manylinux_2_28", "x86_64-manylinux_2_28", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]


@pytest.mark.parametrize(
    ("requirements", "platform", "python"),
    [
        *mostly_rare([("runtime", *each) for each in product(PLATFORMS, PYTHONS)], fast=4),
        ("engine-cpu", "aarch64-manylinux_2_28", "3.13"),
        ("gateway", "aarch64-manylinux_2_28", "3.13"),
    ],
)
def test_every_pinned_package_has_a_wheel_for(requirements, platform, python, tmp_path):
    """So that nobody needs a compiler, and that the images can be built for ARM64."""
    command = [
        BIN / "uv",
        "pip",
        "install",
        "-q",
        "--dry-run",
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
    ]
    options = ["--target", tmp_path, "--python-platform", platform, "--python-version", python]
    found = subprocess.run(
        [*command, *options, "-r", ROOT / f"requirements/{requirements}.txt"],
        env=os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
