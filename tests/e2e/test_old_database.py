"""`kb serve` in a data directory of kb 2, or of a later kb than this."""

from __future__ import annotations

import pytest

from kb.client.client import EngineClient
from kb.store.sqlite.schema import SCHEMA_VERSION
from tests.conftest import free_port
from tests.support import store_v2

pytestmark = pytest.mark.sqlite


@pytest.mark.requirement("S-8")
@pytest.mark.requirement("D-2")
@pytest.mark.parametrize("name", store_v2.SCHEMAS)
async def test_a_database_of_version_2_is_served_and_written(start_server, tmp_path, name):
    store_v2.build(tmp_path / "kb.db", store_v2.SCHEMAS[name])
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            assert (await client.status())["schema_version"] == SCHEMA_VERSION
            found = await client.search(query="lighthouses", tags=["sea"], fts_only=True)
            assert {result["document_id"] for result in found["results"]} == {3, 9}
            before = await client.document(3)
            assert [chunk["text"] for chunk in before["chunks"]] == store_v2.DOCUMENTS[3][1]
            after = await client.update_note(3, "The harbour has a new crane.")
            assert (after["id"], after["created_at"], after["tags"]) == (3, before["created_at"], ["a", "sea"])
            [best] = (await client.search(query="crane", top=1))["results"]
            assert best["document_id"] == 3
            assert best["chunk_id"] > 21
    said = server.log.read_text()
    assert said.index("migrating from version 2") < said.index("migrate: migrated") < said.index("serving http://")


@pytest.mark.requirement("D-2")
def test_a_database_of_a_later_version_is_refused_in_one_line(start_server, tmp_path):
    store_v2.build(tmp_path / "kb.db", version=SCHEMA_VERSION + 1)
    with pytest.raises(RuntimeError), start_server(tmp_path, port=free_port()):
        pass
    lines = (tmp_path / "server.log").read_text().splitlines()
    assert (
        len([line for line in lines if f"schema version {SCHEMA_VERSION + 1}" in line and "use a newer kb" in line])
        == 1
    )
    assert not [line for line in lines if "Traceback" in line]
