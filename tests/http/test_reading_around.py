"""A document is read at a place: around a chunk, a page, under a heading."""

from __future__ import annotations

import io

import pytest

from kb.api.errors import Invalid
from tests.http.conftest import finished

SECTIONS = {
    name: f"{name} begins. " + f"The {name} ledger was kept in good order by its clerks. " * 60
    for name in ("Harbour", "Lighthouse", "Ferry")
}


@pytest.fixture
async def book(api):
    """A document of three sections with several chunks each."""
    text = "".join(f"# {name}\n\n{section}\n\n" for name, section in SECTIONS.items())
    job = await finished(api, await api.add_file("book.md", io.BytesIO(text.encode()), source_path="around/book.md"))
    return await api.document(job["document_id"])


async def test_a_found_passage_names_its_chunk_by_its_place_in_the_document(api, book):
    [found] = (await api.search(query="Lighthouse begins", document_id=book["id"], top=1))["results"]
    assert book["chunks"][found["index"]]["id"] == found["chunk_id"]


async def test_the_chunks_around_one_come_in_order_and_join_to_a_stretch_of_the_text(api, book):
    middle = book["chunks"][4]
    part = await api.document(book["id"], chunk_id=middle["id"], around=2)
    assert [chunk["index"] for chunk in part["chunks"]] == [2, 3, 4, 5, 6]
    whole = "".join(chunk["text"] for chunk in book["chunks"])
    assert "".join(chunk["text"] for chunk in part["chunks"]) in whole
    assert part["chunk_count"] == len(book["chunks"])


@pytest.mark.parametrize(("index", "expected"), [(0, [0, 1]), (-1, [-2, -1])])
async def test_at_the_ends_of_a_document_there_are_fewer(api, book, index, expected):
    part = await api.document(book["id"], chunk_id=book["chunks"][index]["id"], around=1)
    assert [chunk["id"] for chunk in part["chunks"]] == [book["chunks"][each]["id"] for each in expected]


@pytest.mark.parametrize("heading", ["Lighthouse", "lighthouse", "light"])
async def test_a_section_is_read_by_its_heading(api, book, heading):
    part = await api.document(book["id"], heading=heading)
    assert {tuple(chunk["place"]["heading"]) for chunk in part["chunks"]} == {("Lighthouse",)}
    assert len(part["chunks"]) == sum(chunk["place"]["heading"] == ["Lighthouse"] for chunk in book["chunks"])


async def test_a_page_is_read_by_its_number(api, test_data):
    with (test_data / "files" / "REPAIR-2022-INV-001_multipage.pdf").open("rb") as file:
        job = await finished(api, await api.add_file("REPAIR-2022-INV-001_multipage.pdf", file))
    whole = await api.document(job["document_id"])
    last = whole["chunks"][-1]["place"]["page"]
    part = await api.document(whole["id"], page=last)
    assert part["chunks"] == [chunk for chunk in whole["chunks"] if chunk["place"]["page"] == last]
    with pytest.raises(Invalid, match=rf"has the pages 1 to {last}"):
        await api.document(whole["id"], page=last + 1)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"chunk_id": 2**40}, r"^chunk_id: document \d+ has no chunk \d+; its \d+ chunks have the ids \d+ to \d+"),
        ({"page": 3}, r"^page: document \d+ has no pages; it has the chunks 0 to"),
        ({"heading": "Airport"}, "has 3 to be read by their heading"),
        ({"page": 1, "heading": "Ferry"}, "give at most one"),
    ],
)
async def test_a_place_that_is_not_there_is_refused_with_those_that_are(api, book, place, said):
    with pytest.raises(Invalid, match=said) as refused:
        await api.document(book["id"], **place)
    if place == {"heading": "Airport"}:
        assert refused.value.extra["headings"] == ["Harbour", "Lighthouse", "Ferry"]


async def test_a_heading_that_stands_there_twice_is_read_where_it_comes_first(api):
    text = "".join(f"# {name}\n\n{name} has a log. {'The clerks kept it. ' * 80}\n\n" for name in ("Log", "Map", "Log"))
    job = await finished(api, await api.add_file("logs.md", io.BytesIO(text.encode()), source_path="around/logs.md"))
    part = await api.document(job["document_id"], heading="Log")
    assert {tuple(chunk["place"]["heading"]) for chunk in part["chunks"]} == {("Log",)}
    assert part["chunks"][0]["index"] == 0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"around": 1}, "^around: give the place"),
        ({"from_chunk": 1, "around": 1}, "^around: give the place"),
        ({"from_chunk": 0, "heading": "Ferry"}, "^from_chunk, chunks: "),
        ({"chunks": 2, "heading": "Ferry", "around": 1}, "^from_chunk, chunks: "),
    ],
)
async def test_what_would_be_ignored_beside_a_place_or_without_one_is_refused(api, book, query, said):
    with pytest.raises(Invalid, match=said):
        await api.document(book["id"], **query)
