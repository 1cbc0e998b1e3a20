"""Web pages as browsers save them in one file: the page and its frames, and no more."""

from __future__ import annotations

import pytest

from kb.formats.extract import extract

PAGE = "<html><head><title>Bees</title><style>p{{}}</style></head><body><p>The cluster keeps warm.</p>{}</body></html>"


def saved(
    *parts, headers="From: <Saved by Blink>\nSnapshot-Content-Location: https://x.example/\nSubject: Bees in winter\n"
):
    body = "".join(f"--b\n{part}\n" for part in parts)
    return (
        f"{headers}Date: Mon, 2 Mar 2026 09:00:00 +0000\nMIME-Version: 1.0\n"
        f'Content-Type: multipart/related; type="text/html"; boundary="b"\n\n{body}--b--\n'
    ).encode()


def part(content, kind="text/html", more=""):
    return f'Content-Type: {kind}; charset="utf-8"\nContent-Transfer-Encoding: 8bit\n{more}\n{content}'


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ("From: <Saved by Blink>\n", "page"),
        ('From: "Saved by Windows Internet Explorer 8"\n', "page.mht"),
        ("Snapshot-Content-Location: https://x.example/\n", "page.mhtml"),
        ("", "page.mht"),
    ],
)
def test_a_saved_page_is_the_page_without_styles_and_without_who_saved_it(headers, name):
    source = saved(
        part(PAGE.format("")), part("p {color: red}", "text/css"), part("x()", "text/javascript"), headers=headers
    )
    doc_type, extracted = extract(source, name)
    assert (doc_type, extracted.title, extracted.text) == ("mht", "Bees", "The cluster keeps warm.\n")
    assert extracted.attachments == ()
    assert extracted.date.startswith("2026-03-02")


def test_frames_are_part_of_the_page_and_each_once():
    frame = part("<p>In the frame stands the weight of the hive.</p>")
    _, extracted = extract(saved(part(PAGE.format("")), frame, frame), "page.mht")
    assert extracted.text == "The cluster keeps warm.\n\nIn the frame stands the weight of the hive.\n"


def test_a_page_without_a_title_is_called_as_its_header_says():
    _, extracted = extract(saved(part("<p>Words of a page</p>")), "page.mht")
    assert extracted.title == "Bees in winter"


def test_a_document_that_a_page_shows_is_one_of_its_own():
    shown = 'Content-Type: application/pdf; name="plan.pdf"\nContent-Transfer-Encoding: base64\n\nJVBERi0xLjQK'
    _, extracted = extract(saved(part(PAGE.format("")), shown), "page.mht")
    assert [each.filename for each in extracted.attachments] == ["plan.pdf"]


def test_a_message_from_someone_of_that_name_is_a_message():
    source = saved(part(PAGE.format("")), headers="From: Saved by the bell <bell@example.org>\nMessage-ID: <1@x>\n")
    assert extract(source, "mail.eml")[0] == "eml"
