"""The upload form of the browser extension SingleFile: a page as HTML, its address, and a key."""

from __future__ import annotations

import httpx2
import pytest

from tests.conftest import KEY

PAGE = "<!DOCTYPE html><html><head><title>{}</title></head><body><p>{}</p></body></html>"


@pytest.mark.parametrize("origin", ["chrome-extension://mpiodijhokgodhhofbcjdecpffjipkle", "moz-extension://0a1b2c3d"])
async def test_a_saved_page_is_a_document_at_its_address_and_replaces_itself(server, api, word, origin):
    address = f"https://example.org/{word}/page"
    headers = {"Authorization": f"Bearer {KEY}", "Origin": origin, "Accept": "application/json"}
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", headers=headers) as extension:
        for text in ("The lamp is lit at six", "The lamp is lit at seven"):
            page = {"file": (f"{word} (11_29_2026).html", PAGE.format(word, text), "text/html")}
            answer = await extension.post("jobs?wait=60", files=page, data={"source_path": address})
            assert answer.status_code == 200, answer.text
    [document] = (await api.documents(source_path=address))["documents"]
    assert (document["title"].partition(" ")[0], document["doc_type"]) == (word, "html")
    assert "seven" in (await api.document(document["id"]))["chunks"][0]["text"]
