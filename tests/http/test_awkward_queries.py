"""Identifiers, phrases, exclusions and odd characters find what they name, first of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.conftest import finished

DOCUMENTS = {
    "release 3.0.1": "Release v3.0.1 mends the import of mailboxes.",
    "release 3.1.0": "Release v3.1.0 brings folders. It needs 1.0.3 of the parser.",
    "call foo.bar": "Call foo.bar() once and keep what it returns.",
    "foo alone": "A foo and a bar walk in; the bar is closed.",
    "snake": "The function snake_case_name takes two numbers.",
    "snakes": "A snake is in the case, and it has a name.",
    "max": "Raise max_connections to 200 in the settings of the database.",
    "connections": "At most so many connections, max, are open at once.",
    "error 1042": "E1042: the disk is full.",
    "error 1043": "E1043: the disk is gone.",
    "ticket 7781": "Closed ERR-7781 after the restart.",
    "ticket 7782": "Closed ERR-7782 after the restart.",
    "setting": "Set KB_DATA_DIR to another folder.",
    "data": "The dir of the data in kb is another folder.",
    "module fusion": "kb.search.fusion puts both lists into one.",
    "module query": "kb.search.query reads what was typed.",
    "camel": "camelCaseName is the name of the field.",
    "cpp": "A std::vector grows at its end.",
    "mail user": "Write to user@example.org when the door is stuck.",
    "mail admin": "Write to admin@example.org when the server is down.",
    "isbn": "The book has the ISBN 978-3-16-148410-0.",
    "hash": "The empty file has the sum d41d8cd98f00b204e9800998ecf8427e.",
    "doi": "The paper is 10.1000/xyz123, from the spring.",
    "order": "Order #4711 was sent on Monday.",
    "path nginx": "The file /etc/nginx/nginx.conf was changed.",
    "path ssh": "The file /etc/ssh/sshd_config was changed.",
    "path windows": r"It is in C:\Users\anna\notes.txt, last line.",
    "url": "Begin at https://example.org/docs/start and read on.",
    "address 17": "The printer is 192.168.1.17.",
    "address 71": "The scanner is 192.168.1.71.",
    "python": "Everything runs with Python 3.11.7 here.",
    "log march": "Look into file-2026-03-01.log for the crash.",
    "log later": "Look into file-2026-03-10.log for the other crash.",
    "flag": "With --dry-run nothing is written.",
    "requirements": "All are listed in requirements.txt by name.",
    "phrase noon": "On Sundays the tide turns at noon.",
    "phrase reversed": "Oddly, noon turns at the tide.",
    "lamp blue": "The blue lamp stands by the window.",
    "lamp harbour": "At the harbour a lamp is blue, and another blue one is a lamp, too.",
    "jaguar cat": "The jaguar is a big cat of the forest.",
    "jaguar car": "The jaguar is a fast car of the city.",
    "computer": "The department teaches computing and the science of algorithms.",
    "photo": "She studied photography in Leipzig.",
    "wedding": "He is a photographer, mostly of wedding parties.",
    "emoji": "🚢 The ferry leaves at six.",
    "letter x": "Mark the place with an x on the map.",
    "hamlet": "To be or not to be, that is the question.",
    "band": "The Who played in Leeds.",
    "cafe": "The café opens at eight.",
    "zurich": "Zürich lies on a lake.",
    "naive": "A naïve approach to the matter.",
    "street": "Die Straße ist gesperrt.",
    "lodz": "Łódź has a film school.",
    "operators": "In logic AND, OR and NOT are operators; NEAR is none.",
    "java": "Start java with -Xmx512m against an OutOfMemoryError.",
    "find": "Run find . -name settings.py to see which one is read.",
    "tar": "Unpack it with tar -xvf a.tgz in the folder.",
    "recipe": "Thanks for the recipe, wrote Anna.",
    "organization": "An organization of volunteers runs the lifeboats.",
    "happiness": "Happiness is a warm kitchen.",
    "generalization": "A generalization from two cases is bold.",
    "injection": "Never DROP TABLE documents by hand.",
}
QUERIES = [
    line.split("\t")
    for line in Path(__file__).with_name("awkward.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.requirement("E-3")
async def test_awkward_queries_find_what_they_name(api):
    tag = "awkward"
    jobs = [await api.add_note(text=text, source_path=name, tags=[tag]) for name, text in DOCUMENTS.items()]
    for job in jobs:
        await finished(api, job)
    missed = []
    for query, wanted in QUERIES:
        results = (await api.search(query=query, top=3, tags=[tag]))["results"]
        found = [result["source_path"] for result in results]
        if found[:1] and found[0] in wanted.split("|"):
            continue
        missed.append((query, wanted, found))
    assert len(missed) <= 0.03 * len(QUERIES), missed


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
