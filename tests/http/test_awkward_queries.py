"""Identifiers, phrases, exclusions and odd characters find what they name, first of all."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from kb.api.errors import Invalid
from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.http.conftest import finished

SIZES = {
    "identifiers": 20,
    "versions and paths": 15,
    "phrases and exclusions": 15,
    "typos": 15,
    "scripts without spaces, and Korean": 20,
    "others": 15,
}
"""How many queries of a kind there are at least."""

MISSES = 2


def lines(name):
    return [line for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines() if line]


DOCUMENTS = dict(line.split("\t") for line in lines("awkward_documents.txt") if not line.startswith("# "))
QUERIES: dict[str, list[list[str]]] = {}
for line in lines("awkward.txt"):
    if line.startswith("# "):
        QUERIES[kind := line[2:]] = []
    else:
        QUERIES[kind].append(line.split("\t"))


def test_there_are_enough_awkward_queries_of_each_kind():
    assert all(len(QUERIES[kind]) >= size for kind, size in SIZES.items())


@pytest.mark.slow
@pytest.mark.requirement("E-1")
async def test_awkward_queries_find_what_they_name(start_server, tmp_path):
    """With a server of its own: documents of other tests would change what a word weighs, and which are unknown."""
    missed = []
    with start_server(tmp_path, KB_API_KEY=KEY) as server:
        async with EngineClient(server.url, KEY) as api:
            jobs = [await api.add_note(text=text, source_path=name) for name, text in DOCUMENTS.items()]
            for job in jobs:
                await finished(api, job)
            for query, wanted in chain(*QUERIES.values()):
                found = [each["source_path"] for each in (await api.search(query=query, top=3))["results"]]
                if not found or found[0] not in wanted.split("|"):
                    missed.append((query, wanted, found))
    assert len(missed) <= MISSES, missed


async def test_a_beginning_finds_words_of_whose_ends_the_index_has_nothing(api):
    texts = {
        "organiz": "The organization has moved.",
        "happin": "Happiness comes and goes.",
        "generaliz": "No generalization holds.",
        "runn": "He was running home.",
        "photogr": "A photographer came.",
    }
    for text in texts.values():
        await finished(api, await api.add_note(text=text, tags=["begun"]))
    for beginning, text in texts.items():
        results = (await api.search(query=f"{beginning}*", tags=["begun"], fts_only=True))["results"]
        assert [result["text"] for result in results] == [text]
        [(start, end)] = results[0]["highlights"]
        assert text[start:end].lower().startswith(beginning)


async def test_what_is_excluded_stays_so_where_a_phrase_is_nowhere(api):
    for text in ("A green kite flies.", "A green kite sinks."):
        await finished(api, await api.add_note(text=text, tags=["kites"]))
    results = (await api.search(query='"green kite of paper" kite -sinks', tags=["kites"]))["results"]
    assert [result["text"] for result in results] == ["A green kite flies."]


async def test_a_letter_of_a_script_without_spaces_is_found_wherever_it_stands_also_beside_other_words(api):
    for text in ("黒猫が好きです。", "책상 위의 책을 읽다"):
        await finished(api, await api.add_note(text=text, tags=["letters"]))
    for query, text in (
        ("猫", "黒猫が好きです。"),
        ("猫 food", "黒猫が好きです。"),
        ("猫 天気", "黒猫が好きです。"),
        ("추천 책", "책상 위의 책을 읽다"),
    ):
        results = (await api.search(query=query, tags=["letters"], fts_only=True))["results"]
        assert [result["text"] for result in results] == [text], query
        assert {text[start:end] for start, end in results[0]["highlights"]} == {
            next(iter(set(query) & set(text) - {" "}))
        }


async def test_more_exclusions_than_can_be_are_refused(api):
    with pytest.raises(Invalid, match="at most 32 words and phrases that are excluded; there are 33"):
        await api.search(query=" ".join(["lamp", *(f'-"blue lamp {number}"' for number in range(33))]))
