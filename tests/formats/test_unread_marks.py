"""Marks inside and between words that nobody reads: of subtitles, terminals, readings and TeX."""

from __future__ import annotations

import pytest

from kb.formats.text.terminal import without_terminal_signs
from tests.hostile.files import docx, open_document
from tests.support.reading import read

SRT = (
    "1\r\n00:00:03,000 --> 00:00:04,500\r\n<i>At dusk the lock\r\n\r\n"
    "2\r\n00:00:04,600 --> 00:00:06,000 X1:40 X2:600\r\nkeeper</i> closes {\\an8}the gate.\r\n\r\n"
    "3\r\n00:00:07,000 --> 00:00:08,000\r\nNOTE the level &amp; wait: 3 < 5\r\n"
)
VTT = (
    "WEBVTT - Locks\nKind: captions\n\nNOTE by hand\n\nSTYLE\n::cue { color: red }\n\nname\n"
    "00:03.000 --> 00:05.000 align:start\n<v Ragna>ice<00:03.500><c> on</c><c.yellow> the</c>\n\n"
    "00:05.000 --> 00:07.000\n<v Ragna>ice on the\nlower pound\n\nNOTE unspoken\n\n"
    "1:00:07.000 --> 1:00:09.000\n<v Odd>Thin.\n"
)


def headings(extracted):
    return [section.heading for section in extracted.sections]


def test_a_sentence_over_two_cues_is_one_and_its_time_is_the_place():
    film, talk = read(SRT, "film.srt"), read(VTT, "talk.vtt")
    assert film.text == "At dusk the lock\nkeeper closes the gate.\nNOTE the level & wait: 3 < 5\n"
    assert headings(film) == [("0:00:03",)]
    assert talk.text == "Ragna: ice on the\nlower pound\nOdd: Thin.\n"


ASS = r"""[Script Info]
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:03.00,0:00:04.50,Default,Ragna,0,0,0,,{\i1}At dusk,{\i0} the lock\Nkeeper
Dialogue: 0,0:00:05.00,0:00:06.50,Default,,0,0,0,,closes the gate.
"""
TTML = """<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="00:00:03.000" end="5s">At dusk the<br/>lock</p>
<p begin="6s">keeper <span>closes</span> the gate.</p></div></body></tt>"""
APART = "1\n\n00:00:03,000 --> 00:00:04,000\n\nAt dusk\n\n2\n\n00:00:05,000 --> 00:00:06,000\n\nthe lock\n"


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        ("a.ass", ASS, "Ragna: At dusk, the lock\nkeeper\ncloses the gate.\n"),
        ("a.lrc", "[ti:Locks]\n[00:03.00]At dusk\n[00:05.30]<00:05.30>the <00:06.00>lock\n", "At dusk\nthe lock\n"),
        ("a.ttml", TTML, "At dusk the\nlock\nkeeper closes the gate.\n"),
        ("a.srt", APART, "At dusk\nthe lock\n"),
    ],
)
def test_subtitles_of_other_kinds_are_read_alike(name, source, text):
    subtitles = read(source, name)
    assert subtitles.text == text
    assert headings(subtitles) == [("0:00:03",)]


def test_long_subtitles_are_cut_between_sentences():
    cues = "".join(
        f"0:{n // 60:02}:{n % 60:02}.000,0:{n // 60:02}:59.000\nThe keeper walks {n}\ntimes.\n\n" for n in range(200)
    )
    parts = read(cues, "a.sbv")
    assert len(parts.sections) > 5
    assert all(parts.text[: section.end].endswith("times.\n") for section in parts.sections)
    assert headings(parts)[0] == ("0:00:00",)


@pytest.mark.parametrize("text", ["no times at all\n", "WEBVTT\n", "1\n00:00:01,000 --> 00:00:02,000\n\n"])
def test_a_file_without_cues_is_text(text):
    assert read(text, "a.vtt").text == text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[1;33mBAS\x1b[0mALT\x1b[K", "BASALT"),
        ("\x1b[38;5;208mkiln\x1b[38:2::1:2:3mfire", "kilnfire"),
        ("\x1b]8;;https://x.example\x07log\x1b]8;;\x1b\\ \x1b]0;title\x07end", "log end"),
        ("\x9b31mred\x9b0m \x1b(B\x1b7x\x1b8 \x1bPq~\x1b\\y", "red x y"),
        ("one\x1b[5Ctwo", "one two"),
        ("N\bNA\bAM\bME\bE _\bx", "NAME x"),
    ],
)
def test_what_controls_a_terminal_is_no_text(written, shown):
    assert without_terminal_signs(written) == shown


def test_colours_are_dropped_from_logs_json_and_notebooks():
    assert read("\x1b[33mBASALT\x1b[0m the glaze\n", "ci.log").text == "BASALT the glaze\n"
    assert '"BASALT"' in read('{"log": "\\u001b[33mBAS\\u001b[1mALT"}\n', "log.json").text
    manual = "N\bNA\bAM\bME\bE\n" * 40
    assert read(manual, "ls.txt").text == "NAME\n" * 40


RUBY = (
    "夕の<ruby>灯<rt>とう</rt></ruby><ruby>台<rp>(</rp><rt>だい</rt><rp>)</rp></ruby>と<ruby>岬<rt>みさき</rt></ruby>。"
)


def test_a_reading_follows_the_line_of_its_word():
    page = read(f"<html><h1>{RUBY}</h1><p>{RUBY}<br>次<p>{RUBY}<table><tr><td>{RUBY}<td>2</table></html>", "a.html")
    line = "夕の灯台と岬。 (とうだい, みさき)"
    assert page.text == f"{line}\n\n{line}\n次\n\n{line}\n\n{line} | 2\n"
    assert page.title == line


def test_in_markdown_a_reading_follows_its_line_too_but_not_in_code():
    page = read(f"# {RUBY}\n\n{RUBY} *a*\nb\n\n`<ruby>漁<rt>りょう</rt></ruby>`\n\n<ruby>漁師</ruby>\n", "a.md")
    line = "夕の灯台と岬。"
    readings = "(とうだい, みさき)"
    assert page.text == f"# {line} {readings}\n\n{line} *a* {readings}\nb\n\n`<ruby>漁<rt>りょう</rt></ruby>`\n\n漁師\n"
    assert page.title == f"{line} {readings}"


def test_readings_in_word_and_opendocument_files_are_found_too():
    ruby = "<w:r><w:ruby><w:rt><w:r><w:t>{}</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>{}</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    body = f"<w:p><w:r><w:t>夕の</w:t></w:r>{ruby.format('とう', '灯')}{ruby.format('だい', '台')}<w:r><w:t>。</w:t></w:r></w:p>"
    assert read(docx(body), "a.docx").text == "夕の灯台。 (とうだい)\n"
    ruby = "<text:ruby><text:ruby-base>{}</text:ruby-base><text:ruby-text>{}</text:ruby-text></text:ruby>"
    text = f"<text:p>夕の{ruby.format('灯', 'とう')}{ruby.format('台', 'だい')}。</text:p>"
    assert read(open_document("text", text), "a.odt").text == "夕の灯台。 (とうだい)\n"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"M{\"u}nch, \'Angel P\v{r}\'\i{}hoda", "Münch, Ángel Příhoda"),
        (r"G{\"o}{\u g}{\"u}{\c s} and {\L}\'od\'z", "Göğüş and Łódź"),
        (
            r"Stra\ss e, S\o rensen, \AA ngstr\"{o}m, {\'{E}}tude, na{\"\i}ve",
            "Straße, Sørensen, Ångström, Étude, naïve",
        ),
        ("{On {F}jord {H}ydrology of {NASA}'s {DNA}s}", "{On Fjord Hydrology of {NASA}'s DNAs}"),
        (r"\emph{F}jord $x^{2}y_{i}k$ \frac{a}{b}c", r"\emph{F}jord $x^{2}y_{i}k$ \frac{a}{b}c"),
        ('line\\\\"quoted" \\item \\hline\n\\lambda', 'line\\\\"quoted" \\item \\hline\n\\lambda'),
    ],
)
def test_letters_that_tex_spells_out_are_letters(source, shown):
    for name in ("a.tex", "a.bib"):
        assert read(source, name).text == shown
