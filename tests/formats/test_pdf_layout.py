"""The order of a page's text, what stands above and below it, and sentences over two pages."""

from __future__ import annotations

import pytest

from tests.support.pdf import drawn_pdf
from tests.support.reading import read

HERON = [
    "The heron nests in the upper willow",
    "and feeds its young on small perch,",
    "while the otter keeps to the low-",
    "er bank where the alder roots give",
    "it shelter from the winter floods",
    "that come each year in February.",
]
BOATS = [
    "Boats must moor at the south jetty",
    "between dusk and dawn unless the",
    "harbour master has lit the green",
    "lamp above the weigh house and has",
    "entered the name of the vessel in",
    "the ledger kept beside the stove.",
]
LIME = [
    "The kiln burns for two days before",
    "the lime is drawn, and nobody may",
    "open the lower draught while the",
    "stone still glows, as the old rule",
    "of the guild has it since the fire",
    "of the year in which it was built.",
]
LEFT, RIGHT = 60, 320


def page(*columns, pitch=14, shift=0):
    """Columns of lines, drawn row by row: pairs of a place and lines."""
    rows = max(len(lines) for _, lines in columns)
    return [
        (x, 700 - pitch * row - shift * number, lines[row])
        for row in range(rows)
        for number, (x, lines) in enumerate(columns)
        if row < len(lines)
    ]


def order(text, *phrases):
    flat = " ".join(text.split())
    places = [flat.find(phrase) for phrase in phrases]
    assert -1 not in places, (phrases, flat)
    return places == sorted(places)


@pytest.mark.parametrize("x", [260, 320, 400])
@pytest.mark.parametrize("shift", [0, 4])
def test_columns_drawn_row_by_row_are_read_one_after_the_other(x, shift):
    text = read(drawn_pdf(page((LEFT, HERON), (x, BOATS), shift=shift)), "a.pdf").text
    assert order(
        text, "otter keeps to the lower bank where", "come each year in February. Boats must", "beside the stove."
    )


def test_columns_whose_lines_are_drawn_at_once():
    rows = enumerate(zip(HERON, BOATS, strict=True))
    data = drawn_pdf([(LEFT, 700 - 14 * n, f"{left}) -9000 ({right}") for n, (left, right) in rows])
    text = read(data.replace(b"Tm (", b"Tm [(").replace(b") Tj", b")] TJ"), "a.pdf").text
    assert order(text, "lower bank", "February. Boats", "stove.")


def test_three_columns_and_a_heading_across_them():
    columns = page((40, HERON), (230, BOATS), (420, LIME))
    text = read(
        drawn_pdf(
            [
                (40, 740, "News of the river, the harbour, the kiln and whatever else has come to pass this week"),
                *columns,
            ]
        ),
        "a.pdf",
    ).text
    assert order(text, "pass this week The heron", "February. Boats", "stove. The kiln", "it was built.")


def test_facing_pages_are_read_one_after_the_other():
    spread = [*page((LEFT, HERON), (480, BOATS)), (150, 40, "14"), (570, 40, "15")]
    text = read(drawn_pdf(spread, size=(842, 842)), "a.pdf").text
    assert order(text, "in February.", "14", "Boats must", "stove.", "15")
    text = read(
        drawn_pdf([(60, 800, "River notes"), (480, 800, "Harbour rules"), *spread], size=(842, 842)), "a.pdf"
    ).text
    assert order(text, "River notes The heron", "in February.", "Harbour rules Boats must", "stove.")


def test_columns_of_paragraphs_and_of_different_lengths():
    columns = page((LEFT, [*HERON, " ", *LIME]), (RIGHT, [*BOATS, " ", *HERON]))
    text = read(drawn_pdf(columns), "a.pdf").text
    assert order(text, "February. The kiln", "it was built. Boats", "stove. The heron")
    text = read(drawn_pdf(page((LEFT, BOATS[:4]), (RIGHT, HERON + LIME))), "a.pdf").text
    assert order(text, "dawn unless the harbour", "weigh house and has The heron", "February. The kiln")


def test_columns_drawn_one_after_the_other_stay_so():
    columns = page((LEFT, HERON)) + page((RIGHT, BOATS))
    assert order(read(drawn_pdf(columns), "a.pdf").text, "lower bank", "February. Boats", "stove.")


ROWS = [("Wood", "Price"), ("Oak", "120"), ("Ash", "95"), ("Elm", "88"), ("Yew", "240"), ("Fir", "18")]
SENTENCES = [
    ("Oak for the keel and the ribs", "Felled in winter by the north gate"),
    ("Ash for oars", "Bought of the miller"),
    ("Elm for planks below the water", "Sawn at the old pit"),
    ("Yew for the pegs", "Left over from the bows of last year"),
    ("Fir for masts and yards", "Floated down the river in spring"),
]


@pytest.mark.parametrize("rows", [ROWS, SENTENCES])
def test_a_table_keeps_its_rows(rows):
    text = read(
        drawn_pdf(page((LEFT, [left for left, _ in rows]), (RIGHT, [right for _, right in rows]))), "a.pdf"
    ).text
    assert text.split("\n")[:6] == [" ".join(row) for row in rows] + [""] * (6 - len(rows))


def test_short_cells_of_a_few_lines_stay_in_their_rows():
    rows = [
        ("Oak from the north,", "Felled in winter by the"),
        ("and of the dry hills", "north gate and sold by the"),
        ("", "load to the yard."),
    ]
    lines = [
        (x, 700 - 14 * (4 * n + k), cell)
        for n in range(4)
        for k, row in enumerate(rows)
        for x, cell in zip((LEFT, 220), row, strict=True)
    ]
    text = read(drawn_pdf([line for line in lines if line[2]]), "a.pdf").text
    assert text.split("\n")[:3] == [
        "Oak from the north, Felled in winter by the",
        "and of the dry hills north gate and sold by the",
        "load to the yard.",
    ]


def numbered(lines, number, header="Harbour Board, Report of the Year"):
    body = [(LEFT, 740 - 14 * row, line) for row, line in enumerate(lines)]
    return [(LEFT, 800, header), *body, (280, 40, f"Page {number} of 3")]


def test_headers_and_footers_are_read_once_and_sentences_over_two_pages_are_whole():
    pages = [
        numbered(["The ferry leaves at noon and the", "passengers meet the harbour mas-"], 1),
        numbered(["ter on the quay. The tide turns", "at six, and then the Old"], 2),
        numbered(["Quay of the town is dry. It was", "built of slate."], 3),
    ]
    whole = read(drawn_pdf(*pages), "a.pdf")
    assert whole.text == (
        "The ferry leaves at noon and the\npassengers meet the harbour master on the quay.\n\n"
        "The tide turns\nat six, and then the Old\nQuay of the town is dry.\n\nIt was\nbuilt of slate.\n\n"
        "Headers and footers\n\n- Harbour Board, Report of the Year\n"
    )
    assert [(section.page, section.heading) for section in whole.sections] == [
        *((page, ()) for page in (1, 2, 3)),
        (None, ("Headers and footers",)),
    ]


def test_what_differs_from_page_to_page_stays_in_its_place():
    invoices = [numbered(["One oar."], n, header=f"Invoice {n + 1040}") for n in (1, 2, 3)]
    text = read(drawn_pdf(*invoices), "a.pdf").text
    assert order(text, "Invoice 1041 One oar.", "Invoice 1042 One oar.", "Invoice 1043 One oar.")
    assert "Headers" not in text
    figures = [numbered(["One oar."], n, header=f"Figure {n}") for n in (1, 2, 3)]
    assert "Figure 2" in read(drawn_pdf(*figures), "a.pdf").text
    reports = [numbered(["One oar."], n, header=f"Report | {n}") for n in (1, 2, 3)]
    assert read(drawn_pdf(*reports), "a.pdf").text.endswith("Headers and footers\n\n- Report |\n")
    titles = [[(LEFT, 800, "Results of the trial", 18), *((LEFT, 700 - 14 * n, "It went well.") for n in range(3))]] * 3
    assert read(drawn_pdf(*titles), "a.pdf").text.count("Results of the trial") == 3


def test_a_page_that_begins_anew_takes_no_part_of_the_page_before():
    pages = [
        [(LEFT, 700, "The ferry leaves at noon")],
        [(LEFT, 700, "Timetable")],
        [(LEFT, 700, "ropes, oars and pegs")],
    ]
    first, *_ = read(drawn_pdf(*pages), "a.pdf").sections
    assert first.end == len("The ferry leaves at noon\n\n")


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        (["his mother-", "in-law and"], "his mother-in-law and"),
        (["state-of-the-", "art pumps"], "state-of-the-art pumps"),
        (["a one-", "to-one map"], "a one-to-one map"),
        (["of har-", "bours"], "of harbours"),
        (["the self-determi-", "nation of"], "the self-determination of"),
    ],
)
def test_a_compound_of_several_words_keeps_its_hyphen_at_the_end_of_a_line(lines, whole):
    assert read(drawn_pdf(page((LEFT, lines))), "a.pdf").text.strip() == whole
