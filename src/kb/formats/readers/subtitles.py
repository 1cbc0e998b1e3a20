"""Subtitles (SRT, WebVTT, SBV, ASS, LRC): the spoken sentences, in parts under the times at which they begin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import Final, NamedTuple

from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted

_TIME: Final = r"(?:\d{1,3}:)?\d{1,2}:\d\d(?:[.,]\d{1,3})?"
_CLOCK: Final = re.compile(r"(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)(?!\d)")
_CUE: Final = re.compile(rf"(?m)^[ \t]*(?P<begin>{_TIME})(?:[ \t]*-->[ \t]*|,){_TIME}(?:[ \t][^\n]*)?$\n?")
_VOICE: Final = re.compile(r"<v(?:\.[\w.]+)?[ \t]+(?P<name>[^<>\n]{1,100})>")
_MARK: Final = re.compile(r"</?(?:[A-Za-z][\w.-]*(?:[ \t][^<>\n]{0,200})?|[\d:.]{5,15})>|\{\\[^{}\n]{0,200}\}")
_APART: Final = re.compile(r"\n[ \t]*\n")
_NUMBER: Final = re.compile(r"(?:\A|\n)[ \t]*\d+\s*\Z")
_DIALOGUE: Final = re.compile(
    rf"(?m)^Dialogue:[^,\n]*,[ \t]*(?P<begin>{_TIME}),[^,\n]*,[^,\n]*,(?P<name>[^,\n]*),(?:[^,\n]*,){{4}}(?P<words>.*)$"
)
"""A line of ASS."""

_BREAK: Final = re.compile(r"\\[Nnh]")
_SUNG: Final = re.compile(rf"(?m)^\[(?P<begin>{_TIME})\](?P<words>[^\n]+)$")
"""A line of LRC."""

_STAMP: Final = re.compile(rf"<{_TIME}>")
_UNSPOKEN: Final = ("NOTE", "STYLE", "REGION")
_SENTENCE_END: Final = re.compile(r"[.!?…。\uff01\uff1f][\"'”’)\]」』]*\Z")
_FULL, _LONGEST = 500, 1000
"""The lengths at which a part ends after a sentence, or failing that, after any cue."""


class Cue(NamedTuple):
    begin: str
    speaker: str
    lines: list[str]


def read(data: bytes) -> Extracted:
    source = decode(data)
    cues = [*_cues(source)] or [*_dialogue(source)] or [*_sung(source)]
    subtitles = read_cues(cues)
    return subtitles if subtitles.shows_text else Extracted.of_text(source)


def read_cues(cues: Iterable[Cue]) -> Extracted:
    text, begin, part = TextBuilder(), "", list[str]()
    for cue in _spoken(cues):
        begin = begin or cue.begin
        part += cue.lines
        length = sum(map(len, part))
        if length >= _LONGEST or (length >= _FULL and _SENTENCE_END.search(part[-1])):
            text.headed_rows(1, begin, part)
            begin, part = "", []
    if part:
        text.headed_rows(1, begin, part)
    return text.build()


def _dialogue(source: str) -> Iterator[Cue]:
    for line in _DIALOGUE.finditer(source):
        words = _MARK.sub("", line["words"])
        yield Cue(shown_time(line["begin"]), line["name"].strip(), [one_line(part) for part in _BREAK.split(words)])


def _sung(source: str) -> Iterator[Cue]:
    for line in _SUNG.finditer(source):
        yield Cue(shown_time(line["begin"]), "", [one_line(_STAMP.sub("", line["words"]))])


def _cues(source: str) -> Iterator[Cue]:
    """Yield the cues. The line above a time may be the number or the name of a cue."""
    times = list(_CUE.finditer(source))
    ends = [*(time.start() for time in times), len(source)][1:]
    for time, end in zip(times, ends, strict=True):
        blocks = _APART.split(source[time.end() : end])
        first, *others = _without_name(blocks) if end < len(source) else blocks
        words = "\n".join([first, *(block for block in others if not block.lstrip().startswith(_UNSPOKEN))])
        voice = _VOICE.search(words)
        lines = [one_line(unescape(_MARK.sub("", line))) for line in _VOICE.sub("", words).split("\n")]
        yield Cue(shown_time(time["begin"]), one_line(voice["name"]) if voice else "", [line for line in lines if line])


def _without_name(blocks: Sequence[str]) -> list[str]:
    """Return the blocks below a time without the name of the next cue, which may follow without an empty line."""
    *others, last = blocks
    if others and last.strip() and "\n" not in last.strip("\n"):
        return others
    words = [block for block in blocks if block.strip()]
    return [*words[:-1], _NUMBER.sub("", words[-1])] if words else [""]


def _spoken(cues: Iterable[Cue]) -> Iterator[Cue]:
    """Yield the cues without the lines that scroll up from the cue before, and with each new speaker."""
    before, speaker = list[str](), ""
    for cue in cues:
        kept = next((size for size in range(len(cue.lines), 0, -1) if before[-size:] == cue.lines[:size]), 0)
        before, lines = cue.lines, cue.lines[kept:]
        if lines and cue.speaker not in ("", speaker):
            speaker = cue.speaker
            lines = [f"{speaker}: {lines[0]}", *lines[1:]]
        if lines:
            yield cue._replace(lines=lines)


def shown_time(time: str) -> str:
    """Return a time as people write it, such as 0:00:03; times in frames or seconds unchanged."""
    clock = _CLOCK.match(time)
    return f"{int(clock['hours'] or 0)}:{clock['minutes']:0>2}:{clock['seconds']}" if clock else time
