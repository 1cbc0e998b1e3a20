"""A disk that refuses writes is reported as such. Reading continues, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys

import httpx2
import pytest

from kb.api.errors import DiskFault
from kb.client.client import EngineClient
from tests.conftest import ALL_APPS
from tests.http.conftest import added
from tests.support.disks import breakable_disk, read_only, small_disk

pytestmark = pytest.mark.sqlite


async def found(api, words):
    return [result["document_id"] for result in (await api.search(query=words, fts_only=True))["results"]]


@pytest.mark.slow
@pytest.mark.requirement("E-2")
async def test_writes_to_a_disk_that_breaks_are_refused_with_its_path_and_reading_goes_on(start_server, tmp_path):
    with breakable_disk(tmp_path / "disk") as (disk, break_it), start_server(disk, KB_APPS=ALL_APPS) as server:
        async with EngineClient(server.url) as api:
            note = await added(api, "The old lighthouse")
            break_it()
            for attempt in (
                api.update_note(note, "The new lighthouse"),
                api.add_note(text="A ship"),
                api.add_file("ships.txt", b"Ships"),
                api.delete_document(note),
                api.delete_document(note, purge=True),
            ):
                with pytest.raises(DiskFault, match=f"The disk cannot be written: {disk}/.*Mount it writable"):
                    await attempt
            assert await found(api, "lighthouse") == [note]
            assert (await api.document(note))["id"] == note
            assert httpx2.get(f"{server.url}/readyz").status_code == 200


@pytest.mark.slow
@pytest.mark.requirement("N-2")
async def test_a_start_on_a_read_only_disk_names_the_folder_and_the_remedy_and_works_once_it_is_writable(
    start_server, tmp_path, model_files
):
    with small_disk(tmp_path / "disk", 16) as disk:
        with start_server(disk) as server:
            async with EngineClient(server.url) as api:
                note = await added(api, "The old lighthouse")
        with read_only(disk):
            for command in ("serve", "doctor"):
                said = kb(command, KB_DATA_DIR=disk, KB_MODEL_DIR=model_files.onnx.parent, KB_APPS="api", KB_PORT=0)
                (line,) = [line for line in said.splitlines() if "kb cannot write to" in line]
                assert str(disk) in line
                assert "Mount it writable" in line
                assert "Traceback" not in said
        with start_server(disk) as server:
            async with EngineClient(server.url) as api:
                assert (await api.update_note(note, "The new lighthouse"))["chunks"][0]["text"] == "The new lighthouse"


def kb(command, **environment):
    """What a command that fails says."""
    done = subprocess.run(
        [sys.executable, "-m", "kb_cli", command],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ":".join(sys.path),
            **{name: str(value) for name, value in environment.items()},
        },
    )
    assert done.returncode
    return done.stdout + done.stderr
