"""The stack of a user: a fresh copy of the tree, `make up`, and Docker to inspect the result."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from fastmcp import Client

from tests.conftest import ROOT, free_port, without_settings

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "kb-test"
COMPOSE = ("docker", "compose", "-f", "compose/compose.yaml")
VERSION = "test"


def output_of(*command, **options):
    """The output of a command on both streams. The command must succeed."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False, **options
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@dataclass
class Stack:
    """A running stack, in a copy of the tree."""

    folder: Path
    environment: dict[str, str]

    @property
    def mcp_url(self):
        return f"http://127.0.0.1:{self.environment['KB_MCP_PORT']}/mcp"

    @property
    def env_file(self):
        return self.folder / "compose" / ".env"

    def key(self, name):
        [line] = [line for line in self.env_file.read_text().splitlines() if line.startswith(f"{name}=")]
        return line.partition("=")[2]

    def agent(self):
        """An MCP client on the gateway's port."""
        return Client(self.mcp_url, auth=self.key("KB_MCP_API_KEY"))

    def make(self, *words):
        return output_of("make", "-s", *words, cwd=self.folder, env=self.environment)

    def compose(self, *words, **options):
        return output_of(*COMPOSE, *words, cwd=self.folder, env=self.environment, **options)

    def container(self, service):
        return f"{self.environment['COMPOSE_PROJECT_NAME']}-{service}-1"

    def inside(self, service, *command):
        """The output of a command in a service's container."""
        return output_of("docker", "exec", self.container(service), *command)

    def inspected(self, service):
        return json.loads(output_of("docker", "inspect", self.container(service)))[0]


@pytest.fixture(scope="session")
def docker():
    """Docker. Without it, these tests fail, because they run only on request."""
    output_of("docker", "compose", "version")
    output_of("docker", "info")


@pytest.fixture(scope="session")
def stack(docker, tmp_path_factory):
    with running(tmp_path_factory.mktemp("stack") / "kb", PROJECT, "up", "litestream") as stack:
        yield stack


@contextmanager
def running(folder, project, target, override):
    """The stack that `make` starts in a copy of the tree. Its volumes, also of an override, are deleted afterwards."""
    environment = without_settings() | {
        "COMPOSE_PROJECT_NAME": project,
        "KB_VERSION": VERSION,
        "KB_MCP_PORT": str(free_port()),
        "KB_BUILD_NETWORK": os.environ.get("KB_BUILD_NETWORK", "default"),
    }
    stack = Stack(fresh_copy(folder), environment)
    try:
        (folder / "up.log").write_text(stack.make(target))
        yield stack
    finally:
        down = ("-f", f"compose/{override}.yaml", "down", "--volumes", "--timeout", "20")
        subprocess.run([*COMPOSE, *down], cwd=folder, env=environment, check=True)


def fresh_copy(folder):
    """The files of a clone, including uncommitted changes."""
    names = output_of("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder
