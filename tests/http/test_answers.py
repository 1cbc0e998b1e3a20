"""What search and lists answer beyond the plain case."""

from __future__ import annotations

import asyncio
import io
import unicodedata
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import httpx2
import pytest

from kb.api.errors import Invalid, NotFound, TooManyTags
from kb.api.limits import MAX_PAGE
from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.http.conftest import added, finished
from tests.support.pdf import pdf


async def found_ids(api, **request):
    return {result["document_id"] for result in (await api.search(**request))["results"]}


@pytest.mark.requirement("E-1")
@pytest.mark.requirement("E-4")
async def test_search_and_lists_know_the_same_filters(api, word):
    red = await added(api, f"{word} red", tags=[word, "r"], source_path=f"/{word}/red")
    blue = await added(api, f"{word} blue", tags=[word, "b"])
    both = await added(api, f"{word} both", tags=[word, "r", "b"])
    now = datetime.now(timezone(timedelta(hours=2)))
    cases = [
        ({"tag_any": ["r", "b"]}, {red, blue, both}),
        ({"tag_not": ["b"]}, {red}),
        ({"tag_any": ["b"], "tag_not": ["r"]}, {blue}),
        ({"source_path": f"/{word}/red"}, {red}),
        ({"source_prefix": f"/{word}/"}, {red}),
        ({"created_after": (now - timedelta(minutes=5)).isoformat()}, {red, blue, both}),
        ({"created_before": (now - timedelta(minutes=5)).isoformat()}, set()),
        ({"doc_type": "note"}, {red, blue, both}),
    ]
    for filters, expected in cases:
        assert await found_ids(api, query=word, tags=[word], **filters) == expected, filters
        listed = await api.documents(tag=word, **filters)
        assert {document["id"] for document in listed["documents"]} == expected, filters


async def test_highlights_are_the_ranges_that_match_the_query(api, word):
    await added(api, f"🐘 Running the shoes; he RAN, she runs. {word} café", tags=[word])
    [result] = (await api.search(query="the run of cafe\u0301", tags=[word]))["results"]
    assert [result["text"][start:end] for start, end in result["highlights"]] == ["Running", "runs", "café"]
    [telling] = (await api.search(query="she and he", tags=[word]))["results"]
    assert [telling["text"][start:end] for start, end in telling["highlights"]] == ["he", "she"]
    [by_meaning] = (await api.search(query="run", tags=[word], vec_only=True))["results"]
    assert by_meaning["highlights"] == []


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("user_i*", ["user", "id", "user", "info"]),
        ("config_organiz*", ["config", "organization"]),
        ("user_id", ["user", "id", "user"]),
        ('"user in it" lamp', ["user", "user", "user", "in", "it"]),
    ],
)
async def test_what_is_written_in_one_is_marked_where_its_parts_follow_each_other(api, word, query, marked):
    text = f"I had user_id in it, or user.info; is an organ in config_organization? An identity; a user in it. {word}"
    text = text if "in it" in query else text.replace("a user in it", "it is")
    await added(api, text, tags=[word])
    [result] = (await api.search(query=query, tags=[word], fts_only=True))["results"]
    assert [result["text"][start:end] for start, end in result["highlights"]] == marked


async def test_results_fit_a_budget_of_tokens_and_say_what_was_left_out(api, embedder, word):
    for number in range(5):
        await added(api, f"Harbour {number}: " + "harbours and lighthouses along the coast " * 8 + word, tags=[word])
    whole = (await api.search(query="lighthouses", tags=[word]))["results"]
    reply = await api.search(query="lighthouses", tags=[word], max_tokens=100)
    texts = [result["text"] for result in reply["results"]]
    assert 1 <= len(texts) < 5
    assert reply["omitted"] == 5 - len(texts)
    assert sum(embedder.count_tokens(text) - 2 for text in texts) <= 100
    last = reply["results"][-1]
    assert last["truncated"]
    original = whole[len(texts) - 1]["text"]
    assert original.startswith(last["text"])
    assert original[len(last["text"])].isspace()
    assert (await api.search(query="lighthouses", tags=[word], max_tokens=1))["omitted"] >= 4


async def test_passages_of_a_document_come_together_when_asked(api, word):
    long = "\n\n".join(
        f"Chapter {number} tells of whales. " + "The sea was calm and grey. " * 25 for number in range(6)
    )
    many = await added(api, f"{word} {long}", tags=[word])
    one = await added(api, f"{word} A single line about whales.", tags=[word])
    results = (await api.search(query="whales", tags=[word], group_by="document", top=2))["results"]
    assert {result["document_id"] for result in results} == {many, one}
    [grouped] = [result for result in results if result["document_id"] == many]
    assert len(grouped["more"]) == 2
    chunk_ids = [grouped["chunk_id"], *(passage["chunk_id"] for passage in grouped["more"])]
    assert len(set(chunk_ids)) == 3
    assert all(passage["score"] <= grouped["score"] for passage in grouped["more"])


@pytest.mark.slow
async def test_search_says_how_much_is_not_searchable_yet(api, word):
    text = "ledger " * 900
    files = [io.BytesIO(f"{word} {number} {text}".encode()) for number in range(8)]
    accepted = [await api.add_file(f"{number}.txt", file) for number, file in enumerate(files)]
    assert (await api.search(query=word))["pending"] > 0
    for each in accepted:
        await finished(api, each)
    assert (await api.search(query=word))["pending"] == 0


@pytest.mark.requirement("E-2")
async def test_a_submission_may_wait_until_it_can_be_found(http, word):
    reply = await http.post("/jobs?wait=30", json={"text": word})
    assert reply.status_code == 200
    assert reply.json()["status"] == "done"
    found = (await http.post("/search", json={"query": word, "fts_only": True})).json()["results"]
    assert [result["document_id"] for result in found] == [reply.json()["document_id"]]
    preferred = await http.post("/jobs", json={"text": f"{word} 2"}, headers={"Prefer": "respond-async, wait=30"})
    assert (preferred.status_code, preferred.json()["status"]) == (200, "done")
    failed = await http.post("/jobs?wait=30", files={"file": ("a.txt", b"")})
    assert (failed.status_code, failed.json()["status"]) == (200, "failed")
    assert "empty" in failed.json()["error"]
    assert (await http.post("/jobs", json={"text": f"{word} 3"})).status_code == 202


@pytest.mark.requirement("E-2")
async def test_the_same_idempotency_key_is_the_same_job(http, word):
    async def submit(text):
        return await http.post("/jobs", json={"text": text}, headers={"Idempotency-Key": word})

    first, *again = await asyncio.gather(*(submit(word) for _ in range(5)))
    assert {reply.json()["job_id"] for reply in again} == {first.json()["job_id"]}
    other = await submit(f"{word} other")
    assert (other.status_code, other.headers["content-type"]) == (409, "application/problem+json")
    files = [
        await http.post("/jobs", files={"file": ("a.txt", content)}, headers={"Idempotency-Key": f"{word}f"})
        for content in (b"x" * 10, b"x" * 10, b"y")
    ]
    assert files[0].json()["job_id"] == files[1].json()["job_id"]
    assert files[2].status_code == 409


async def test_text_is_read_by_lines_characters_and_pages(http, api, word):
    text = f"{word}\nsecond line 🐘\n\nfourth"
    document_id = await added(api, text)

    async def part(**query):
        return (await http.get(f"/documents/{document_id}/text", params=query)).json()

    assert (await part())["text"] == text
    assert (await part(unit="lines", **{"from": 2, "to": 3}))["text"] == "second line 🐘\n\n"
    assert (await part(unit="lines", **{"from": 4, "to": 99})) == {
        "document_id": document_id, "title": word, "unit": "lines", "start": 4, "end": 4, "total": 4, "text": "fourth"
    }  # fmt: skip
    assert (await part(unit="characters", **{"from": len(word) + 8, "to": len(word) + 14}))["text"] == "line 🐘"
    assert (await part(**{"from": 9}))["text"] == (await part(**{"from": 3, "to": 2}))["text"] == ""
    assert (await http.get(f"/documents/{document_id}/text", params={"unit": "pages"})).status_code == 409
    for wrong in ({"unit": "words"}, {"from": -1}, {"form": 1}):
        assert (await http.get(f"/documents/{document_id}/text", params=wrong)).status_code == 422


async def test_a_page_of_a_pdf_is_read_by_its_number(http, api, word):
    content = pdf(f"First page {word}", "Second page")
    job = await finished(api, await api.add_file("a.pdf", io.BytesIO(content)))
    query = {"unit": "pages", "from": 2, "to": 2}
    reply = (await http.get(f"/documents/{job['document_id']}/text", params=query)).json()
    assert (reply["text"].strip(), reply["total"]) == ("Second page", 2)


@pytest.mark.requirement("E-6")
async def test_an_uploaded_file_is_kept_until_no_document_came_from_it(http, api, word):
    content = f"{word} content".encode()
    one, two = [
        (await finished(api, await api.add_file("a.txt", io.BytesIO(content), source_path=path)))["document_id"]
        for path in (f"/{word}/one.txt", f"/{word}/two.txt")
    ]
    reply = await http.get(f"/documents/{one}/file")
    assert reply.content == content
    assert "one.txt" in reply.headers["content-disposition"]
    await api.delete_document(one)
    assert (await http.get(f"/documents/{two}/file")).content == content
    replaced = await api.add_file("a.txt", io.BytesIO(b"new " + content), source_path=f"/{word}/two.txt")
    assert (await finished(api, replaced))["document_id"] == two
    assert (await http.get(f"/documents/{two}/file")).content == b"new " + content
    note = await added(api, f"{word} note")
    assert (await http.get(f"/documents/{note}/file")).status_code == 404


@pytest.mark.rare
async def test_files_are_not_kept_when_told_so(start_server, tmp_path):
    with start_server(tmp_path, KB_KEEP_FILES="0") as server:
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as http:
            done = await http.post("/jobs?wait=30", files={"file": ("a.txt", b"some words")})
            assert (await http.get(f"/documents/{done.json()['document_id']}/file")).status_code == 404
    [folder] = tmp_path.rglob("files")
    assert list(folder.iterdir()) == []


async def test_each_limit_is_named_and_so_is_its_setting(start_server, tmp_path):
    with start_server(tmp_path, KB_MAX_NOTE_CHARS="10", KB_MAX_TOP="12") as server:
        async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1") as http:
            for method, path, sent, status, said in (
                ("POST", "/jobs", {"text": "x" * 11}, 413, "KB_MAX_NOTE_CHARS"),
                ("POST", "/jobs", {"text": "x", "tags": [*map(str, range(101))]}, 422, "tags: at most 100"),
                ("POST", "/jobs", {"text": "x", "tags": ["x" * 201]}, 422, "at most 200 characters"),
                ("POST", "/search", {"query": "x", "top": 13}, 422, "KB_MAX_TOP"),
                ("POST", "/search", {"query": "x", "tag_not": ["x" * 201]}, 422, "at most 200 characters"),
                ("GET", "/documents?limit=501", None, 422, "limit: Input should be less than or equal to 500"),
                ("GET", "/jobs?limit=501", None, 422, "limit: Input should be less than or equal to 500"),
            ):
                reply = await http.request(method, path, json=sent)
                assert reply.status_code == status
                assert said in reply.json()["detail"]


@pytest.mark.requirement("E-4")
@pytest.mark.parametrize("sort", ["id", "recent"])
async def test_a_listing_stays_right_while_others_write(api, word, sort):
    documents = [await added(api, f"{word} {number}", tags=[word]) for number in range(9)]
    seen, cursor = [], None
    while True:
        page = await api.documents(tag=word, sort=sort, limit=2, cursor=cursor)
        seen += [document["id"] for document in page["documents"]]
        if (cursor := page["next_cursor"]) is None:
            break
        left = [document_id for document_id in documents if document_id not in seen]
        await api.change_tags(left[-1] if sort == "id" else seen[0], add=[f"t{len(seen)}"])
        await added(api, f"{word} other {len(seen)}", tags=["elsewhere"])
        await api.delete_document(seen[-1])
    assert sorted(seen) == documents


async def test_newest_is_another_name_for_recent(api, word):
    for number in range(3):
        await added(api, f"{word} {number}", tags=[word])
    for asked in (api.documents(tag=word, sort="newest"), api.search(query=word, tags=[word], sort="newest")):
        reply = await asked
        ids = [each.get("document_id") or each["id"] for each in reply.get("results") or reply["documents"]]
        assert len(ids) == 3
        assert ids == sorted(ids, reverse=True)
    listed = await api.documents(tag=word, sort="newest", limit=2)
    rest = await api.documents(tag=word, sort="recent", limit=2, cursor=listed["next_cursor"])
    assert len(rest["documents"]) == 1


async def test_what_is_not_there_says_so(api):
    with pytest.raises(NotFound):
        await api.job(2**50)
    with pytest.raises(Invalid, match="created_after"):
        await api.search(query="x", created_after="yesterday")
    with pytest.raises(Invalid, match="group_by"):
        await api.search(query="x", group_by="tag")
    assert KEY not in str(await api.status())


@pytest.mark.slow
@pytest.mark.requirement("E-1")
async def test_a_long_document_leaves_room_for_the_others_when_grouped(api, word):
    await added(api, "The whale swims on. " * 4_000, title=f"{word} whales", tags=[word])
    for number in range(8):
        await added(api, f"{word}: one whale was seen, number {number}", tags=[word])
    for mode in ({}, {"fts_only": True}, {"vec_only": True}):
        reply = await api.search(query=f"whale {word}", tags=[word], top=5, group_by="document", **mode)
        assert len({result["document_id"] for result in reply["results"]}) == 5, mode


async def test_a_budget_counts_what_is_no_word_and_cuts_where_there_are_no_spaces(api, word):
    await added(api, f"{word} {'quj3drevgr0hjsktmtu5pufsu1rvvldywvo' * 300}", tags=[word, "keys"])
    reply = await api.search(query=word, tags=[word, "keys"], max_tokens=50)
    assert sum(len(result["text"]) for result in reply["results"]) < 300
    assert reply["omitted"] + len(reply["results"]) > 2
    await added(api, "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 20, tags=[word, "cat"])
    reply = await api.search(query="猫", tags=[word, "cat"], max_tokens=30)
    assert 5 < sum(len(result["text"]) for result in reply["results"]) < 60
    assert reply["results"][-1]["truncated"] or reply["omitted"]


@pytest.mark.parametrize(
    "sentence", ["ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน", "မြန်မာဘာသာစကားသည်မြန်မာနိုင်ငံ၏ရုံးသုံးဘာသာစကားဖြစ်သည်", "សៀមរាបជាខេត្តមួយ"]
)
async def test_a_budget_counts_scripts_that_the_model_does_not_know_by_their_length(api, word, sentence):
    await added(api, f"{word} {sentence * 60}", tags=[word])
    reply = await api.search(query=word, tags=[word], max_tokens=100)
    texts = [result["text"] for result in reply["results"]]
    assert 150 < sum(map(len, texts)) < 320
    cut = f"{word} {sentence * 60}"[len(texts[0]) :]
    assert not unicodedata.category(cut[0]).startswith("M"), "a letter keeps its marks"


async def test_a_budget_counts_words_of_other_scripts_as_the_model_does(api, embedder, word):
    await added(api, f"{word} {'освещение маяка на 한국어 해안 ' * 60}", tags=[word])
    [result, *_] = (await api.search(query=word, tags=[word], max_tokens=100))["results"]
    assert 90 <= embedder.count_tokens(result["text"]) - 2 <= 100
    assert result["text"].split()[-1] in {"освещение", "маяка", "на", "한국어", "해안"}


@pytest.mark.parametrize("grouped", [{}, {"group_by": "document"}])
async def test_a_passage_that_begins_with_a_word_too_long_for_a_budget_leaves_it_to_the_others(api, word, grouped):
    long = await added(api, f"https://x.example/{'a' * 3000} {word} {word}", tags=[word])
    short = await added(api, f"The {word} is here, for now, and nobody asks why.", tags=[word])
    whole = await api.search(query=word, tags=[word], fts_only=True, **grouped)
    cut = await api.search(query=word, tags=[word], fts_only=True, max_tokens=200, **grouped)
    assert [result["document_id"] for result in whole["results"]] == [long, short]
    assert [result["document_id"] for result in cut["results"]] == [short]
    assert cut["omitted"] == 1


@pytest.mark.rare
async def test_what_is_left_out_of_a_group_is_counted(api, word):
    await added(api, f"The {word} is long. " * 400, tags=[word])
    whole = await api.search(query=word, tags=[word], group_by="document", top=1)
    assert len(whole["results"][0]["more"]) == 2
    cut = await api.search(query=word, tags=[word], group_by="document", top=1, max_tokens=60)
    assert (len(cut["results"]), cut["results"][0]["more"], cut["omitted"]) == (1, [], 2)


@pytest.mark.parametrize(
    ("text", "query"), [("İstanbul hava", "İSTANBUL"), ("ọ̀rọ̀ àgbà", "ọ̀rọ̀"), ("नमस्ते दुनिया", "दुनिया")]
)
async def test_letters_with_marks_are_found_as_they_are_written(api, word, text, query):
    note = await added(api, f"{word} {text}", tags=[word])
    assert await found_ids(api, query=query, tags=[word], fts_only=True) == {note}


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
async def test_a_moment_that_no_calendar_has_is_refused(http, moment):
    for answer in (
        await http.get("/documents", params={"created_after": moment}),
        await http.post("/search", json={"query": "a", "created_before": moment}),
    ):
        assert answer.status_code == 422
        assert "years 1 and 9999" in answer.json()["detail"]
    assert (await http.get("/documents", params={"created_after": "0300-01-01T00:00:00Z"})).json()["documents"]


async def test_a_note_has_no_file_even_when_one_of_the_same_bytes_is_kept(api, http, word):
    note = await added(api, word)
    file = await finished(api, await api.add_file("same.txt", io.BytesIO(word.encode())))
    assert file["document_id"] != note
    assert (await http.get(f"/documents/{note}/file")).status_code == 404
    kept = await http.get(f"/documents/{file['document_id']}/file")
    assert kept.content == word.encode()
    assert kept.headers["Content-Disposition"] == "attachment; filename*=utf-8''same.txt"
    await api.delete_document(note)
    assert (await http.get(f"/documents/{file['document_id']}/file")).status_code == 200


async def test_a_download_that_began_ends_well_though_the_document_is_deleted(api, http, word):
    job = await finished(api, await api.add_file("big.txt", io.BytesIO(word.encode())))
    url = f"/documents/{job['document_id']}/file"
    answers = await asyncio.gather(*(http.get(url) for _ in range(10)), api.delete_document(job["document_id"]))
    assert {answer.status_code for answer in answers[:-1]} <= {200, 404}
    assert (await http.get(url)).status_code == 404


@pytest.mark.requirement("E-11")
async def test_the_same_content_under_a_new_title_has_the_new_title(api, word):
    note = await added(api, f"{word} text", title="Old")
    assert await added(api, f"{word} text", title="New") == note
    assert await added(api, f"{word} text") == note
    document = await api.document(note)
    assert document["title"] == "New"
    assert await found_ids(api, query=word, fts_only=True) == {note}


async def test_no_document_gets_more_tags_than_the_limit(api):
    tags = [f"t{number}" for number in range(99)]
    note = await added(api, "a text of many tags", tags=tags)
    with pytest.raises(TooManyTags, match="at most 100"):
        await api.change_tags(note, add=["c", "d"])
    assert len((await api.document(note))["tags"]) == 99
    with pytest.raises(Invalid, match="at most 100"):
        await api.add_file("a.txt", io.BytesIO(b"words"), tags=[f"t{number}" for number in range(300)])


async def test_a_preference_is_read_as_http_has_it(http, word):
    for number, prefer in enumerate(["wait=9", "Wait=9", 'respond-async; wait="9"', "wait = 9"]):
        answer = await http.post("/jobs", json={"text": f"{word} {number}"}, headers={"Prefer": prefer})
        assert (answer.status_code, answer.headers["Preference-Applied"]) == (200, "wait=9")


async def test_a_part_beyond_the_text_is_empty_and_says_where_the_text_ends(api, word):
    note = await added(api, f"{word}\ntwo\nthree")
    for start, end in ((9, 12), (3, 1), (2, 1)):
        part = await api.text(note, unit="lines", start=start, end=end)
        assert (part["text"], part["total"]) == ("", 3)
        assert part["end"] == part["start"] - 1 <= 3
    part = await api.text(note, unit="characters", start=9_999, end=99_999)
    assert part["text"] == ""
    assert part["start"] == part["end"] == part["total"]


TEXTS = (
    "The ferry to the island leaves at six, from the southern pier of the harbour.",
    "At six the ferry leaves the southern pier of the harbour for the island.",
    "Boil the potatoes for twenty minutes and mash them with butter.",
)


async def test_similar_documents_come_nearest_first_without_the_document_itself(api):
    ferry, same, potatoes = [await added(api, text) for text in TEXTS]
    results = (await api.similar(ferry, top=50))["results"]
    found = {result["document_id"]: result for result in results}
    assert ferry not in found
    assert found[same]["vec_score"] > 0.9
    assert found[same]["fts_score"] is None
    assert found.get(potatoes, {"vec_score": 0})["vec_score"] < found[same]["vec_score"]
    linked = {result["replaced_by"] for result in results}  # what replaced another one takes its place
    scores = [each["score"] for each in results if not each["replaced_by"] and each["document_id"] not in linked]
    assert scores == sorted(scores, reverse=True)
    assert len((await api.similar(ferry, top=1))["results"]) == 1


async def test_a_document_that_is_not_there_has_no_similar_ones(api):
    with pytest.raises(NotFound):
        await api.similar(10**9, top=3)


EXPLAINED = (
    "The glimmerfish swims by night.",
    "It glows, too.",
    "A glimmerfish never glows.",
    "Trains leave by night.",
)


@pytest.fixture
async def tag(api):
    for text in EXPLAINED:
        await finished(api, await api.add_note(text=text, tags=["explained"], thread="explained"))
    return "explained"


async def test_what_is_explained_adds_up_to_the_score(api, tag):
    reply = await api.search(query="glimmerfish glows", tags=[tag], explain=True)
    for result in reply["results"]:
        why = result["explanation"]
        assert why["words"]["share"] + why["meaning"]["share"] + why["typed"] == pytest.approx(result["score"])
        assert sum(term["score"] for term in why["terms"]) == pytest.approx(result["fts_score"] or 0)
        assert (why["words"]["score"], why["meaning"]["score"]) == (result["fts_score"], result["vec_score"])
        assert (why["words"]["in_context"] is None) == (result["context_score"] is None)
    by_text = {result["text"]: result["explanation"] for result in reply["results"]}
    assert {term["term"] for term in by_text[EXPLAINED[2]]["terms"]} == {"glimmerfish", "glows"}
    assert by_text[EXPLAINED[2]]["words"]["place"] == 1
    assert {term["term"]: term["count"] for term in by_text[EXPLAINED[0]]["terms"]} == {"glimmerfish": 1}
    known = [term["idf"] for why in by_text.values() for term in why["terms"] if term["idf"] is not None]
    assert min(known, default=1) > 0  # a word that has other forms in documents of the engine says none
    assert (by_text[EXPLAINED[3]]["words"]["place"], by_text[EXPLAINED[3]]["terms"]) == (None, [])
    assert sorted(why["meaning"]["place"] for why in by_text.values()) == [1, 2, 3, 4]


@pytest.mark.parametrize(("mode", "leg"), [("fts_only", "words"), ("vec_only", "meaning")])
async def test_one_leg_alone_is_the_whole_score(api, tag, mode, leg):
    reply = await api.search(query="glimmerfish", tags=[tag], explain=True, **{mode: True})
    for place, result in enumerate(reply["results"], 1):
        why = result["explanation"]
        assert why[leg]["place"] == place
        assert why[leg]["share"] + why["typed"] == pytest.approx(result["score"])
        assert why["words" if leg == "meaning" else "meaning"] is None


async def test_the_other_passages_of_a_document_are_explained_too(api, tag):
    reply = await api.search(query="glimmerfish", tags=[tag], explain=True, group_by="document")
    assert all(each["explanation"] for result in reply["results"] for each in (result, *result["more"]))


async def test_nothing_is_explained_unasked(api, tag):
    assert all(result["explanation"] is None for result in (await api.search(query="x", tags=[tag]))["results"])


async def test_a_beginning_of_words_has_no_weight_of_its_own(api, tag):
    reply = await api.search(query="glimmerf*", tags=[tag], explain=True, fts_only=True)
    [term] = reply["results"][0]["explanation"]["terms"]
    assert (term["idf"], term["count"]) == (None, None)


async def test_a_word_that_stands_often_says_so(api):
    await finished(api, await api.add_note(text="Knock, knock, knock: woodpeckers.", tags=["knocking"]))
    reply = await api.search(query="knock", tags=["knocking"], explain=True, fts_only=True)
    assert [term["count"] for term in reply["results"][0]["explanation"]["terms"]] == [3]


async def test_a_note_and_a_file_can_be_waited_for_in_the_call_that_adds_them(api):
    word = uuid4().hex
    assert (await api.add_note(text=word, wait=60))["status"] == "done"
    assert (await api.add_file(f"{word}.txt", io.BytesIO(b"Words of it."), wait=60))["status"] == "done"


async def test_a_job_is_waited_for_until_it_is_done_or_has_failed(api):
    done = await api.wait_for_job((await api.add_note(text=uuid4().hex))["job_id"])
    assert (done["status"], done["progress"]) == ("done", 1)
    failed = await api.wait_for_job((await api.add_file("x.bin", io.BytesIO(bytes(range(256)) * 9)))["job_id"])
    assert failed["status"] == "failed"
    assert failed["error"]


@pytest.mark.rare
async def test_waiting_asks_once_where_polling_would_ask_again_and_again(server):
    paths = []

    def count(_, path):
        paths.append(path)
        return nullcontext({})

    async with EngineClient(server.url, KEY, around=count) as client:
        text = f"{uuid4().hex} " + "Ledgers were kept by patient clerks. " * 1500
        job_id = (await client.add_note(text=text))["job_id"]
        assert (await client.wait_for_job(job_id))["status"] == "done"
    assert 1 <= paths.count(f"jobs/{job_id}") <= 4


async def test_all_pages_of_jobs_and_as_many_documents_as_wanted(api):
    word = uuid4().hex
    ids = [await added(api, f"{word} {number}", tags=[word]) for number in range(5)]
    assert [document["id"] async for document in api.iter_documents(tag=word)] == ids
    pages = [page async for page in api.document_pages(3, tag=word)]
    assert [document["id"] for page in pages for document in page["documents"]] == ids[:3]
    assert pages[-1]["next_cursor"]


@pytest.mark.slow
async def test_more_jobs_than_a_page_holds_on_an_engine_that_lets_nobody_wait(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api", KB_MAX_WAIT_SECONDS="0") as server:
        async with EngineClient(server.url) as client:
            accepted = [(await client.add_note(text=f"Note {number}."))["job_id"] for number in range(MAX_PAGE + 1)]
            assert [job["id"] async for job in client.iter_jobs()] == accepted[::-1]
            with pytest.raises(TimeoutError):
                await client.wait_for_job((await client.add_note(text="The last one."))["job_id"], timeout=0)
            assert (await client.wait_for_job(accepted[0]))["status"] == "done"
