"""The front matter of a Markdown file."""

from __future__ import annotations

import pytest

from kb.api.tag_tree import clean_tags
from kb.formats.readers.markdown import read
from kb.markdown.front_matter import front_matter, with_renamed_tags


def markdown(matter, body="Text.\n", fence="---"):
    return read(f"{fence}\n{matter}\n{fence}\n{body}".encode())


@pytest.mark.parametrize(
    ("matter", "tags"),
    [
        ("tags: [recipes, food/asian, '2024', yes]", ("recipes", "food/asian", "2024", "yes")),
        ("tags:\n  - '#quoted'\n  - machine learning\n  - a, b", ("quoted", "machine learning", "a", "b")),
        ("tags: one two/three", ("one", "two/three")),
        ("tags: one thing, another", ("one thing", "another")),
        ("tag: single", ("single",)),
        ("Tags: [x, x, '', ' ', '#']", ("x",)),
        ("tags:", ()),
        ("tags: {a: b}", ()),
        ("tags: [[nested], 3, null, ~, 'null', Nulla]", ("3", "null", "Nulla")),
        (f"tags: [{'x' * 201}, ok]", ("ok",)),
        ("tags: null\nbroken: [", ()),
        ("tags:\n  - ~\n  - ok\nbroken: [", ("ok",)),
    ],
)
def test_tags_are_taken_as_written(matter, tags):
    assert markdown(matter).tags == tags


def test_there_are_no_more_tags_than_the_engine_takes():
    assert len(markdown(f"tags: [{', '.join(f't{number}' for number in range(500))}]").tags) == 100


@pytest.mark.parametrize(
    ("matter", "date"),
    [
        ("date: 2024-03-01", "2024-03-01"),
        ("created: 2024-03-01T10:00:00+02:00", "2024-03-01T10:00:00+02:00"),
        ("date created: 1 March 2024", "1 March 2024"),
        ("modified: 2025-01-01\ndate: 2024-03-01", "2024-03-01"),
        ("lastmod: 2025-01-01", "2025-01-01"),
        ("date: {{date}}", None),
        ("date: yesterday", None),
        ("date: [2024]", None),
    ],
)
def test_the_date_is_the_one_of_its_making_as_written(matter, date):
    assert markdown(matter).date == date


def test_toml_says_the_same():
    said = markdown("title = 'T'\ntags = ['a', 'b/c']\ndate = 2024-03-01\naliases = ['Other']", fence="+++")
    assert (said.title, said.tags, said.date, said.aliases) == ("T", ("a", "b/c"), "2024-03-01", ("Other",))


def test_toml_with_keys_that_are_very_deep_is_text():
    assert "a.a" in markdown(f"{'a.' * 100}a = 1\ndate = 2024-03-01", fence="+++").text
    assert "a.a" not in markdown(f"{'a.' * 50}a = 1\ndate = 2024-03-01", fence="+++").text


def test_aliases_are_a_list_or_a_single_one():
    assert markdown("aliases:\n- Night owl\n- Owl").aliases == ("Night owl", "Owl")
    assert markdown("alias: Owl").aliases == ("Owl",)


@pytest.mark.parametrize(
    "matter",
    [
        "title: a: b\ntags: []",
        "title: {{title}}",
        "- a list",
        "just words",
        "a: &a [*a]",
        "[" * 5000,
        "x" * 70_000,
        "\t- :",
    ],
)
def test_front_matter_that_makes_no_sense_is_only_text(matter):
    said = markdown(matter, "# Heading\n")
    assert said.tags == ()
    assert said.text.startswith("---\n")
    assert said.title in ("Heading", "a: b", "{{title}}")


@pytest.mark.parametrize(
    ("body", "tags"),
    [
        ("About #cats and #dogs/small, twice #cats.", ("cats", "dogs/small")),
        ("#first thing in a line\n\n- an #item\n\n> a #quote", ("first", "item", "quote")),
        ("# Heading with a #tag", ("tag",)),
        ("#katzenübung #日本語 #a-b_c #1984 #y1984", ("katzenübung", "日本語", "a-b_c", "y1984")),
        ("`#code` and ``a `#b` c`` and \\#escaped", ()),
        ("```\n#include <x>\n```\n\n    #indented\n", ()),
        ("https://example.org/#part [link](#anchor) a#b C# ##x", ()),
        ("(#bracket) is none, and # is none", ()),
    ],
)
def test_hashtags_in_the_text_are_tags_as_in_obsidian(body, tags):
    assert read(body.encode()).tags == tags


def test_a_code_span_ends_with_as_many_backticks_as_it_begins_with():
    assert read(b"`` #a ` #b `` #c ``` #d `e` \\`#f` #g").tags == ("c", "d", "g")


@pytest.mark.parametrize("fence", ["---", "+++"])
def test_front_matter_is_fields_and_no_text_and_the_lines_below_keep_their_numbers(fence):
    matter = "title: T\ntags: [a]\nstatus: open" if fence == "---" else "title = 'T'\ntags = ['a']\nstatus = 'open'"
    said = markdown(matter, "# Heading\n\nText.\n", fence)
    assert (said.title, said.tags) == ("T", ("a",))
    assert said.text == "\n\n\n\n\n# Heading\n\nText.\n"


def test_a_file_of_front_matter_alone_has_it_as_its_text_too():
    read_ = markdown("title: Owl\ntags: [birds]", body="\n")
    assert (read_.title, read_.tags) == ("Owl", ("birds",))
    assert read_.text == "---\ntitle: Owl\ntags: [birds]\n---\n\n"


@pytest.mark.parametrize(
    ("matter", "tags"),
    [
        ("title: Repairs: the wall\ntags: [wall, lime", ("wall", "lime")),
        ("title: a: b\ntags:\n  - wall\n\t- lime mortar", ("wall", "lime mortar")),
        ("title: a: b\nTags: '#wall', \"lime\"", ("wall", "lime")),
        ("author: @petra\ntag: wall lime", ("wall", "lime")),
        ("{{date}}\ntags: wall\n: odd", ("wall",)),
    ],
)
def test_tags_are_rescued_from_front_matter_that_breaks_the_rules_and_the_rest_stays_text(matter, tags):
    said = markdown(matter)
    assert (said.tags, said.omitted) == (tags, {})
    assert matter.splitlines()[0] in said.text


def test_tags_that_cannot_be_rescued_are_counted():
    assert markdown("tags: ###\ntitle: a: b").omitted == {"front_matter": 1}
    assert markdown("just words").omitted == {}


def test_tags_with_a_hash_are_tags_though_yaml_takes_them_for_comments():
    assert markdown("tags: #wall #lime/mortar").tags == ("wall", "lime/mortar")
    assert markdown("tags:\n  - #wall\n  - home").tags == ("home", "wall")
    assert markdown("tags: [wall] # of 2024").tags == ("wall",)
    assert markdown("tags: # these\n  - wall").tags == ("wall",)


def test_other_names_and_the_date_are_rescued_alike():
    said = markdown("title: a: b\naliases:\n  - Night owl\n  - Owl\ncreated: 2024-03-01\n\todd: tab")
    assert (said.aliases, said.date) == (("Night owl", "Owl"), "2024-03-01")


def test_lines_of_windows_end_as_others_do():
    text = "---\r\ndate: 2026-04-01\r\ntags: [a, b]\r\n---\r\nText.\r\n"
    matter = front_matter(text)
    assert (matter.date, matter.tags, text[matter.length :]) == ("2026-04-01", ("a", "b"), "Text.\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\ntags: [kiln, kiln/bricks, kilns, my-kiln]\n---\nkiln", "---\ntags: [work, work/bricks, kilns, my-kiln]\n---\nkiln"),
        ("---\ntags: kiln other\n---\n", "---\ntags: work other\n---\n"),
        ("---\ntags: kiln, other\n---\n", "---\ntags: work, other\n---\n"),
        ("---\r\nTags:\r\n- kiln\r\n-  \"kiln\"\r\ntitle: kiln\r\n---\r\n", "---\r\nTags:\r\n- work\r\n-  \"work\"\r\ntitle: kiln\r\n---\r\n"),
        ("---\ntags: #kiln #other\n---\n", "---\ntags: #work #other\n---\n"),
        ("---\ntag: kiln\ndescription: kiln\naliases: [kiln]\n---\n", "---\ntag: work\ndescription: kiln\naliases: [kiln]\n---\n"),
        ("+++\ntags = [\"kiln\", 'x']\n+++\n", "+++\ntags = [\"work\", 'x']\n+++\n"),
        ("---\ntags: [work, kiln]\n---\n", "---\ntags: [work, work]\n---\n"),
        ("---\ntags:\n  - kiln\n  - projects/kiln\nkiln: [kiln]\n---\n", "---\ntags:\n  - work\n  - projects/kiln\nkiln: [kiln]\n---\n"),
        ("---\ntags: [Kiln]\n---\nkiln", None),
        ("---\ntitle: kiln\n---\n#kiln", None),
        ("#kiln and kiln", None),
        ("", None),
        ("---\ntags: [kiln\n---\n", "---\ntags: [work\n---\n"),
        ("---\ntags: {kiln: kiln}\n---\n", None),
        ("---\ntags: &a [kiln]\nother: *a\n---\n", "---\ntags: &a [work]\nother: *a\n---\n"),
        ("---\ntags: |\n  kiln\n  x\n---\n", "---\ntags: |\n  work\n  x\n---\n"),
    ],
)  # fmt: skip
def test_a_tag_gets_its_new_name_and_all_else_stays_as_it_is(before, after):
    assert with_renamed_tags(before, {"kiln": "work", "kiln/bricks": "work/bricks"}) == (
        before if after is None else after
    )


@pytest.mark.parametrize(
    "name", ["a, b", "a: b", "a # b", "[a]", '"a', "two words", "- a", "a\\b", "{}", "*a", "&a", "!a", "|"]
)
@pytest.mark.parametrize("written", ["[kiln, x]", "kiln", "\n- kiln\n- x", '["kiln"]', "kiln x"])
def test_no_name_of_a_tag_breaks_front_matter(name, written):
    text = f"---\ntitle: t\ntags: {written}\n---\ntext"
    after = with_renamed_tags(text, {"kiln": name})
    expected = clean_tags([name if tag == "kiln" else tag for tag in front_matter(text).tags])
    assert after == text or front_matter(after).tags == expected
    assert front_matter(after).title == "t"
