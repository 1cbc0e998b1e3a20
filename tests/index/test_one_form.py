"""Words that people take for the same find each other, and the one as typed comes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kb.embed.protocol import ModelSpec
from kb.index.words.compounds import Compounds, parts
from kb.index.words.edit_distance import plain
from kb.index.words.joined_words import joined_word, joined_words
from kb.index.words.language import guessed
from kb.index.words.other_scripts import spelled
from kb.index.words.stems import stems
from kb.search import numbers
from kb.search.highlights import Highlighter
from kb.search.measures import apart, joined
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.store.rows import Filter
from kb.telemetry.instruments import Instruments
from tests.support.documents import DIMENSIONS, content

# ruff: noqa: RUF001 - letters of other alphabets are meant


class NoModel:
    """A search by words asks no model, except for the scale on which passages are alike."""

    current = SimpleNamespace(spec=ModelSpec("none", "", "fp32", DIMENSIONS, window=256))


@pytest.fixture
def notes(make_store):
    """Functions that add notes by their names, and that return the names and the marked words of an answer."""

    def add(**texts):
        with store.write() as tx:
            for name, text in texts.items():
                tx.documents.add(replace(content(text, title=""), language=guessed([text])), name, ())

    def search(query):
        return service.search(Query.parse(query, Filter(), vectors=False), 20)

    instruments = Instruments()
    with (
        make_store(dimensions=DIMENSIONS) as store,
        ThreadPoolExecutor(1) as pool,
        closing(RecallMonitor(store, instruments)) as recall,
    ):
        service = SearchService(store, NoModel(), pool, instruments, recall)
        yield add, search


def found(answer):
    return [passage.source_path for passage in answer.results]


def marked(answer):
    return [[passage.text[start:end] for start, end in passage.highlights] for passage in answer.results]


TWINS = [
    ("كتاب", "کتاب"),
    ("علي", "علی"),
    ("مدرسة", "مدرسه"),
    ("موسى", "موسي"),
    ("الله", "اللہ"),
    ("٥٦٧٨", "۵۶۷۸"),
    ("5678", "٥٦٧٨"),
    ("क़लम", "कलम"),
    ("२०२६", "2026"),
    ("ラーメン", "らーめん"),
    ("めがね", "メガネ"),
    ("ґанок", "ганок"),
]


@pytest.mark.parametrize("pair", TWINS)
def test_a_letter_or_digit_of_another_keyboard_is_the_same_and_the_one_as_typed_comes_first(notes, pair):
    add, search = notes
    add(one=f"{pair[0]} a", other=f"{pair[1]} b")
    for typed, names in ((pair[0], ["one", "other"]), (pair[1], ["other", "one"])):
        answer = search(typed)
        assert found(answer) == names
        assert marked(answer) == [[pair[names[0] == "other"]], [pair[names[1] == "other"]]]
        assert not answer.unknown


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("oreilly", "O'Reilly"),
        ("OReilly", "O’Reilly"),
        ("osullivan", "O’Sullivan"),
        ("email", "e-mail"),
        ("e-mail", "email"),
        ("xray", "X-ray"),
        ("tshirts", "T-shirts"),
        ("wifi", "Wi-Fi"),
        ("пять", "п'ять"),
        ("usa", "U.S.A."),
        ("phd", "Ph.D."),
        ("att", "AT&T"),
        ("collecció", "col·lecció"),
        ("צהל", "צה״ל"),
        ("weekend", "week-end"),
        ("loreal", "L'Oréal"),
        ("nodejs", "Node.js"),
        ("Nest.js", "nestjs"),
        ("socketio", "Socket.IO"),
    ],
)
def test_a_sign_in_a_word_need_not_be_typed_and_the_word_as_typed_comes_first(notes, typed, written):
    add, search = notes
    add(one=f"Tell me about {written} tomorrow.", other=f"Tell me about {typed} tomorrow.", none="Tell me more.")
    answer = search(typed)
    assert found(answer) == ["other", "one"]
    assert marked(answer)[1] == [written]
    assert not answer.unknown


@pytest.mark.parametrize(
    "text", ["don't", "it's", "Anna's", "l'eau", "dell'arte", "qu'il", "who'll", "2026-11-26", "3-4", "a b"]
)
def test_nobody_types_contractions_and_elisions_in_one(text):
    assert not list(joined_words(f"before {text} behind"))
    assert joined_word(text) is None


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("16gb", "16 gb"),
        ("16 gb", "16GB"),
        ("12mm", "12 mm"),
        ("5 kg", "5kg"),
        ("7200rpm", "7,200 rpm"),
        ("7,200 rpm", "7200rpm"),
        ("5W30", "5W-30"),
        ("5W-30", "5W30"),
        ("M8x40", "M8 x 40"),
        ("M8×40", "M8x40"),
        ("m8x40", "M8×40"),
        ("2.5kg", "2.5 kg"),
        ("covid19", "COVID-19"),
        ("90 km", "90km"),
        ("20x30x2", "20 x 30 x 2"),
        ("20 x 30 x 2", "20x30x2"),
    ],
)
def test_a_number_and_its_unit_are_one_with_or_without_a_blank(notes, typed, written):
    add, search = notes
    add(one=f"It has {written} of it.", other=f"It has {typed} of it.", none="The village kg, gb, mm, x, w, km and 9.")
    answer = search(typed)
    assert found(answer)[:2] == ["other", "one"]
    assert not answer.unknown


def test_a_word_of_letters_and_digits_has_few_forms_and_a_code_none():
    assert apart("16gb") == ["16 gb"]
    assert set(apart("M8x40")) >= {"m8 x 40", "m8 40", "m8 x40"}
    assert not any(map(apart, ("a1b2c3d4e5f6", "word", "2026", "14.2.1.0", "e-mail", "3–4", "")))
    assert [word for _, word in joined(["16", "gb", "of", "memory"])] == ["16gb"]
    assert not list(joined(["and", "16", "of", "them"]))


def test_numbers_of_all_scripts_and_groups_have_one_value():
    assert numbers.meant("١٬٢٣٤٫٥") == numbers.meant("1,234.5") == numbers.meant("1.234,50")


COMPOUNDS = {
    "de": ("Die neue Straßenbahnhaltestelle ist seit gestern wieder für alle geöffnet.", "Haltestelle", "Straßenbahn"),
    "nl": (
        "De verzekeringsmaatschappij heeft gisteren een brief aan alle klanten gestuurd.",
        "maatschappij",
        "verzekering",
    ),
    "sv": ("Vi väntade länge på järnvägsstationen men ingen visste när tåget skulle komma.", "station", "järnväg"),
    "da": (
        "Vi ventede længe på jernbanestationen, men ingen vidste, hvornår toget ville komme.",
        "station",
        "jernbane",
    ),
    "no": (
        "Vi ventet lenge på jernbanestasjonen, men ingen visste når toget skulle komme frem.",
        "stasjon",
        "jernbane",
    ),
    "fi": ("Odotimme kauan rautatieasemalla, mutta kukaan ei tiennyt, milloin juna tulisi.", "asema", "rautatie"),
}


@pytest.mark.parametrize("language", COMPOUNDS)
def test_a_part_of_a_compound_finds_it_after_the_word_itself(notes, language):
    add, search = notes
    text, last, first = COMPOUNDS[language]
    add(compound=text, other="The boats are in the harbour, and nobody is on deck before Monday.")
    for word in (last, first):
        answer = search(word)
        assert found(answer) == ["compound"]
        assert [len(words) for words in marked(answer)] == [1]
        assert not answer.unknown
    add(itself=f"{last}, {first}. " + text.replace(text.split()[2], "x"))
    for word in (last, first):
        assert found(search(word)) == ["itself", "compound"]


def containing(language, word, *words, known=()):
    compounds = Compounds()
    compounds.add(plain(stem) for each in words for stem in stems(each.lower(), language))
    standing = {plain(stem) for each in known for stem in stems(each, language)}
    [part] = parts(word, stems(word.lower(), language))
    return bool(compounds.containing(part, standing.__contains__))


def test_a_rest_that_is_no_word_makes_no_compound():
    assert containing("de", "Haus", "Krankenhaus")
    assert containing("de", "Maschine", "Maschinenbau")
    assert not containing("de", "Haus", "Rathaus")
    assert containing("de", "Haus", "Rathaus", known=["rat"])
    assert not containing("de", "kommen", "bekommen", "ankommen")
    assert not containing("de", "Freund", "Freundschaft", "freundlich")
    assert not containing("de", "Reise", "Preise")


def test_thousands_of_compounds_are_kept_as_lines_of_one_text(monkeypatch):
    monkeypatch.setattr("kb.index.words.compounds.MOST_ADDED", 3)
    compounds = Compounds()
    words = [f"{place}haltestelle" for place in ("bahn", "bus", "tram", "fähren", "seilbahn", "schiffs")]
    for word in [*words, *words]:
        compounds.add(plain(stem) for stem in stems(word, "de"))
    [part] = parts("haltestelle", stems("haltestelle", "de"))
    assert len(compounds.containing(part, lambda _: False)) == len(words)


@pytest.mark.parametrize(
    ("typed", "written", "text"),
    [
        ("Tanaka", "田中", "昨日、田中さんは会議に来ませんでした。誰も理由を知りませんでした。"),
        ("suzuki", "鈴木", "昨日、鈴木さんは会議に来ませんでした。誰も理由を知りませんでした。"),
        ("Satō", "佐藤", "昨日、佐藤さんは会議に来ませんでした。誰も理由を知りませんでした。"),
        ("Toyota", "トヨタ", "昨日、トヨタは新しい車を発表しました。誰もそれを知りませんでした。"),
        ("Beijing", "北京", "昨天我们去了北京，天气很好，大家都很高兴，可是没有人知道为什么。"),
        ("Heilongjiang", "黑龙江", "昨天我们去了黑龙江，天气很好，大家都很高兴，可是没有人知道为什么。"),
        ("Moskva", "Москве", "Вчера мы снова были в Москве, и никто не знал, что делать до понедельника."),
        ("Tchaikovsky", "Чайковский", "Вчера играли вальс, его написал Чайковский, и никто не хотел идти домой."),
        ("Gogol", "Гоголь", "Эту повесть написал Гоголь, и никто не знал, что с ней делать до понедельника."),
        ("Seoul", "서울", "어제 우리는 서울에 갔지만 아무도 왜 그런지 알지 못했습니다. 날씨가 좋았습니다."),
        ("Athina", "Αθήνα", "Χθες ήμασταν πάλι στην Αθήνα και κανείς δεν ήξερε τι να κάνει ως τη Δευτέρα."),
    ],
)
def test_a_name_in_another_script_is_found_by_its_latin_letters_after_the_name_as_typed(notes, typed, written, text):
    add, search = notes
    add(other=text, plain="Nobody is here.")
    answer = search(typed)
    assert found(answer) == ["other"]
    assert "".join(marked(answer)[0]) == written
    assert not answer.unknown
    add(itself=f"We met {typed} yesterday, and nobody knew what to do.")
    assert found(search(typed)) == ["itself", "other"]


def test_an_english_word_is_no_chinese_name_and_a_short_one_no_name_at_all():
    everything = list
    assert not spelled("women", ["zh"], everything)
    assert spelled("Women", ["zh"], everything)
    assert not spelled("Xi", ["zh", "ja", "ru"], everything)
    assert not spelled("same", ["ja"], everything)
    assert not spelled("Tanaka", ["en", "de"], everything)


NUMBERS = {
    "grade": "Mathematics 6.",
    "grades": "Mathematics 60",
    "zero": "SKU 04433 in stock",
    "nonzero": "SKU 4433 in stock",
    "point": "version 1.8 is out",
    "whole": "version 18 is out",
    "phone": "call +49 30 901820 today",
    "national": "or call 030/7654321",
    "joined": "or call 0307654329",
    "address": "release 14.2.1.0 is out",
    "release": "release 14.2.10 is out",
    "part": "part 7am250a",
    "half": "½ cup of flour",
    "slash": "1/2 cup of sugar",
    "days": "takes 3–4 days",
    "law": "see § 7 (3) of the law",
    "noon": "at 12:30 sharp",
    "blanks": "1 000 000 boats",
    "commas": "1,000,000 ships",
    "million": "1000000 trains",
    "line": "limit is 1_000 items",
    "thousand": "limit is 1000 things",
    "power": "10⁶ cells",
    "caret": "10^6 grains",
    "other": "106 cells",
    "account": "my account DE89 3704 0044 0532 0130 00 is open",
    "other account": "the account DE12500105170648489890 is open",
    "device": "the device 00:1A:2B:3C:4D:5E is on",
    "cold": "it was −5 °C today",
    "frost": "it was -5°C outside",
    "warm": "it was 5 °C today",
    "week": "in 2026-W09 we",
    "four": "chapter IV ends",
    "drip": "an iv drip",
}


NUMBER_SEARCHES = [
    ("Mathematics 6", ["grade"]),
    ('"Mathematics 6"', ["grade"]),
    ("04433", ["zero"]),
    ("4433", ["nonzero"]),
    ('"1.8"', ["point"]),
    ("18", ["whole"]),
    ("901820", ["phone"]),
    ("0901820", ["phone"]),
    ("4930901820", ["phone"]),
    ("030 901820", ["phone"]),
    ("0307654321", ["national"]),
    ("030 7654329", ["joined"]),
    ("+49 30 7654321", ["national"]),
    ("14.2.1.0", ["address", "release"]),
    ('"14.2.1.0"', ["address"]),
    ("7am250a", ["part"]),
    ("½ cup", ["half", "slash"]),
    ("1/2 cup", ["slash", "half"]),
    ('"3–4 days"', ["days"]),
    ('"§ 7 (3)"', ["law"]),
    ("12:30", ["noon"]),
    ("1 000 000", ["blanks", "commas", "million"]),
    ("1000000", ["million", "blanks", "commas"]),
    ("1_000", ["line", "thousand"]),
    ("10⁶", ["power", "caret"]),
    ("10^6", ["caret", "power"]),
    ("106", ["other"]),
    ("−5 °C", ["cold", "frost", "warm"]),
    ("-5°C", ["frost", "cold", "warm"]),
    ("5 °C", ["warm", "cold", "frost"]),
    ('"−5 °C"', ["cold", "frost"]),
    ('"5 °C"', ["warm"]),
    ("2026-W09", ["week"]),
    ("DE89370400440532013000", ["account"]),
    ("DE12 5001 0517 0648 4898 90", ["other account"]),
    ("001A2B3C4D5E", ["device"]),
    ("IV", ["four", "drip"]),
    ("iv", ["drip", "four"]),
]


def test_a_number_as_typed_comes_first_and_no_other_alone(notes):
    add, search = notes
    add(**NUMBERS)
    for typed, names in NUMBER_SEARCHES:
        names_found = found(search(typed))
        assert (typed, names_found[: len(names)]) == (typed, names)
        assert len(names_found) == len(names) or not typed.startswith('"')


SIGNS_BEFORE = (
    *(
        "👨‍👩‍👧‍👧",
        "𝒛𝒂𝒑",
        "ﬁ",
        "İ",
        "ß",
        "A\u030a",
        "so\u00adft",
        "ze\u200bro",
        "\u1112\u1161\u11ab",
        "㌔",
        "ﷺ",
        "🇩🇪",
        "x²",
        "ŉ",
        "\ufeff",
    ),
    *("ｶﾞ", "क़", "म\u200dन", "½", "𝟓"),
)
HITS = {
    "lantern": ["lantern", "LANTERNS"],
    "Größe": ["grosse", "groesse"],
    "e-mail": ["email"],
    "Łódź": ["lodz"],
    "東京": ["東京"],
    "کتاب": ["كتاب"],
    "oﬃce": ["office"],
    "t\u00adall": ["tall"],
    "ze\u200bbra": ["zebra"],
    "A\u030arhus": ["Århus", "aarhus"],
    "𝒛𝒂𝒑": ["zap"],
    "İzmir": ["izmir"],
    "１２３": ["123"],
    "㌔": ["キロ"],
    "क़लम": ["कलम"],
    "\u1112\u1161\u11ab\u1100\u1173\u11af": ["한글"],
}


@pytest.mark.parametrize("hit", HITS)
def test_a_mark_is_on_the_word_whatever_stands_before_it(make_store, hit):
    with make_store(dimensions=DIMENSIONS) as store, store.read() as tx:
        for typed in HITS[hit]:
            highlighter = Highlighter(tx.index.analyzer, Query.parse(typed, Filter(), vectors=False).shown)
            for before in SIGNS_BEFORE:
                for text in (f"{before} {hit} end", f"{before}{before}, ({hit}"):
                    if before != hit:
                        [(start, end)] = highlighter.ranges(text)
                        assert text[start:end] == hit
