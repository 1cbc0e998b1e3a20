"""Each number on the pages with figures comes from a file in bench/found, or is a constant."""

from __future__ import annotations

import json
import re

import pytest

from bench.quality_report import drawn
from bench.report import FOUND, MINUS, Page, load, pages, rounded
from tests.conftest import ROOT

FIGURES = {"scale": {"hybrid, ms": {"1,000": 6.81, "100,000": 12.3}}, "quality": {"Mean": {"kb": 0.648}}}


def rendered(text, constants=()):
    page = Page("page.md", text, FIGURES, list(constants))
    return page.rendered(), page.complaints


@pytest.mark.parametrize("page", [*pages()], ids=lambda page: page.name)
def test_a_page_has_the_figures_of_the_files(page):
    text = page.rendered()
    assert not page.complaints
    assert text == page.text, "run python -m bench.report"


@pytest.mark.parametrize("file", sorted(FOUND.glob("*.json")), ids=lambda file: file.stem)
def test_a_file_says_where_its_figures_come_from(file):
    found = json.loads(file.read_text())
    assert re.fullmatch(r"[0-9a-f]{8}(\+changes)?", found["commit"])
    assert re.fullmatch(r"2\d{3}-\d\d-\d\d", found["date"])
    assert re.match(r"(\w+=\S+ )*(python -m|make) bench", found["command"])
    assert found["machine"]


def test_the_chart_has_the_figures_of_the_files():
    assert (ROOT / "docs/quality.svg").read_text() == drawn(), "run python -m bench.quality_report"


def test_a_file_is_on_some_page():
    text = "".join((ROOT / page.name).read_text() for page in pages())
    named = {word for spec in re.findall(r"(?s)<!-- figures: (.*?) -->", text) for word in re.split(r"[\s;|]+", spec)}
    assert set(load()) <= named


def test_a_number_that_no_file_has_is_a_complaint():
    text = "kb takes 7 ms for 100,000 passages.\n"
    assert "named for the 2 numbers 7, 100,000" in rendered(text)[1][0]
    assert "named for the 1 numbers 7 of" in rendered(text, ["for 100,000 passages"])[1][0]
    text = f"<!-- figures: scale | hybrid, ms | 10,000 -->\n{text}"
    assert rendered(text, ["100,000 passages"])[1] == [
        "page.md: no figure hybrid, ms | 10,000 in bench/found/scale.json"
    ]


def test_numbers_of_a_paragraph_come_in_the_order_of_their_names():
    head = "<!-- figures: scale | hybrid, ms | 1,000; quality | Mean | kb -->\n"
    text = "It takes 5.5 ms, and `scores 3`\n[0](a-5.md) 0.5.\n"
    assert rendered(head + text, ["[0]"]) == (head + text.replace("5.5", "6.8").replace("0.5", "0.6"), [])


def test_a_cell_of_a_table_has_the_figure_of_its_row_and_column():
    text = "<!-- figures: quality scale -->\n| Passages | 1,000 | 100,000 |\n|---|---|---|\n| hybrid, ms | **1.00** | 1.0 |\n"
    assert rendered(text) == (text.replace("1.00", "6.81").replace(" 1.0 |", " 12 |"), [])
    wrong = text.replace("hybrid", "keyword")
    assert rendered(wrong)[0] == wrong
    assert rendered(wrong)[1][0] == "page.md: no figure keyword, ms | 1,000 in bench/found/quality or scale.json"


def test_a_phrase_that_the_page_lost_is_a_complaint():
    assert "no longer has" in rendered("Nothing.\n", ["100 tokens"])[1][0]
    assert "no longer has" in rendered("`1,100 tokens`\n", ["100 tokens"])[1][0]
    assert rendered("about 100\ntokens\n", ["100 tokens"]) == ("about 100\ntokens\n", [])


@pytest.mark.parametrize(
    ("value", "like", "shown"),
    [
        (6.813, "5.50", "6.81"),
        (12.34, "5.50", "12.3"),
        (1234.5, "99", "1,234"),
        (0.5, "0.995", "0.500"),
        (1, "0.995", "1.000"),
        (-0.0016, "0.002", f"{MINUS}0.002"),
        (5.5, f"{MINUS}12.3", "5.50"),
    ],
)
def test_a_number_keeps_its_digits(value, like, shown):
    assert rounded(value, like) == shown
