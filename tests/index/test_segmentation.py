"""Scripts without spaces in pairs of letters: the pairs of a query are among the pairs of the index."""

from __future__ import annotations

import time
from unicodedata import normalize

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.index.words.emoji import emojis, written
from kb.index.words.index import MOST_ADDED, TermFilter
from kb.index.words.segmentation import aligned, as_phrase, folded, parts, places, segmented, varied
from kb.search.highlights import Highlighter
from kb.search.query import Query
from kb.store.analyzer import Analyzer, FtsTokenizer
from kb.store.rows import Filter

LETTERS = "天气预报のカ한ก\u0e34\u0e49ขខ\u17d2မ\u103c"


def test_a_text_of_other_scripts_is_indexed_as_it_is():
    assert segmented("Plain text") is segmented("Ünïté, Привет, йогурт, שלום 🚢") is None
    assert as_phrase("Ünïté") == "Ünïté"


@pytest.mark.parametrize(
    ("written", "sought"),
    [
        (normalize("NFD", "йогурт"), "йогурт"),
        ("зелёный", "зеленый"),
        ("θάλασσα", "ΘΑΛΑΣΣΑ"),
        ("Σίσυφος", "σισυφος"),
        ("ΐδιος", normalize("NFD", "ΐδιος")),
        ("مُحَمَّد", "محمد"),
        ("أحمد", "احمد"),
        ("كتـــاب", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        (normalize("NFD", "दिन"), "दिन"),
    ],
)
def test_letters_with_and_without_their_marks_are_found_by_each_other(make_store, written, sought):
    with make_store(dimensions=8) as store, store.read() as tx:
        analyzer = tx.index.analyzer
        text = f"Before {written} behind."
        for one, other in ((written, sought), (sought, written)):
            assert analyzer.stems_of(one) == analyzer.stems_of(other)
            assert len(analyzer.stems_of(one)) == 1
        [(start, end)] = Highlighter(analyzer, [sought]).ranges(text)
    assert text[start:end] == written


@pytest.mark.parametrize(("word", "other"), [("दिन", "दान"), ("йод", "иод"), ("їжа", "іжа")])
def test_marks_that_tell_words_apart_are_kept(make_store, word, other):
    with make_store(dimensions=8) as store, store.read() as tx:
        assert tx.index.analyzer.stems_of(word) != tx.index.analyzer.stems_of(other)


@given(st.text(st.sampled_from("aéöйёάअदिनाً\u0301\u0308ガ\u3099ᄇ\u1169ก\u0e34天 -"), max_size=20))
def test_words_are_marked_where_they_stand(text):
    written, starts = aligned(text)
    assert written == folded(text)
    assert len(starts) == len(written) + 1
    assert [*starts] == sorted(starts)
    assert starts[-1] == len(text)


@given(st.text(st.sampled_from(LETTERS + "ab 12。"), max_size=30), st.data())
def test_any_part_of_a_text_stands_in_it_as_a_phrase(text, data):
    """A part that begins with a mark is none, nor is one of a word of other letters."""
    start = data.draw(st.integers(0, len(text)))
    part = text[start : data.draw(st.integers(start, len(text)))]
    written = (segmented(text) or text).split()
    if part[:1] in "\u0e34\u0e49\u17d2\u103c" or not segmented(part) or set(part) & set("ab12。 "):
        return
    *first, last = as_phrase(part, begins=True).removesuffix("*").split()
    following = [written[place : place + len(first) + 1] for place in range(len(written))]
    assert any(each[:-1] == first and each[-1].startswith(last) for each in following if len(each) > len(first))


@pytest.mark.parametrize(
    "text", ["\u1107\u1169\u1100\u1169\u1109\u1165", "\u30ab\u3099\u30a4\u30c8\u3099", "\uf914\uf914"]
)
def test_however_its_letters_are_written_a_text_is_found(text):
    query = Query.parse(text, Filter())
    assert set(map(folded, query.words)) <= set(segmented(text).split())
    assert as_phrase(text) in segmented(text)


def test_a_letter_that_is_written_in_another_way_is_marked():
    assert [token for _, _, token in places(folded("\uf914\u6771"))] == ["\u6a02\u6771", "\u6771"]


@pytest.mark.parametrize("run", ["天气" * 5000, "ก" * 5000 + "\u0e34" * 5000])
def test_thousands_of_letters_before_a_word_of_another_script_are_read_at_once(run):
    begun = time.monotonic()
    assert as_phrase(f"{run}a").endswith(" a")
    assert time.monotonic() - begun < 2


def test_the_places_of_pairs_are_those_of_their_letters():
    assert list(places("天气预")) == [(0, 2, "天气"), (1, 3, "气预"), (2, 3, "预")]
    assert [(start, end) for start, end, _ in places("กิน")] == [(0, 3), (2, 3)]


def test_a_break_that_nobody_sees_parts_nothing():
    assert segmented("ភាសា\u200bខ្មែរ") == segmented("ភាសាខ្មែរ")


@pytest.mark.parametrize(
    ("query", "words", "lacking"),
    [
        ("安装Python3教程", ("安装", "python3", "教程"), ()),
        ("猫", ("猫*",), ()),
        ("2024年 報告", ("2024", "年*", "報告"), ()),
        ("東京 -大阪", ("東京",), ("大阪",)),
        ("図書*", ("図書*", "図書"), ()),
        ("กิน*", ("กิน*", "กิน"), ()),
        ('"天气预报"', ("天气", "气预", "预报", "天气预报"), ()),
        ('"一二三四五六七八九十"', ("一二", "二三", "三四", "四五", "五六", "六七", "七八", "八九", "九十"), ()),
    ],
)
def test_a_query_is_looked_for_by_its_pairs(query, words, lacking):
    parsed = Query.parse(query, Filter())
    assert (parsed.words, parsed.where.lacking) == (words, lacking)
    assert [word for each in parsed.words for word in parts(each.removesuffix("*"))]


@pytest.mark.parametrize(
    ("words", "text", "marked"),
    [
        (("天气", "气预", "预报"), "明天的天气预报 and 天气", ["天气预报", "天气"]),
        (("猫*",), "猫が寝て、黒猫も。", ["猫", "猫"]),
        (("python", "教程"), "Python教程", ["Python", "教程"]),
    ],
)
def test_pairs_that_overlap_are_marked_as_one(make_store, words, text, marked):
    with make_store(dimensions=8) as store, store.read() as tx:
        found = Highlighter(tx.index.analyzer, words).ranges(text)
    assert [text[start:end] for start, end in found] == marked


def words(count, start=0):
    return [f"word{number}" for number in range(start, start + count)]


def test_until_the_database_was_read_every_token_may_be_there():
    terms = TermFilter()
    terms.add(["one"])
    assert terms.possible(["one", "two"], 9) == ["one", "two"]


def test_a_snapshot_before_that_reading_may_have_had_other_tokens():
    terms = TermFilter()
    terms.fill([["one"]], 5)
    assert terms.possible(["one", "two"], 4) == ["one", "two"]
    assert terms.possible(["one", "two"], 5) == ["one"]


@pytest.mark.parametrize("count", [10, MOST_ADDED * 2 + 10])
def test_tokens_of_new_chunks_are_there_whenever_they_were_added(count):
    terms = TermFilter()
    terms.add(words(count))
    terms.fill([words(5, 10**6), words(5, 2 * 10**6)], 1)
    for start in range(count, 2 * count, 1000):
        terms.add(words(min(1000, 2 * count - start), start))
    there = words(2 * count) + words(5, 10**6) + words(5, 2 * 10**6)
    assert terms.possible([*there, "nowhere"], 1) == there


def test_a_set_that_must_be_read_again_lacks_nothing_meanwhile_and_afterwards():
    terms = TermFilter()
    terms.fill([["one"]], 1)
    terms.since = None
    assert terms.possible(["two"], 7) == ["two"]
    terms.fill([["two"]], 7)
    assert terms.possible(["one", "two", "three"], 7) == ["one", "two"]


@pytest.fixture(scope="module")
def analyzer():
    return Analyzer(FtsTokenizer(apsw.Connection(":memory:")))


@pytest.mark.parametrize(
    ("written", "sought"),
    [
        ("２０２７年３月", "2027年3月"),
        ("ＱＲＳ物産㈱", "株"),
        ("ﾍﾟﾝｷﾞﾝ", "ペンギン"),
        ("oﬃce", "office"),
        ("Dampf\u00adschiff", "Dampfschiff"),
        ("m²", "m2"),
        ("H₂O", "h2o"),
        ("Ⅳ", "IV"),
        ("№", "no"),
        ("Łódź", "lodz"),
        ("SØREN", "soren"),
        ("Søren", "soeren"),
        ("Đà", "da"),
        ("Ærø", "aeroe"),
        ("Diyarbak\u0131r", "diyarbakir"),
        ("cœur", "coeur"),
        ("Þórður", "thordur"),
        ("Größe", "groesse"),
        ("Århus", "aarhus"),
        ("Straße", "strasse"),
        ("Hawai\u02bbi", "hawaii"),
        ("getUserById", "user by id"),
        ("HTTPServerError", "server error"),
        ("parseXMLFile2", "xml file"),
        ("renderHTML", "html"),
        ("userIDs", "user ids"),
        ("C++", "c++"),
        ("C#", "c#"),
        (".NET", ".net"),
    ],
)
def test_another_form_of_a_word_finds_it_and_is_marked_where_it_stands(analyzer, written, sought):
    text = f"It says {written}, they said."
    tokens, wanted = analyzer.indexed(text), analyzer.stems_of(sought)
    assert any(tokens[start : start + len(wanted)] == wanted for start in range(len(tokens)))
    ranges = Highlighter(analyzer, [sought]).ranges(text)
    assert ranges
    assert all(start < end and text[start:end] in written for start, end in ranges)


@pytest.mark.parametrize(("one", "other"), [("C", "C++"), ("C", "C#"), ("C#", "F#"), ("NET", ".NET")])
def test_what_a_sign_tells_apart_is_apart(analyzer, one, other):
    assert analyzer.stems_of(one) != analyzer.stems_of(other)


@pytest.mark.parametrize(
    "text",
    ["Plain English text, nothing else.", "PDFs and URLs", "miRNAs, mTORC1 and PI3K", "naïve café", "mañana", "10⁶ 1½"],
)
def test_words_without_other_forms_have_none(text):
    assert varied(text) is None
    assert folded(text) == text


@pytest.mark.parametrize(
    "text", ["ﾍﾟﾝｷﾞﾝ ㈱", "The oﬃce ﬁle", "C++ and C# with .NET", "Dampf\u00adschiff 140 m²", "\U0001d401old Ⅳ"]
)
def test_each_letter_of_a_form_is_one_of_the_text(text):
    written, starts = aligned(text)
    assert written == folded(text)
    assert len(starts) == len(written) + 1
    assert [*starts] == sorted(starts)
    assert starts[-1] == len(text)


@pytest.mark.parametrize("sign", ["🐳", "🇳🇴", "☔"])
def test_an_emoji_is_shown_as_people_write_it(sign):
    assert [written(each) for each in emojis(sign)] == [sign]


@pytest.mark.parametrize(
    "word", ["", "whale", "\ue2a4", "\ue2a4foo.bar", "\ue2a4128051a", "\ue2a455296", "\ue2a4999999999"]
)
def test_a_word_that_begins_with_the_mark_stays_as_it_is(word):
    assert written(word) == word
