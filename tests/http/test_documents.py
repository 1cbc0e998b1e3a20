from __future__ import annotations

import asyncio
import io
import sys
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from kb.api.errors import Invalid, NotFound
from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.http.conftest import added, finished
from tests.support.pdf import pdf, slow_pdf
from tests.support.stores import TRIED, served_version


async def texts(api, query, **options):
    reply = await api.search(query=query, **options)
    return [result["text"] for result in reply["results"]]


@pytest.mark.requirement("E-1")
async def test_a_note_is_found_by_its_words_and_by_its_meaning(api, word):
    document_id = await added(api, f"The {word} is a feline that hunts mice.", tags=[word], title="Pets")
    [result] = (await api.search(query="a cat that catches rodents", tags=[word]))["results"]
    assert (result["document_id"], result["title"], result["doc_type"]) == (document_id, "Pets", "note")
    assert result["tags"] == [word]
    assert result["place"] == {
        "page": None, "heading": [], "line_start": 1, "line_end": 1, "char_start": 0,
        "char_end": len(result["text"]),
    }  # fmt: skip
    assert result["vec_score"] > 0.2
    assert result["fts_score"] is None
    [by_word] = (await api.search(query=word, fts_only=True))["results"]
    assert by_word["fts_score"] > 0
    assert by_word["vec_score"] is None


@pytest.mark.requirement("E-1")
async def test_a_filtered_search_answers_as_many_as_asked_for_when_that_many_exist(api, word):
    for number in range(25):
        await api.add_note(
            text=f"Filler {number} about {word} and lighthouses", tags=[word, "even" if number % 2 else "odd"]
        )
    await added(api, f"{word} last", tags=["other"])
    found = await api.search(query="ships at sea", top=12, tags=[word, "even"], vec_only=True)
    assert len(found["results"]) == 12
    assert all(set(result["tags"]) == {word, "even"} for result in found["results"])
    assert (await api.search(query="ships", doc_type="pdf", tags=[word]))["results"] == []


@pytest.mark.requirement("E-2")
@pytest.mark.requirement("E-3")
@pytest.mark.requirement("E-5")
async def test_a_file_goes_in_as_multipart_and_comes_back_with_its_places(api, word):
    content = f"# {word}\n\nIntroduction to the subject at hand, in one line of a sensible length.\n\n## Depth\n\nDeep water is cold, dark and under enormous pressure.\n"
    job = await finished(
        api, await api.add_file("notes.md", io.BytesIO(content.encode()), tags=["a", "b"], source_path=f"/{word}")
    )
    assert (job["status"], job["kind"], job["filename"], job["progress"]) == ("done", "file", "notes.md", 1)
    document = await api.document(job["document_id"])
    assert document["doc_type"] == "markdown"
    assert document["tags"] == ["a", "b"]
    assert "".join(chunk["text"] for chunk in document["chunks"]) == content
    assert document["chunks"][-1]["place"]["heading"] == [word, "Depth"]
    assert document["chunks"][-1]["place"]["line_end"] == 7
    assert (await api.documents(source_path=f"/{word}"))["documents"][0]["id"] == job["document_id"]


@pytest.mark.requirement("E-2")
async def test_tags_of_a_form_may_be_repeated_or_separated_by_commas(http, api, word):
    files = {"file": ("a.txt", word.encode())}
    reply = await http.post("/jobs", files=files, data={"tags": ["x, y", "z"]})
    job = await finished(api, reply.json())
    assert (await api.document(job["document_id"]))["tags"] == ["x", "y", "z"]


@pytest.mark.requirement("E-6")
async def test_a_deleted_document_is_gone(api, word):
    document_id = await added(api, f"{word} to be deleted")
    receipt = await api.delete_document(document_id)
    assert receipt == {"status": "deleted", "document_id": document_id, "title": f"{word} to be deleted"}
    assert await texts(api, word, fts_only=True) == []
    with pytest.raises(NotFound, match=str(document_id)):
        await api.document(document_id)


@pytest.mark.requirement("E-7")
@pytest.mark.requirement("N-5")
async def test_tags_change_in_one_step(api, word):
    document_id = await added(api, word, tags=["a", "b"])
    document = await api.change_tags(document_id, add=["c"], remove=["a"])
    assert document["tags"] == ["b", "c"]
    assert document["updated_at"] is not None
    await api.change_tags(document_id, add=[word])
    assert {"tag": word, "documents": 1, "branch": 1} in (await api.tags())["tags"]


@pytest.mark.requirement("E-4")
async def test_documents_are_listed_by_tag_and_type_page_by_page(api, word):
    expected = [await added(api, f"{word} {number}", tags=[word]) for number in range(5)]
    first = await api.documents(tag=word, limit=3)
    second = await api.documents(tag=word, limit=3, cursor=first["next_cursor"])
    assert [document["id"] for page in (first, second) for document in page["documents"]] == expected
    assert second["next_cursor"] is None
    assert (await api.documents(tag=word, doc_type="pdf"))["documents"] == []
    for name in ("Note", " notes"):
        assert len((await api.documents(tag=word, doc_type=name))["documents"]) == 5
        assert len((await api.search(query=word, tags=[word], doc_type=name))["results"]) == 5
    recent = await api.documents(tag=word, sort="recent", limit=1)
    assert recent["documents"][0]["id"] == expected[-1]


@pytest.mark.requirement("E-11")
async def test_the_same_content_twice_is_one_document_with_the_tags_of_both(api, word):
    first = await added(api, word, tags=["a"])
    assert await added(api, word, tags=["b"]) == first
    assert (await api.document(first))["tags"] == ["a", "b"]


@pytest.mark.requirement("E-11")
@pytest.mark.parametrize("again", [{}, {"title": "Another title"}, {"tags": ["b"]}])
async def test_who_sends_what_is_there_already_is_told(api, word, again):
    receipts = [await api.add_note(text=word, wait=30, **given) for given in ({}, again)]
    assert [each["existed"] for each in receipts] == [False, True]
    assert receipts[0]["document_id"] == receipts[1]["document_id"]
    assert [(await api.job(each["job_id"]))["existed"] for each in receipts] == [False, True]
    [latest, *_] = (await api.jobs(limit=1))["jobs"]
    assert latest["existed"]


@pytest.mark.requirement("E-11")
async def test_a_file_exists_where_its_content_is_there_under_its_path(api, word):
    async def sent(text, path):
        job = await finished(api, await api.add_file("a.txt", io.BytesIO(text.encode()), source_path=path))
        return job["existed"]

    told = [await sent(*each) for each in ((word, "/a"), (word, "/a"), (word, "/b"), (f"{word} new", "/a"))]
    assert told == [False, True, False, False]


@pytest.mark.requirement("E-11")
async def test_a_job_that_waits_or_failed_tells_of_nothing_that_was_there(api, word):
    assert not (await api.add_note(text=word))["existed"]
    unreadable = await api.add_file("x.bin", io.BytesIO(bytes(range(256)) * 9), wait=30)
    assert (unreadable["status"], unreadable["existed"]) == ("failed", False)


@pytest.mark.requirement("E-11")
async def test_the_same_content_under_two_paths_is_two_documents(api, word):
    first, second = [await added(api, word, source_path=f"/{word}/{number}") for number in range(2)]
    assert first != second


@pytest.mark.requirement("E-11")
async def test_new_content_under_a_known_path_replaces_the_document_in_place(api, word):
    path = f"/{word}"
    first = await added(api, f"{word} old", source_path=path, tags=["a"])
    assert await added(api, f"{word} new", source_path=path, tags=["b"]) == first
    document = await api.document(first)
    assert [chunk["text"] for chunk in document["chunks"]] == [f"{word} new"]
    assert document["tags"] == ["a", "b"]
    assert document["updated_at"] is not None
    assert await texts(api, word, fts_only=True) == [f"{word} new"]


async def test_any_text_comes_back_whole(api, word):
    text = f"{word}\r\n\x00\x1b\ufeff\u202e日本語 🐘‍👩‍👧 e\u0301 \u2028 tail  \n\n"
    document = await api.document(await added(api, text))
    assert "".join(chunk["text"] for chunk in document["chunks"]) == text


@pytest.mark.requirement("E-8")
async def test_status_says_what_the_engine_is_and_holds(api, word):
    before = await api.status()
    await added(api, word)
    after = await api.status()
    assert after["version"] == "3.0.0"
    assert after["schema_version"] == served_version()
    assert after["full_text"] == {"sqlite": "BM25 over FTS5, in memory", "postgres": "BM25 over tables"}[TRIED[-1]]
    assert after["model"] == {"name": "all-MiniLM-L6-v2", "dimensions": 384, "window": 256, "precision": "fp32"}
    assert (after["device"], after["provider"]) == ("cpu", "CPUExecutionProvider")
    assert after["documents"]["note"] == before["documents"].get("note", 0) + 1
    assert after["chunks"] == before["chunks"] + 1
    assert after["queue"]["queued"] == 0
    assert after["database_size"] > 0
    assert set(after["parser"]["confined"] or ()) <= {"files", "network", "processes", "writing"}


async def test_status_names_the_tags_used_most_when_asked_for_some(api, word):
    for number in range(3):
        await added(api, f"{word} {number}", tags=[word])
    counts = {each["tag"]: each["documents"] for each in (await api.tags())["tags"]}
    most = (await api.status(top_tags=2))["top_tags"]
    assert [each["documents"] for each in most] == sorted(counts.values(), reverse=True)[:2]
    assert (await api.status())["top_tags"] == []


async def test_a_page_of_a_documents_chunks_says_how_many_there_are(api):
    text = "The clerks of the counting house kept their ledgers in good order. " * 120
    whole = await api.document(await added(api, text))
    assert whole["chunk_count"] == len(whole["chunks"]) > 4
    page = await api.document(whole["id"], from_chunk=2, chunks=2)
    assert page == whole | {"chunks": whole["chunks"][2:4]}
    assert (await api.document(whole["id"], from_chunk=99))["chunks"] == []


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


async def test_a_tag_of_composed_letters_is_found_and_removed_as_one_of_decomposed_ones(api):
    document_id = await added(api, "An espresso.", tags=[DECOMPOSED, COMPOSED])
    assert (await api.document(document_id))["tags"] == [COMPOSED]
    for tag in (COMPOSED, DECOMPOSED):
        assert document_id in [each["id"] for each in (await api.documents(tag=[tag]))["documents"]]
        found = (await api.search(query="espresso", tags=[tag]))["results"]
        assert document_id in [each["document_id"] for each in found]
    await api.change_tags(document_id, remove=[DECOMPOSED])
    assert (await api.document(document_id))["tags"] == []


SECTIONS = {
    name: f"{name} begins. " + f"The {name} ledger was kept in good order by its clerks. " * 60
    for name in ("Harbour", "Lighthouse", "Ferry")
}


@pytest.fixture(scope="module")
def book(server):
    """A document of three sections with several chunks each."""

    async def add():
        text = "".join(f"# {name}\n\n{section}\n\n" for name, section in SECTIONS.items())
        async with EngineClient(server.url, KEY) as api:
            job = await api.add_file("book.md", io.BytesIO(text.encode()), source_path="around/book.md", wait=60)
            return await api.document(job["document_id"])

    return asyncio.run(add())


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
        ({"page": 3}, r"^page: document \d+ has no pages; its chunks are numbered 0 to"),
        ({"heading": "Airport"}, "has 3 headings"),
        ({"page": 1, "heading": "Ferry"}, "send at most one"),
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
        ({"around": 1}, "^around: needs chunk_id"),
        ({"from_chunk": 1, "around": 1}, "^around: needs chunk_id"),
        ({"from_chunk": 0, "heading": "Ferry"}, "^from_chunk, chunks: "),
        ({"chunks": 2, "heading": "Ferry", "around": 1}, "^from_chunk, chunks: "),
    ],
)
async def test_what_would_be_ignored_beside_a_place_or_without_one_is_refused(api, book, query, said):
    with pytest.raises(Invalid, match=said):
        await api.document(book["id"], **query)


@pytest.fixture
def engine(server):
    with httpx2.Client(base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as client:
        yield client


def add(engine, **content):
    return engine.post("jobs", params={"wait": 30}, **content).json()["document_id"]


def test_a_page_of_a_pdf_is_a_picture_with_a_passage_marked_where_it_stands(engine):
    document = add(engine, files={"file": ("two.pdf", pdf("The berth is number 14.", "The rent is due in May."))})
    plain, marked, elsewhere = (
        engine.get(f"documents/{document}/pages/2.png", params=params) for params in ({}, {"chunk": 1}, {"chunk": 0})
    )
    assert {each.headers["content-type"] for each in (plain, marked, elsewhere)} == {"image/png"}
    assert plain.content != marked.content
    assert plain.content == elsewhere.content


def test_what_has_no_pages_or_not_that_one_has_no_picture(engine):
    document = add(engine, files={"file": ("one.pdf", pdf("A page alone."))})
    assert engine.get(f"documents/{document}/pages/2.png").status_code == 404
    assert engine.get(f"documents/{document}/pages/1.png", params={"chunk": 9}).status_code == 404
    note = add(engine, json={"text": "A note without pages."})
    assert engine.get(f"documents/{note}/pages/1.png").status_code == 409
    assert engine.get("documents/999999/pages/1.png").status_code == 404


@pytest.mark.slow
async def test_a_page_that_is_slow_to_draw_keeps_nobody_from_the_engine_and_is_not_tried_again(start_server, tmp_path):
    with start_server(tmp_path / "data", KB_APPS="api", KB_PARSE_SECONDS="5") as server:
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as engine:
            file = {"file": ("slow.pdf", slow_pdf("A slow page."))}
            document = (await engine.post("jobs", params={"wait": 30}, files=file)).json()["document_id"]
            place = f"documents/{document}/pages/1.png"
            waiting = [asyncio.create_task(engine.get(place)) for _ in range(60)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert (await engine.get("status")).status_code == 200
            assert not all(each.done() for each in waiting)
            replies = await asyncio.gather(*waiting)
    counts = Counter(each.status_code for each in replies)
    assert counts.keys() == {404, 503}
    assert counts[404] >= 8  # more on a slow machine, where some come when the page is known to be slow
    drawn = {each.json()["detail"] for each in replies if each.status_code == 404}
    assert drawn == {"Page 1 cannot be drawn: drawing took more than 5 seconds."}
    refused = {(each.headers["retry-after"], each.json()["detail"]) for each in replies if each.status_code == 503}
    assert refused == {("1", "Too many page pictures are requested (at most 8 at once). Try again in a second.")}


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_many_pictures_leave_no_threads_behind(engine, server):
    document = add(engine, files={"file": ("many.pdf", pdf("A page that is looked at often."))})

    def threads_after(pictures):
        for _ in range(pictures):
            assert engine.get(f"documents/{document}/pages/1.png").status_code == 200
        return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))

    before = threads_after(2)
    assert threads_after(20) < before + 10


def test_the_pages_of_a_pdf_are_counted_with_and_without_text(engine):
    document = add(engine, files={"file": ("three.pdf", pdf("Only here stands text.", "", ""))})
    assert engine.get(f"documents/{document}/pages").json() == {"document_id": document, "pages": 3}
    note = add(engine, json={"text": "A note that has no pages."})
    assert engine.get(f"documents/{note}/pages").status_code == 409
    assert engine.get("documents/999999/pages").status_code == 404
