"""Another database in the same data directory leaves alone what belongs to the first."""

from __future__ import annotations

import io

import pytest

from kb.client.client import EngineClient
from tests.http.conftest import finished
from tests.support.hostile import slow


@pytest.mark.slow
@pytest.mark.requirement("E-2")
async def test_what_one_database_keeps_and_waits_for_survives_a_start_with_another(start_server, tmp_path):
    data = tmp_path / "data"
    with start_server(data) as server:
        async with EngineClient(server.url) as api:
            kept = await finished(api, await api.add_file("kept.txt", io.BytesIO(b"words that are kept")))
            await api.add_file("slow.xlsx", io.BytesIO(slow()))
            waiting = await api.add_file("waiting.txt", io.BytesIO(b"words that wait"))
            server.kill()
    other = {"KB_DATABASE_URL": f"sqlite:///{tmp_path / 'other.db'}"}
    with start_server(data, **other) as server:
        async with EngineClient(server.url) as api:
            assert (await api.documents())["documents"] == []
            elsewhere = await finished(api, await api.add_file("kept.txt", io.BytesIO(b"words that are kept")))
            await api.delete_document(elsewhere["document_id"])
    with start_server(data, KB_PARSE_SECONDS="1") as server:
        async with EngineClient(server.url) as api:
            assert await api.file(kept["document_id"]) == b"words that are kept"
            assert (await finished(api, waiting))["status"] == "done"
