"""A note that carries a picture as base64 is found by its words, and kept as it was sent."""

from __future__ import annotations

from base64 import b64encode
from random import Random

import pytest

from kb.api.errors import Invalid

PICTURE = b64encode(b"\x89PNG\r\n\x1a\n" + Random(5).randbytes(30_000)).decode()
TEXT = f"The gate hangs on brass hinges from Falun.\n\n![gate](data:image/png;base64,{PICTURE})\n\nIt creaks.\n"


@pytest.mark.requirement("N-1")
async def test_a_note_with_a_picture_is_one_passage_without_it_and_its_original_is_the_text_that_was_sent(api, server):
    added = await api.add_note(text=TEXT, tags=["gate"], source="Petra", wait=60)
    found = await api.document(added["document_id"])
    said = "The gate hangs on brass hinges from Falun.\n\n![gate][picture: image/png, 30 kB]\n\nIt creaks.\n"
    assert [chunk["text"] for chunk in found["chunks"]] == [said]
    assert (found["doc_type"], found["tags"], found["source"]) == ("markdown", ["gate"], "Petra")
    assert found["title"] == "The gate hangs on brass hinges from Falun."
    assert await api.file(added["document_id"]) == TEXT.encode()
    [hit] = (await api.search(query="brass hinges from Falun", top=1))["results"]
    assert hit["text"] == said


async def test_a_note_takes_no_picture_by_an_edit_and_says_what_to_do(api):
    added = await api.add_note(text="The shed is green.", wait=60)
    with pytest.raises(Invalid, match="as a file"):
        await api.update_note(added["document_id"], text=TEXT)
