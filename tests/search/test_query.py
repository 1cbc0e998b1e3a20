"""The meaning of signs in a query."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.api.errors import Invalid
from kb.index.words.edit_distance import alphabet, distance, edits, may_be_near, plain
from kb.search.numbers import other_spellings
from kb.search.query import (
    MAX_CONDITIONS,
    MAX_PARTS,
    MAX_PHRASE_WORDS,
    MAX_QUOTED_WORDS,
    MAX_TERMS,
    Query,
    compounds,
    tokenize,
    word_count,
)
from kb.store.rows import Filter


def parsed(text):
    query = Query.parse(text, Filter())
    return query.where.holding, query.where.lacking, query.words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"blue lamp" noon', (("blue lamp",), (), ("blue", "lamp", "noon", "blue lamp"))),
        ("“blue lamp”", (("blue lamp",), (), ("blue", "lamp"))),
        *(
            (typed, (("blue lamp",), (), ("blue", "lamp")))
            for typed in (
                *("„blue lamp“", "”blue lamp”", "\uff02blue lamp\uff02", "«blue lamp»", "»blue lamp«", "»blue lamp»"),
                *(
                    "« blue lamp »",
                    "«\xa0blue lamp\xa0»",
                    "«\u202fblue lamp\u202f»",
                    "\u2039blue lamp\u203a",
                    "「blue lamp」",
                ),
            )
        ),
        ("noon -« blue lamp »", ((), ("blue lamp",), ("noon",))),
        ('"blue « lamp » noon"', (("blue « lamp » noon",), (), ("blue", "lamp", "noon"))),
        ("東京「朝の市」について", (("朝の市",), (), ("東京", "朝の"))),
        ("地図 -『朝の市』", ((), ("朝の市",), ("地図",))),
        ("\u200bfor\u200bce\u2060 ju\ufeffre", ((), (), ("force", "jure"))),
        ("jaguar -car", ((), ("car",), ("jaguar",))),
        ('lamp -"by the window"', ((), ("by the window",), ("lamp",))),
        ("photogr* art", ((), (), ("photogr*", "photogr", "art"))),
        ("rust async -tokio -actix", ((), ("tokio", "actix"), ("rust", "async"))),
        ('rust -tokio -"green threads"', ((), ("green threads", "tokio"), ("rust",))),
        ('-"green threads" rust', ((), ("green threads",), ("rust",))),
        ("дом -крыша", ((), ("крыша",), ("дом",))),
        ("घर -दीवार", ((), ("दीवार",), ("घर",))),
    ],
)
def test_quotes_dashes_and_stars_mean_something(text, expected):
    holding, lacking, words = parsed(text)
    assert (holding, lacking) == expected[:2]
    assert set(expected[2]) <= set(words)
    assert not set(words) & set(lacking)


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf now",
        "at -5 degrees",
        "a - b",
        "well-known",
        "--dry-run",
        "SELECT * FROM t",
        '5" pipe',
        "Home » News » Today",
        "Back « Overview « Home",
        "java -Xmx512m OutOfMemoryError",
        "find . -name settings.py",
        "What did Anna -the baker- say",
        "Vor -und Nachteile von Holz",
        "Thanks for the recipe! -Anna",
        "tar -xvf a.tgz",
        "what comes -after",
        "heat 20 -400",
        "__* foo.b*",
    ],
)
def test_other_dashes_stars_and_quotes_do_not(text):
    assert parsed(text)[:2] == ((), ())
    assert not [word for word in parsed(text)[2] if word.endswith("*")]


def test_a_query_of_nothing_but_what_is_not_wanted_is_looked_for():
    query = Query.parse("-lamp", Filter())
    assert (query.where, query.words, query.text) == (Filter(), ("lamp",), "-lamp")


@pytest.mark.parametrize("phrase", ["ferry -noon", "ferry -noon -night", "photogr* art", "foo.b* photogr*"])
def test_no_sign_in_quotes_means_anything_but_its_words_are_looked_for(phrase):
    holding, lacking, words = parsed(f'lamp "{phrase}"')
    assert (holding, lacking) == ((phrase.rstrip("*"),), ())
    assert {"lamp", *tokenize(phrase)} <= set(words)
    assert not [word for word in words if word.endswith("*")]


def test_a_word_before_a_phrase_that_is_wanted_is_not_excluded():
    assert parsed('lamp -harbour "blue lamp"')[:2] == (("blue lamp",), ())


def test_phrases_can_be_dropped_without_the_words_and_what_is_not_wanted():
    query = Query.parse('"blue lamp" -harbour', Filter(tags=("a",)))
    assert query.without_phrases.where == Filter(tags=("a",), lacking=("harbour",))
    assert query.without_phrases.words == query.words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Call foo.bar() of KB_DATA_DIR", ["foo.bar()", "kb_data_dir"]),
        ("v3.0.1 or 2.1", ["v3.0.1", "2.1", "3.0.1", "v2.1"]),
        ("boundary-layer theory isn't new by e-mail", ["email"]),
        ("/".join(["part"] * (MAX_PARTS + 1)), []),
    ],
)
def test_what_is_written_in_one_is_looked_for_as_it_is_written(text, expected):
    assert compounds(text) == expected


def test_parts_of_an_isbn_alone_are_not_looked_for():
    words = ("9780306406157", "978-0-306-40615-7")
    assert set(Query.parse("(978-0-306-40615-7)", Filter()).words) == {"9780306406157", "(978-0-306-40615-7)"}
    assert set(words) <= set(Query.parse("9780306406157", Filter()).words)
    assert {"978", "306"} <= set(Query.parse("978-0-306-40615-8", Filter()).words)  # its last digit is wrong


@pytest.mark.parametrize(("sign", "kind"), [("", "phrases in quotes"), ("-", "excluded words and phrases")])
def test_all_phrases_and_exclusions_count_or_the_query_is_refused(sign, kind):
    phrases = [f'"blue lamp {number}"' for number in range(MAX_CONDITIONS + 1)]
    kept = parsed(" ".join(["lamp", *(sign + phrase for phrase in [*phrases[1:], *phrases[1:]])]))[bool(sign)]
    assert kept == tuple(phrase.strip('"') for phrase in phrases[1:])
    with pytest.raises(
        Invalid, match=f"query: at most {MAX_CONDITIONS} {kind} are allowed; this query has {MAX_CONDITIONS + 1}"
    ):
        parsed(" ".join(["lamp", *(sign + phrase for phrase in phrases)]))


def test_the_ninth_word_that_is_excluded_is_excluded_too():
    words = [f"harbour{chr(letter)}" for letter in range(ord("a"), ord("a") + 9)]
    assert parsed(" ".join(["lamp", *(f"-{word}" for word in words)]))[1] == tuple(words)


def test_a_long_query_of_any_signs_is_read_at_once():
    for text in (
        '"' + "a" * 20_000,
        '"a' * 10_000,
        "-a" * 10_000,
        "a*" * 10_000,
        "a.-" * 6_000,
        '-"' * 10_000,
        "v1." * 6_000,
    ):
        with suppress(Invalid):
            assert len(parsed(f"{text} lamp")[0]) <= MAX_CONDITIONS


@pytest.mark.parametrize(("begun", "other"), [("{}{}*", ""), ("{}", ""), ("{}", "food")])
def test_of_thousands_of_beginnings_so_many_are_kept_as_are_looked_up(begun, other):
    letters = [chr(0x4E00 + number) for number in range(3000)]
    words = Query.parse(" ".join([*(begun.format(letter, letter) for letter in letters), other]), Filter()).words
    assert [word for word in words if word == other] == other.split()
    assert sum(word.endswith("*") for word in words) == MAX_TERMS


@pytest.mark.parametrize(
    "isbn",
    [
        "978-3-16-148410-0",
        "3-16-148410-x",
        "978-0-306-40615-7",
        "0-8044-2957-x",
        "99921-58-10-7",
        "979-8-6024-0545-3",
        "978-617-7171-80-4",
    ],
)
def test_an_isbn_without_hyphens_is_also_looked_for_with_those_that_it_has(isbn):
    digits = isbn.replace("-", "")
    assert other_spellings(isbn) == [digits]
    assert isbn in other_spellings(digits)
    assert len(other_spellings(digits)) <= 6


@pytest.mark.parametrize(
    "word", ["9783161484101", "1234567890", "0306406153", "978-3", "v3.0.1", "", "x" * 10, "97831614841x0"]
)
def test_what_is_no_isbn_has_no_other_spelling(word):
    assert other_spellings(word) == []


words = st.text("abcdeü", min_size=1, max_size=7)


@given(words)
def test_what_is_one_change_away_is_at_distance_one(word):
    letters = plain(word)
    assert all(distance(letters, other) == distance(other, letters) == 1 for other in edits(letters))
    assert all(may_be_near(letters, other, 1) for other in edits(letters))


@given(words, words)
def test_what_can_be_near_is_never_left_out(first, second):
    assert may_be_near(first, second, distance(first, second))
    assert (distance(first, second) == 0) == (first == second)


def test_letters_are_those_of_the_words_own_alphabet():
    assert "привет" in edits("првет")
    assert "munchen" in edits(plain("müncehn"))
    assert not set(alphabet(0)) & set("üß7_")


def test_a_word_of_many_alphabets_becomes_no_other():
    assert edits("straße")
    assert not edits("straße\u03b3\u0431\u10d3")


WORDS = " ".join(f"word{number}" for number in range(500))


def test_a_long_phrase_is_compared_by_its_first_words():
    [phrase] = parsed(f'"{WORDS}"')[0]
    assert phrase.split() == WORDS.split()[:MAX_PHRASE_WORDS]
    assert parsed(f'lamp -"{WORDS}"')[1] == (phrase,)
    short = " ".join(WORDS.split()[:MAX_PHRASE_WORDS])
    assert parsed(f'"{short}"')[0] == (short,)


@pytest.mark.parametrize("text", ["\u706f" * 900, "a." * 900, "\u0e19" * 900, "note about " * 900])
def test_a_phrase_is_as_short_in_every_script_and_without_spaces(text):
    [phrase] = parsed(f'"{text}"')[0]
    assert word_count(phrase) <= MAX_PHRASE_WORDS + 2


def test_the_words_of_all_phrases_together_are_limited():
    fit = MAX_QUOTED_WORDS // MAX_PHRASE_WORDS
    phrases = [" ".join(f"w{number}x{word}" for word in range(MAX_PHRASE_WORDS)) for number in range(fit + 1)]
    assert len(parsed(" ".join(f'"{phrase}"' for phrase in phrases[:fit]))[0]) == fit
    with pytest.raises(Invalid, match="phrases in quotes may have at most"):
        parsed(" ".join(f'"{phrase}"' for phrase in phrases))
