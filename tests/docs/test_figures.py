"""Each measured number in README.md and the docs comes from a file in bench/found."""

from __future__ import annotations

import re

import pytest

from bench import charts
from bench.figures import MARKED, MINUS, NUMBER, PAGES, SOURCES, load, named, shown, written
from tests.conftest import ROOT

UNREAD = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->|<[^>]*>|```.*?```", re.DOTALL)
"""Code, targets of links, comments and tags."""
DECIMALS = ("0", "0.0", "0.00", "0.000", "0.0000")
MEASURED = re.compile(r"\d (?:ms|MB|MiB|GB|bytes|per second)\b|\b0\.\d{3}\b|\| [\d.,]+ \|")
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
found = load()


def numbers(text):
    return NUMBER.findall(UNREAD.sub("", text))


def known(marked):
    """Return the numbers that a paragraph may have: figures, with any decimals, parts of their names, and what is given."""
    figures = [each for name in marked["names"].split(";") for each in named(name, found).items()]
    words = " ".join([*(f"{row} {column}" for (row, column), _ in figures), marked["given"] or ""])
    return {*NUMBER.findall(words)} | {shown(value, like) for _, value in figures for like in DECIMALS}


@pages
def test_a_page_has_the_figures_of_the_files(page):
    text = page.read_text()
    assert text == written(text, found), "run make figures"
    paragraphs = [each for each in MARKED.finditer(text) if not each["block"].startswith("|")]
    assert [
        (number, each["mark"]) for each in paragraphs for number in numbers(each["block"]) if number not in known(each)
    ] == []


@pytest.mark.parametrize("text", ["It takes 7 ms.", "kb scores 0.648.", "| kb | 12 |", "about 500 MB"])
def test_a_number_with_a_unit_is_a_figure(text):
    assert MEASURED.search(text)


@pages
def test_a_figure_without_a_file_is_not_published(page):
    text = UNREAD.sub("", MARKED.sub("", SOURCES.sub("", page.read_text())))
    assert MEASURED.findall(text) == []


@pytest.mark.parametrize("name", [name for name, _ in charts.drawn(found)])
def test_a_chart_has_the_figures_of_the_files(name):
    assert (ROOT / "docs" / name).read_text() == dict(charts.drawn(found))[name], "run make figures"


@pytest.mark.parametrize(("name", "file"), [*found.items()])
def test_a_file_says_where_its_figures_come_from(name, file):
    assert re.fullmatch(r"[0-9a-f]{8}(\+changes)?", file["commit"])
    assert re.fullmatch(r"2\d{3}-\d\d-\d\d", file["date"])
    assert re.match(r"(\w+=\S+ )*(python -m|make) bench", file["command"])
    assert file["machine"]
    assert any(re.search(rf"figures: [^>]*\b{name}\b(?!-)", page.read_text()) for page in PAGES), "no page shows it"


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (6.813, "5.50", "6.81"),
        (12.34, "5.50", "12.34"),
        (1234.5, "99", "1,234"),
        (1, "0.995", "1.000"),
        (-0.0016, "0.002", f"{MINUS}0.002"),
    ],
)
def test_a_number_keeps_its_decimals(value, like, text):
    assert shown(value, like) == text


def test_a_table_without_a_figure_for_a_number_is_an_error():
    with pytest.raises(KeyError, match="SciFact"):
        written("<!-- figures: quality -->\n| a | b |\n|---|---|\n| SciFact | 0.7 |\n", found)
