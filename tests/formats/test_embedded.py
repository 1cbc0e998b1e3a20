"""Pictures that a text carries as base64 are a few words in it, on lines with the same numbers."""

from __future__ import annotations

import json
from base64 import b64encode, encodebytes
from random import Random

import pytest

from kb.formats.extract import extract
from kb.formats.text.base64_data import size_text, without_embedded

PNG = b"\x89PNG\r\n\x1a\n" + Random(7).randbytes(9000)
CODED = b64encode(PNG).decode()
WRAPPED = encodebytes(PNG).decode().strip()
URI = f"data:image/png;base64,{CODED}"
SAID = "[picture: image/png, 9 kB]"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (f"![][a]\n\n[a]: <{URI}>\n", f"![][a]\n\n[a]: {SAID}\n"),
        (f"![roof]({URI})!", f"![roof]{SAID}!"),
        (f'![roof](<{URI}> "A roof")!', f"![roof]{SAID}!"),
        (f"[text]({URI})", f"[text]{SAID}"),
        (f'<img src="{URI}" alt="roof">', f'<img src="{SAID}" alt="roof">'),
        (f"url('{URI}') x", f"url('{SAID}') x"),
        (f"DATA:image/png;charset=utf-8;base64,{CODED} x", f"{SAID} x"),
        (URI.replace("/", "%2F").replace("+", "%2B").replace("image%2F", "image/"), "[picture: image/png, "),
        (json.dumps({"a": URI}).replace("/", "\\/"), f'{{"a": "{SAID}"}}'),
        (json.dumps({"image/png": f"{WRAPPED}\n"}), f'{{"image/png": "{SAID}\\n"}}'),
        (f"x {CODED} y", f"x {SAID} y"),
        (f"data:font/woff2;base64,{CODED}", "[font: font/woff2, 9 kB]"),
        (f"data:application/pdf;base64,{CODED}", "[file: application/pdf, 9 kB]"),
        (f"url(data:image/svg+xml,{'%3Csvg%20' * 20}) x", "url([picture: image/svg+xml, 180 B]) x"),
        ("url('data:image/svg+xml;utf8,<svg a=\"1\"><path/></svg>') x", "url('[picture: image/svg+xml, 24 B]') x"),
        (b64encode(Random(3).randbytes(1500)).decode(), "[data: 1.5 kB]"),
    ],
)
def test_a_picture_is_a_few_words_however_it_is_written(written, said):
    assert without_embedded(written).startswith(said)
    assert len(without_embedded(written)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "data:text/plain;base64,SGVsbG8sIFdvcmxkIQ== is an address that holds its text",
        "see data:image/png;base64,iVBORw0KGgo... in the manual",
        "ACGT" * 1000,
        "0123456789abcdef" * 200,
        "https://example.org/" + "path/" * 300,
        "-----BEGIN CERTIFICATE-----\n" + "\n".join(["MIIC" + "aB3+" * 15] * 20) + "\n-----END CERTIFICATE-----",
        "漢字仮名交じり文" * 500,
    ],
)
def test_what_only_looks_like_it_stays(text):
    assert without_embedded(text) == text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_keep_their_numbers_and_what_follows_stays(end):
    text = f"one{end}![x](data:image/png;base64,{end}{WRAPPED.replace(chr(10), end)}){end}after the picture{end}last"
    said = without_embedded(text)
    assert said.count("\n") == text.count("\n")
    assert said.endswith(f"after the picture{end}last")
    assert "AAAA" not in said


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.py", "a.org", "a.json", "a.csv", "a.xml", "a.html", "a.ipynb"])
def test_readers_of_texts_give_no_base64(name):
    words, coded = "The hinges come from Falun", {"a.csv": CODED}.get(name, URI)
    source = {
        "a.json": json.dumps({"text": words, "image": coded}),
        "a.csv": f"text,image\n{words},{coded}\nmore,{coded}\n",
        "a.xml": f"<a><b>{words}</b><c>{coded}</c></a>",
        "a.html": f"<p>{words}</p><p><img src='{coded}'></p><p>{coded}</p>",
        "a.ipynb": json.dumps(
            {"nbformat": 4, "cells": [{"cell_type": "markdown", "source": [words, f"![a]({coded})"]}]}
        ),
    }.get(name, f"{words}\n\n{coded}\n")
    _, extracted = extract(source.encode(), name)
    assert words in extracted.text
    assert (SAID if name != "a.csv" else SAID.replace(",", "")) in extracted.text
    assert len(extracted.text) < 400


def test_a_text_in_utf_16_is_read_alike():
    assert extract(f"Grüße\n{URI}\n".encode("utf-16"), "a.txt")[1].text == f"Grüße\n{SAID}\n"


def test_hostile_texts_take_no_longer_than_long_ones():
    for piece in (
        "data:",
        "data:image/png;base64,",
        "data:image/svg+xml,<svg>",
        "](data:a/b;base64,",
        "iVBORw0KGgo ",
        "aB3" * 333 + " ",
    ):
        without_embedded(piece * (1_000_000 // len(piece)))


def test_sizes_are_said_as_people_say_them():
    sizes = {0: "0 B", 999: "999 B", 1000: "1 kB", 1499: "1.5 kB", 12_345: "12 kB", 999_600: "1 MB", 2_000_000: "2 MB"}
    assert {size: size_text(size) for size in sizes} == sizes
