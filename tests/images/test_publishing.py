"""The images as an owner publishes them, and as somebody without a clone starts and upgrades them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from fastmcp import Client

from tests.conftest import ROOT, free_port, without_settings
from tests.images.conftest import VERSION, output_of
from tests.images.test_stack import call, done
from tests.support.eventually import eventually
from tests.support.package_index import package_index

pytestmark = pytest.mark.images
KEYS = "KB_API_KEY=an-engine-key-of-the-owner\nKB_MCP_API_KEY=a-key-for-the-agents\n"


@pytest.fixture
def registry(docker, tmp_path):
    """The address of a container registry on this machine. On Debian, the package docker-registry has the program."""
    if not (program := shutil.which("docker-registry")):
        pytest.skip("docker-registry is not installed")
    address = f"127.0.0.1:{free_port()}"
    settings = tmp_path / "registry.yml"
    storage = f"storage: {{filesystem: {{rootdirectory: {tmp_path / 'registry'}}}}}"
    settings.write_text(f"version: 0.1\n{storage}\nhttp: {{addr: '{address}'}}\n")
    with (tmp_path / "registry.log").open("w") as log:
        process = subprocess.Popen([program, "serve", settings], stdout=log, stderr=log)
    try:
        eventually("the registry answers", lambda: answers(f"http://{address}/v2/"))
        yield address
    finally:
        process.terminate()
        process.wait()


def answers(url):
    try:
        return httpx2.get(url).is_success
    except httpx2.TransportError:
        return False


@pytest.fixture
def owner(registry, tmp_path):
    """Publishes a version, as `make release` and `make publish` do, and deletes the images here; answers its folder."""
    published = []

    def publish(version):
        images, folder = f"{registry}/kb", tmp_path / version
        output_of(sys.executable, "packaging/release.py", folder, "https://example.org/kb", images, cwd=ROOT)
        environment = without_settings() | {
            "KB_VERSION": version,
            "KB_BUILD_NETWORK": os.environ.get("KB_BUILD_NETWORK", "default"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        build = ["docker", "compose", "--env-file", "/dev/null", "-f", "compose/compose.yaml", "build"]
        output_of(*build, cwd=ROOT, env=environment)
        (tmp_path / "index").mkdir(exist_ok=True)
        with package_index(tmp_path / "index") as index:
            named = {"UV_PUBLISH_URL": f"{index}/upload", "UV_PUBLISH_TOKEN": "secret"}
            output_of("packaging/publish.sh", folder, images, cwd=ROOT, env=environment | named)
        names = [f"{images}/{name}:{version}" for name in ("kb-engine", "kb-mcp")]
        output_of("docker", "image", "rm", *names)
        published.extend(names)
        return folder

    yield publish
    subprocess.run(["docker", "image", "rm", "--force", *published], check=True)


@contextmanager
def compose(folder, environment):
    """Runs `docker compose` in a folder with the released file and the keys, and takes the stack down at the end."""

    def run(*words, **named):
        return output_of("docker", "compose", *words, cwd=folder, env=environment | named)

    try:
        yield run
    finally:
        run("down", "--volumes")


async def test_the_released_file_alone_pulls_the_images_keeps_backups_and_upgrades_and_goes_back(owner, tmp_path):
    released = owner(VERSION)
    owner(f"{VERSION}-later")
    home, port = tmp_path / "home", str(free_port())
    home.mkdir()
    shutil.copy(released / "compose.yaml", home)
    (home / ".env").write_text(KEYS)
    settings = {"COMPOSE_PROJECT_NAME": "kb-test-alone", "KB_VERSION": VERSION, "KB_MCP_PORT": port}

    def agent():
        return Client(f"http://127.0.0.1:{port}/mcp", auth="a-key-for-the-agents")

    with compose(home, without_settings() | settings) as run:
        run("up", "--detach", "--wait")
        async with agent() as client:
            job = await call(client, "kb_addnote", text="The ferry key is under the mat.")
            kept = await done(client, job["job_id"])
            found = await call(client, "kb_search", query="where is the key of the ferry")
        assert found["results"][0]["document_id"] == kept
        assert "KB_BACKUP_DIR=/backups\n" in run("exec", "-T", "engine", "env")
        run("exec", "-T", "engine", "kb", "backup", "/backups")
        for version in (f"{VERSION}-later", VERSION):
            run("up", "--detach", "--wait", KB_VERSION=version)
            assert f"kb-engine:{version}" in run("ps", "engine", KB_VERSION=version)
            async with agent() as client:
                assert (await call(client, "kb_get", document_id=kept))["id"] == kept
        run("exec", "-T", "engine", "kb", "backup", "verify", "/backups")
