"""kb verify and kb reindex, which work on a database whose engine may not run."""

from __future__ import annotations

import json

import pytest

from kb.client.client import EngineClient
from tests.http.conftest import added
from tests.support.store_v2 import connect


@pytest.fixture
def here(model_files, tmp_path):
    return {"KB_MODEL_DIR": str(model_files.onnx.parent), "KB_DATA_DIR": str(tmp_path / "data")}


async def test_a_fault_is_shown_and_mended(outside, here, start_server, tmp_path):
    with start_server(tmp_path / "data") as server:
        async with EngineClient(server.url) as client:
            await added(client, "The key is under the mat.")
        looked = outside("verify", env=here)
        assert (looked.returncode, looked.stderr) == (0, "")
        assert looked.stdout.splitlines() == [
            f"{name}: whole"
            for name in (
                "pages",
                "references",
                "full text",
                "vectors",
                "copies of vectors",
                "notes",
                "files",
                "waiting files",
            )
        ]
        refused = outside("reindex", env=here)
        assert (refused.returncode, refused.stdout) == (8, "")
        assert "Another kb engine is using" in refused.stderr
        server.stop()
    connection = connect(tmp_path / "data" / "kb.db")
    connection.execute("DELETE FROM chunks_vec")
    connection.close()
    found = outside("verify", "--json", env=here)
    assert found.returncode == 1
    report = json.loads(found.stdout)
    assert (report["whole"], report["faults"]["vectors"]) == (False, ["1 chunks are without a vector, such as chunk 1"])
    assert outside("reindex", env=here).returncode == 0
    assert outside("verify", env=here).returncode == 0


def test_where_there_is_no_database_verify_says_so_and_makes_none(outside, here, tmp_path):
    ended = outside("verify", env=here)
    assert (ended.returncode, ended.stdout) == (8, "")
    assert "cannot be opened" in ended.stderr
    assert not (tmp_path / "data").exists()
