"""Words are found in other forms, and marked where they stand."""

from __future__ import annotations

import apsw
import pytest

from kb.lexical.emoji import emojis, written
from kb.lexical.segment import aligned, folded, varied
from kb.search.passages import Highlighter
from kb.store.analyzer import Fts5Analyzer, Tokenizer


@pytest.fixture(scope="module")
def analyzer():
    return Fts5Analyzer(Tokenizer(apsw.Connection(":memory:")))


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
