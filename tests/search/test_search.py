from __future__ import annotations

import random
import unicodedata
from dataclasses import replace

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.embed.protocol import Likeness
from kb.formats.readers.markdown import read
from kb.index.vectors.scores import ScoredChunks
from kb.index.words.apostrophes import apart, is_contraction
from kb.index.words.document_names import file_ending, file_stem, folder_names
from kb.index.words.query_word_groups import alternatives
from kb.markdown.front_matter import front_matter
from kb.markdown.tags import tags_in
from kb.search.copied_passages import COUNTED, deduplicate
from kb.search.fusion import Candidates, Ranking, best, fuse, measure_scale, weighed
from kb.search.highlights import Highlighter
from kb.search.numbers import meant
from kb.search.passages import in_succession
from kb.search.query import MAX_TERMS, Query, keywords
from kb.store.analyzer import Analyzer, FtsTokenizer
from kb.store.rows import Filter
from kb.store.sqlite.index import match_expression

NAN = float("nan")


def candidates(fts, vec):
    return Candidates(np.arange(1, len(fts) + 1), np.array(fts, float), np.array(vec, float))


def ranked(fts, vec):
    found = candidates(fts, vec)
    return found.ids[best(found, fuse(found).scores, 10)].tolist()


def test_stop_words_count_only_when_there_is_nothing_else():
    assert keywords("What is the capital of France?") == ["capital", "france"]
    assert keywords("to be or not to be") == ["to", "be", "or", "not"]


def test_a_query_without_a_word_asks_nothing_of_the_full_text():
    assert keywords("?! … \x00 *") == []


def test_a_query_asks_for_a_bounded_number_of_words():
    query = Query.parse(" ".join(f"word{number}" for number in range(20_000)), Filter())
    assert len(query.terms) == MAX_TERMS


def test_a_leg_that_shall_not_run_has_nothing_to_look_for():
    words_only, vectors_only = (Query.parse("lamp", Filter(), **{leg: False}) for leg in ("vectors", "full_text"))
    assert (words_only.text, words_only.words) == (None, ("lamp",))
    assert (vectors_only.text, vectors_only.words) == ("lamp", ())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_no_word_is_a_syntax_error(words):
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (text)")
    assert connection.execute("SELECT * FROM t WHERE t MATCH ?", (match_expression(words),)).fetchall() == []


def test_what_both_legs_like_comes_first():
    assert ranked([9, 5, NAN, NAN], [0.9, 0.2, 0.8, 0.1])[0] == 1


def test_a_strong_match_in_one_leg_beats_a_weak_one_in_both():
    assert ranked([30, 1, 1, NAN], [0.3, 0.35, 0.32, 0.1])[0] == 1


@pytest.mark.parametrize("leg", [[3, 1, 2], [NAN, NAN, NAN]])
def test_one_leg_alone_ranks_by_its_own_scores(leg):
    other = [NAN] * 3 if leg[0] == 3 else [3, 1, 2]
    assert ranked(leg, other) == [1, 3, 2]


def test_equal_scores_are_ranked_by_age():
    assert ranked([1, 1, 1], [0.5, 0.5, 0.5]) == [1, 2, 3]


def test_a_leg_whose_scores_are_equal_adds_nothing():
    fused = fuse(candidates([0.1] * 3, [0.5, 0.2, 0.1]))
    assert fused.words.tolist() == [0, 0, 0]
    assert fuse(candidates([3, 2, 1], [0.1] * 3)).meaning.tolist() == [0, 0, 0]


def test_equal_matches_score_no_less_than_what_no_word_matches():
    match, near = candidates([1e-6] * 3, [0.1] * 3), candidates([NAN] * 3, [0.9] * 3)
    assert fuse(match).scores.tolist() == pytest.approx([1.1] * 3)
    assert fuse(match).scores.min() > fuse(near).scores.max()


def test_scores_can_be_measured_by_the_scale_of_others():
    few, many = candidates([9, 5, 1], [0.9, 0.2, 0.8]), candidates([9, 5, 1, 0.5], [0.9, 0.2, 0.8, 0.1])
    scaled = fuse(replace(many, scale=measure_scale(few))).scores
    assert scaled[:3].tolist() == fuse(few).scores.tolist()
    assert scaled[3] < scaled[:3].min()


def led(fts, vec, matched):
    """The best of some candidates with these scores, and of others that differ a little; and the share of the meaning."""
    others = np.linspace(0, 1, 60)
    found = candidates([*fts, *(3 * others)], [*vec, *(0.2 + 0.1 * others[::-1])])
    found = weighed(replace(found, scale=measure_scale(found)), matched, Likeness())
    return found.ids[best(found, fuse(found).scores, 1)].tolist(), found.scale.meaning


def test_the_leg_whose_best_score_stands_out_leads():
    assert led([6, 5], [0.2, 0.7], 1) == ([2], pytest.approx(0.89, abs=0.01))
    assert led([20, 2], [0.25, 0.4], 4) == ([1], pytest.approx(1 / 3, abs=0.01))


def test_words_weigh_more_the_more_of_them_one_passage_has():
    shares = [led([20, 2], [0.25, 0.55], matched)[1] for matched in (1, 2, 4)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def test_few_candidates_say_nothing_of_the_better_leg():
    few = candidates([6, 5, 1], [0.2, 0.9, 0.1])
    few = replace(few, scale=measure_scale(few))
    assert weighed(few, 1, Likeness()) is few


def test_nothing_found_is_an_empty_list():
    assert ranked([], []) == []


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(-1, 1)), min_size=1, max_size=30))
def test_scores_are_always_numbers(pairs):
    fts, vec = zip(*pairs, strict=True)
    assert np.isfinite(fuse(candidates(fts, vec)).scores).all()


def test_accents_are_written_in_more_than_one_way():
    assert keywords("cafe\u0301 Ünal") == keywords("caf\u00e9 \u00fcnal") == ["café", "ünal"]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40), st.integers(1, 20))
def test_the_best_of_many_are_those_that_sorting_would_give(scores, limit):
    scored = ScoredChunks(np.arange(len(scores)), np.array(scores, float))
    expected = sorted(sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:limit])
    assert scored.best(limit).ids.tolist() == expected


@pytest.mark.parametrize(
    ("documents", "successors", "order"),
    [
        ([1, 2, 3], {}, [1, 2, 3]),
        ([1, 9, 2], {1: [2]}, [2, 1, 9]),
        ([2, 9, 1], {1: [2]}, [2, 9, 1]),
        ([1, 9, 2, 3], {1: [2, 3], 2: [3]}, [3, 2, 1, 9]),
        ([1, 9], {1: [2]}, [1, 9]),
        ([1, 1, 2, 2], {1: [2]}, [2, 1, 1, 2]),
        ([2, 1, 9, 3], {1: [2, 3], 2: [3]}, [3, 2, 1, 9]),
    ],
)
def test_what_replaced_a_document_takes_its_place(documents, successors, order):
    assert in_succession(documents, documents, successors) == order


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_and_nothing_stands_before_what_replaced_it(seed):
    chance = random.Random(seed)
    replaced = {later: chance.randrange(later) for later in range(1, 30) if chance.random() < 0.6}
    direct = {}
    for later, earlier in replaced.items():
        direct.setdefault(earlier, []).append(later)

    def reached(document_id):
        near = direct.get(document_id, [])
        return [*near, *(far for each in near for far in reached(each))]

    successors = {each: found for each in range(30) if (found := reached(each))}
    documents = [chance.randrange(30) for _ in range(60)]
    items = list(range(60))
    order = in_succession(items, documents, successors)
    assert sorted(order) == items
    first = {}
    for place, item in enumerate(order):
        first.setdefault(documents[item], place)
    for earlier, later in successors.items():
        assert all(first[each] < first[earlier] for each in later if earlier in first and each in first)


LONG = (
    "This message is meant for its reader alone. Whoever gets it by mistake deletes it, tells the sender and keeps no"
    " copy of it. The firm is not liable for what its staff write without a signature on paper and a stamp of the day."
)


class Passages:
    """Passages in the order of their scores, each of a document of its own, whose vectors are alike."""

    def __init__(self, texts):
        self.texts, self.read = texts, 0
        ones, order = np.ones(len(texts)), np.arange(len(texts), dtype=np.int64)
        candidates = Candidates(order, ones, ones)
        self.ranking = Ranking(candidates, fuse(candidates), order, len(texts), {})

    def folded(self, top=10):
        return deduplicate(
            self.ranking, range(len(self.texts)), top, self.vectors, range(len(self.texts)), self.texts_of
        )

    def vectors(self, ids):
        return np.ones((ids.size, 1), np.float32)

    def texts_of(self, ids):
        self.read += len(ids)
        return [self.texts[each] for each in ids]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is C++.", "It is C#."),
        ("It costs 5 €.", "It costs 5 $."),
        ("दिन", "दीन"),
        ("At -5 degrees", "At 5 degrees"),
        ("🚢", "🚲"),
        ("", "."),
        ("a < b", "a > b"),
        ("Ask: yes?", "Ask: yes!"),
        ("10 %", "10 ‰"),
        ("שָׁלוֹם", "שְׁלוֹם"),
    ],
)
def test_short_passages_that_differ_in_a_sign_are_two(one, other):
    assert Passages([one, other]).folded().kept == [0, 1]


def test_white_space_tells_no_passages_apart_and_long_ones_may_differ_a_little():
    assert Passages(["a  b\nc", "a b c"]).folded() == ([0], {0: [1]})
    assert Passages([LONG, LONG.replace("firm", "bank") + "!"]).folded() == ([0], {0: [1]})
    assert Passages([LONG, LONG + " " + LONG[::-1]]).folded().kept == [0, 1]


def test_what_follows_enough_results_only_counts_as_copies():
    texts = [LONG, "one", LONG, "two", "three", LONG]
    assert Passages(texts).folded(top=2) == ([0, 1], {0: [2, 5]})


@pytest.mark.rare
def test_thousands_of_copies_are_compared_with_what_is_kept_alone():
    passages = Passages([f"{LONG} {number}" for number in range(3000)] + ["answer"])
    assert passages.folded(top=10).kept == [0, 3000]
    assert passages.read == 3001
    enough = Passages([LONG, "answer", *[LONG] * 20_000])
    assert len(enough.folded(top=2).copies[0]) == COUNTED - 2
    assert enough.read <= COUNTED


@pytest.fixture(scope="module")
def analyzer():
    return Analyzer(FtsTokenizer(apsw.Connection(":memory:")))


def parsed(text):
    return Query.parse(text, Filter())


@pytest.mark.parametrize(
    "typed", ["01067", "007", "9,90", "4.0", "0.50", "1,872.00", "2.10", "00:15", "+49", "A4", "1.000", "12 256"]
)
def test_what_is_looked_for_begins_with_what_was_typed(typed):
    forms = {unit.text: unit.forms for unit in parsed(typed).units}
    assert forms[typed][0] == typed.lower()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("iPhone 12 256 GB", {"iphone", "12", "256", "gb"}),
        ("Industrie 4.0", {"industrie", "4.0"}),
        ("USB 3.0", {"usb", "3.0"}),
        ("Room 7 101", {"room", "7", "101"}),
        ("chapter 1 200 verses", {"chapter", "1", "200", "verses"}),
        ("1 872,00", {"1872"}),
        ("Windows 10.00", {"windows", "10.00", "10"}),
    ],
)
def test_no_word_of_a_query_disappears_into_a_number(query, words):
    assert words <= set(parsed(query).words)


@pytest.mark.parametrize(
    ("one", "other"), [("4.0", "4"), ("9.90", "9.9"), ("01067", "1067"), ("007", "7"), ("0.5", "0.50")]
)
def test_zeros_count_in_versions_and_codes(one, other):
    assert meant(one) is None or meant(one) != meant(other)


@pytest.mark.parametrize(("one", "other"), [("12.50", "12,5"), ("100.00", "100"), ("9.90", "9,90"), ("1 872", "1872")])
def test_zeros_and_signs_say_nothing_in_amounts(one, other):
    assert meant(one) == meant(other)


@pytest.mark.parametrize(
    ("query", "units"),
    [
        ("What is C#?", ["C#"]),
        ("C++, Rust", ["C++", "Rust"]),
        ("`foo_bar`", ["foo_bar"]),
        ("\u2018Ahoy\u2019", ["Ahoy"]),
        ("{harbour}", ["harbour"]),
        ("「夏目」", ["夏目"]),
        ("(.NET)", [".NET"]),
        ("edit .env.", ["edit", ".env"]),
        ("...harbour…", ["harbour"]),
        ("*C#*", ["C#"]),
        ("¿Qué puerto?", ["Qué", "puerto"]),
        ("<F#>", ["F#"]),
        ("“Notepad++”;", ["Notepad++"]),
    ],
)
def test_signs_around_words_are_no_part_of_them(query, units):
    assert [unit.text for unit in parsed(query).units] == units


@pytest.mark.parametrize("word", ["C++", "C#", ".NET", "F#", "g++"])
def test_a_name_that_ends_in_a_sign_is_marked_with_it(analyzer, word):
    for text in (word, f"It is {word}", f"With {word}, or not."):
        [(start, end)] = Highlighter(analyzer, parsed(word).words).ranges(text)
        assert text[start:end] == word


@pytest.mark.parametrize("word", ["index", "Notepad", "libstdc", "größe"])
def test_a_word_is_found_where_signs_of_a_language_follow_it(analyzer, word):
    assert set(analyzer.stems_of(word)) <= set(analyzer.indexed(f"Then {word}++; is called"))
    [unit] = parsed(f"{word}++").units
    assert unit.is_literal


@pytest.mark.parametrize(
    "text", ["l'été à Évian", "कि दीवार", "ガイド が", "Ἀθῆναι", "naïve crème brûlée", "한국 여행"]
)
def test_a_decomposed_query_is_the_composed_one(text):
    decomposed, composed = (parsed(unicodedata.normalize(form, text)) for form in ("NFD", "NFC"))
    assert decomposed == composed


def test_spellings_of_one_word_are_one():
    words = parsed("Müller Søren Łódź Rechnung").words
    assert alternatives(words) == [
        ["müller", "mueller"],
        ["søren", "soren", "soeren"],
        ["łódź", "lódź"],
        ["rechnung"],
    ]
    assert alternatives(["müller", "mueller", "rech*"]) == [["müller"], ["mueller"], ["rech*"]]


def test_words_that_say_nothing_in_any_language_are_not_counted():
    assert [each.forms for each in parsed("wo ist der Schlüssel").telling] == [("schlüssel", "schluessel")]
    assert [each.forms for each in parsed("où est la clé").telling] == [("clé",)]
    assert [each.forms for each in parsed("vann* klokka").telling] == [("vann*",), ("klokka",)]
    [sentence] = parsed("船什么时候开").telling
    assert sentence.forms == ("船什", "什么", "么时", "时候", "候开")
    assert not parsed("the und que").telling


@pytest.mark.parametrize("written", ["1,872.00", "1872.00", "1.872,00", "1872", "1'872", "1\u202f872,00", "$1,872.00"])
def test_a_number_is_one_however_it_is_written(written):
    assert meant(written) == meant("1872")


@pytest.mark.parametrize(
    "written", ["3.0.1", "2026-03-01", "01.03.2026", "192.168.1.17", "978-3-16-148410-0", "0.871", "a1"]
)
def test_dates_versions_and_codes_are_no_numbers(written):
    assert meant(written) is None


def test_the_parts_of_a_number_are_not_looked_for():
    assert Query.parse("1,872.00", Filter()).words == ("1,872.00", "1872", "1 872")
    assert meant("2.1") != meant("2.10") or "2 10" not in Query.parse("2.1", Filter()).words


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("don't", ("don't",)),
        ("don’t return", ("return",)),
        ("it's", ("it's",)),
        ("Anna's", ("anna",)),
        ("l'œuf", ("œuf", "oeuf", "l'œuf")),
        ("what doesn't work", ("work",)),
        ("dont", ("dont", "don't")),
        ("C#", ("csharp",)),
        ("getUserById", ("getuserbyid", "get user by id")),
    ],
)
def test_no_letter_that_says_nothing_is_looked_for(query, words):
    assert Query.parse(query, Filter()).words == words


def test_contractions_say_nothing_and_names_do():
    assert is_contraction("They're")
    assert not is_contraction("O'Brien")
    assert apart("O'Brien's rock'n'roll").split() == ["Brien", "rock", "roll"]


def test_what_was_typed_is_known_with_all_that_may_stand_for_it():
    units = {unit.text: unit for unit in Query.parse("worst-case Søren of 1,872.00", Filter()).units}
    assert units["worst-case"].is_literal
    assert units["Søren"].forms == ("søren", "soren", "soeren")
    assert units["1,872.00"].forms == ("1,872.00", "1872", "1 872")
    assert "of" not in units


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Use #ff8800, #c0ffee and #fff, #include <stdio.h>, #region Setup, see #L10-L20 and #42", ""),
        ("https://x.org/#intro [to](#intro) \\#not C# (#no) ##no #_ #1/2", ""),
        (
            "#harbour #home/garden #b2b #decade #2026-plan #änderung #feature,",
            "harbour home/garden b2b decade 2026-plan änderung feature",
        ),
        ("#mail@home #one#two #uv^wx #C# #tea→ #milk… #say“so” #due。", "mail one uv C tea milk say due"),
        (
            "#areas/local😊 #strategy♟️ #🌱 #done✅ #urgent❗ #👩‍🌾/beds #हिन्दी",
            "areas/local😊 strategy♟️ 🌱 done✅ urgent❗ 👩‍🌾/beds हिन्दी",
        ),
        ("_#lathe_ **#plane** ==#saw== ~~#file~~ |#vice|#snake_case|", "lathe plane saw file vice snake_case"),
        ("[[Note #a]] [see #b](c.md) ![#d](e.png) <https://x.org #f>\n\n[g]: <h #i.md>", "f"),
        ("$a #b c$ and $$\nx #d\n$$ but $5 #food and $6 #drink", "food drink"),
        ("%% #a %% <!-- #b\n#c --> #d %%\n\n#e\n%%\n#f", "d f"),
        ("`#a` #b `` #c ` #d `` x`y`#e\n\n    #f\n\n```\n#g\n```\n- #h\n  > #i", "b h i"),
        ("# Title #a\n\nTitle #b\n===\n\n#c\r\n#d", "a b c d"),
        ("---\ntitle: x #a\n---\n#b", "b"),
    ],
)
def test_only_what_is_meant_as_a_tag_is_one(text, tags):
    assert tags_in(text) == tuple(tags.split())

    assert read(text.encode()).tags == tags_in(text)


def test_a_document_is_known_by_who_wrote_it():
    assert front_matter("---\naliases: [Memex]\nauthor: Vannevar Bush\n---\n").aliases == ("Memex", "Vannevar Bush")


def test_names_are_those_of_files_without_folders_and_endings():
    assert file_stem("a/b/Vannevar Bush.md") == "Vannevar Bush"
    assert file_stem("mail.eml#lease.txt", is_part=True) == "lease"
    assert file_ending("a/memo.pdf") == "pdf"
    assert folder_names("https://x.org/a/b") == ["x.org", "a"]
