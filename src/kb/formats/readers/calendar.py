"""Calendars (.ics): each appointment and task under its title, with its dates, its place and its people."""

from __future__ import annotations

import re
from base64 import b64decode
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from kb.formats.readers.html import write_fragment
from kb.formats.text.builder import TextBuilder
from kb.formats.text.content_lines import ContentLine, content_lines, spoken_name
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Attachment, Extracted

_ALARM: Final = "VALARM"
_NOT_SHOWN: Final = {"VCALENDAR", "VTIMEZONE", "STANDARD", "DAYLIGHT", _ALARM}
_SAYS_NOTHING: Final = {
    *("reminder", "event reminder", "this is an event reminder", "alarm", "display"),
    *("mozilla standardbeschreibung", "default mozilla description"),
}
_KINDS: Final = {"VEVENT": "Appointment", "VTODO": "Task", "VJOURNAL": "Entry", "VFREEBUSY": "Free or busy"}
_MOMENT: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?(\d\d))?(Z)?)?")
_LENGTH: Final = re.compile(r"P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?")
_MARKUP: Final = re.compile(r"(?i)</?(?:a|b|br|div|html|i|li|ol|p|span|table|u|ul)\b[^<>]{0,999}>")
_RULE: Final = re.compile(r"([A-Z]+)=([^;]*)")
_DAYS: Final = dict(zip(("MO", "TU", "WE", "TH", "FR", "SA", "SU"), day_name, strict=True))
_MONTHS: Final = {str(number) for number in range(1, 13)}
_ORDINALS: Final = {"1": "first", "2": "second", "3": "third", "21": "21st", "22": "22nd", "23": "23rd", "31": "31st"}
_MOMENTS: Final = (
    ("DUE", "Due"),
    ("COMPLETED", "Completed"),
    ("EXDATE", "Except"),
    ("RDATE", "Also"),
    ("RECURRENCE-ID", "Instead of"),
    ("FREEBUSY", "Busy"),
)
_REPLIES: Final = {"DECLINED": "declined", "TENTATIVE": "tentative"}
_LINES: Final = (
    *("STATUS", "CATEGORIES", "CONTACT", "RESOURCES", "URL", "CONFERENCE", "X-GOOGLE-CONFERENCE", "COMMENT"),
    *("PRIORITY", "PERCENT-COMPLETE"),
)
_LINKS: Final = {"URL", "CONFERENCE", "X-GOOGLE-CONFERENCE"}
_WRITTEN: Final = {
    *("SUMMARY", "DESCRIPTION", "X-ALT-DESC", "DTSTART", "DTEND", "DURATION", "DUE", "COMPLETED", "EXDATE", "RDATE"),
    *("RRULE", "LOCATION", "X-APPLE-STRUCTURED-LOCATION", "ORGANIZER", "ATTENDEE", "ATTACH", "FREEBUSY"),
    *("RECURRENCE-ID", _ALARM, *_LINES),
}
_NOT_SAID: Final = re.compile(
    r"PRODID|VERSION|CALSCALE|METHOD|SOURCE|REFRESH-INTERVAL|X-PUBLISHED-TTL|UID|DTSTAMP|SEQUENCE|CREATED"
    r"|LAST-MODIFIED|TRANSP|CLASS|TZID|TZURL|REQUEST-STATUS|RELATED-TO|COLOR|IMAGE|GEO"
    r"|X-(?:MICROSOFT|MS|MOZ|APPLE|GOOGLE|LIC|WR|EVOLUTION|CALENDARSERVER|YAHOO|LOTUS|ZIMBRA|FUNAMBOL|OUTLOOK|NEXTCLOUD)-.*"
)
"""Properties that only programs need. Properties without a label are shown by their own name."""


class _Component(NamedTuple):
    """An appointment, a task and the like."""

    kind: str
    lines: dict[str, list[ContentLine]]

    def first(self, *names: str) -> ContentLine | None:
        """Return the first non-empty property with one of the names."""
        return next((line for name in names for line in self.every(name)), None)

    def every(self, name: str) -> list[ContentLine]:
        return self.lines.get(name, [])

    def add(self, line: ContentLine) -> None:
        """Add a property, unless it is empty."""
        if line.text.strip():
            self.lines.setdefault(line.name, []).append(line)

    @property
    def title(self) -> str:
        summary = self.first("SUMMARY")
        return one_line(summary.text) if summary else ""


def read(data: bytes) -> Extracted:
    """Read a calendar; one without entries is read as plain text."""
    calendar, components = _components(content_lines(data))
    if not components:
        return Extracted.of_text(decode(data))
    text, files = TextBuilder(), list[Attachment]()
    (_write if calendar.title else _write_lines)(calendar, text)
    for component in components:
        _write(component, text)
        attachments, damaged = _files(component)
        files += attachments
        text.omit("files", damaged)
    name = calendar.first("X-WR-CALNAME", "NAME")
    starts = components[0].first("DTSTART", "DUE")
    title = one_line(name.text) if name else ""
    if len(components) == 1:
        title = components[0].title or title
    day = _moment(starts).partition(" ")[0] if starts and len(components) == 1 else None
    return replace(text.build(title or None, day), attachments=tuple(files))


def _components(lines: Iterable[ContentLine]) -> tuple[_Component, list[_Component]]:
    """Return the calendar's own properties, and its visible components."""
    calendar = _Component("VCALENDAR", {})
    shown, within, kinds = list[_Component](), [calendar], Counter[str]()
    for line in lines:
        kind = line.value.strip().upper()
        if line.name == "BEGIN":
            begun = calendar if kind == calendar.kind else _Component(kind, {})
            within.append(begun)
            kinds[kind] += 1
            if kind not in _NOT_SHOWN:
                shown.append(begun)
        elif line.name == "END":
            while kinds[kind]:
                kinds[ended := within.pop().kind] -= 1
                if ended == kind:
                    break
        elif within[-1].kind != _ALARM:
            within[-1].add(line)
        elif line.name == "DESCRIPTION":
            within[-2].add(line._replace(name=_ALARM))
    return calendar, shown


def _write(component: _Component, text: TextBuilder) -> None:
    text.heading(1, component.title or _KINDS.get(component.kind, component.kind.removeprefix("V").capitalize()))
    _write_lines(component, text)


def _write_lines(component: _Component, text: TextBuilder) -> None:
    for name, said in _fields(component):
        if line := one_line(said):
            text.line(f"{name}: {line}")
    if described := component.first("DESCRIPTION", "X-WR-CALDESC"):
        text.blank()
        if _MARKUP.search(described.text):
            write_fragment(described.text.replace("\n", "<br>"), text, below=1)
        else:
            text.line(described.text.strip())
    elif described := component.first("X-ALT-DESC"):
        write_fragment(described.text, text, below=1)


def _fields(component: _Component) -> Iterator[tuple[str, str]]:
    yield "When", _when(component)
    for name, label in _MOMENTS:
        moments = ((line, value) for line in component.every(name) for value in line.value.split(","))
        yield label, ", ".join(_period(line, value) for line, value in moments)
    yield "Repeats", ", ".join(_rule(line.value) for line in component.every("RRULE"))
    places = (line.text for name in ("LOCATION", "X-APPLE-STRUCTURED-LOCATION") for line in component.every(name))
    yield "Where", next((place for place in places if not place.startswith("geo:")), "")
    yield "Organizer", ", ".join(map(_person, component.every("ORGANIZER")))
    yield "People", ", ".join(map(_person, component.every("ATTENDEE")))
    for name in _LINES:
        label = "Link" if name in _LINKS else spoken_name(name)
        for line in component.every(name):
            yield label, line.text.capitalize() if name == "STATUS" else line.text
    for line in component.every(_ALARM):
        said = one_line(line.text)
        yield "Reminder", said if said not in component.title and said.lower() not in _SAYS_NOTHING else ""
    for line in component.every("ATTACH"):
        yield "Attachment", line.parameters.get("FILENAME", "") if line.is_base64 else line.value
    for name, lines in component.lines.items():
        if name not in _WRITTEN and not _NOT_SAID.fullmatch(name):
            yield from ((spoken_name(name), line.text) for line in lines)


def _when(component: _Component) -> str:
    starts, ends = component.first("DTSTART"), component.first("DTEND")
    start = _moment(starts) if starts else ""
    end = _moment(ends, is_end=True) if ends else ""
    length = component.first("DURATION")
    if starts and length and not end:
        end = _after(starts, length.value)
    is_same = starts is not None and ends is not None and starts.parameters.get("TZID") == ends.parameters.get("TZID")
    zone = start.partition(" (")[2]
    if is_same and zone and end.endswith(f" ({zone}"):
        start = start.removesuffix(f" ({zone}")
    return f"{start} to {end}" if end and end != start else start


def _period(line: ContentLine, written: str) -> str:
    """Return a time or a period, whose end may be written as a duration."""
    start, _, end = written.partition("/")
    begins = line._replace(value=start)
    ends = _after(begins, end) if end.startswith("P") else _moment(line._replace(value=end)) if end else ""
    return f"{_moment(begins)} to {ends}" if ends else _moment(begins)


def _moment(line: ContentLine, *, is_end: bool = False) -> str:
    """Return a date or a time with its zone; the end of a whole day is the day before the date in the file."""
    match = _MOMENT.match(line.value.strip())
    if not match:
        return line.text
    year, month, day, hour, minute, second, is_utc = match.groups()
    if hour is None:
        with suppress(ValueError, OverflowError):
            return (date(int(year), int(month), int(day)) - timedelta(days=int(is_end))).isoformat()
        return f"{year}-{month}-{day}"
    clock = f"{hour}:{minute}" + (f":{second}" if second not in (None, "00") else "")
    zone = " UTC" if is_utc else f" ({line.parameters['TZID']})" if line.parameters.get("TZID") else ""
    return f"{year}-{month}-{day} {clock}{zone}"


def _after(starts: ContentLine, length: str) -> str:
    """Return the end of something that starts at this time and has this length."""
    begun, took = _MOMENT.match(starts.value.strip()), _LENGTH.fullmatch(length.strip())
    if not begun or not took:
        return ""
    weeks, days, hours, minutes, seconds = (int(group or 0) for group in took.groups())
    year, month, day, hour, minute, second = (int(group or 0) for group in begun.groups()[:6])
    with suppress(ValueError, OverflowError):
        end = datetime(year, month, day, hour, minute, second, tzinfo=UTC) + timedelta(
            weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds
        )
        if begun[4] is None and not (hours or minutes or seconds):
            return (end.date() - timedelta(days=1)).isoformat()
        return _moment(starts._replace(value=f"{end:%Y%m%dT%H%M%S}{begun[7] or ''}"))
    return ""


def _rule(rule: str) -> str:
    """Return how often something repeats: weekly on Monday and Friday until 2026-12-31."""
    parts = dict(_RULE.findall(rule.upper()))
    often = parts.get("FREQ", "").lower()
    if (every := parts.get("INTERVAL", "1")) != "1":
        often += f", every {every}"
    until = _MOMENT.match(parts.get("UNTIL", ""))
    ends = f"until {'-'.join(until.groups()[:3])}" if until else ""
    times = f"{parts['COUNT']} times" if "COUNT" in parts else ""
    months = [month_name[int(month)] for month in _listed(parts, "BYMONTH") if month in _MONTHS]
    return " ".join(filter(None, (often, _days(parts), f"in {', '.join(months)}" if months else "", ends, times)))


def _days(parts: dict[str, str]) -> str:
    """Return the days on which something repeats: on Monday, on the last Friday, on day 15, on the last of several."""
    named = [_day(day) for day in _listed(parts, "BYDAY")]
    numbered = [f"day {day}" if day.isdecimal() else f"the {_ordinal(day)} day" for day in _listed(parts, "BYMONTHDAY")]
    days = ", ".join(named + numbered)
    places = " and ".join(map(_ordinal, _listed(parts, "BYSETPOS")))
    if places and days:
        return f"on the {places} {days}" if len(named + numbered) == 1 else f"on the {places} of {days}"
    return f"on {days}" if days else ""


def _day(written: str) -> str:
    """Return the name of a weekday, with its position in the month: -1FR is the last Friday."""
    number, day = written[:-2], _DAYS.get(written[-2:], written[-2:])
    return f"the {_ordinal(number)} {day}" if number else day


def _ordinal(number: str) -> str:
    place = number.lstrip("+-")
    counted = _ORDINALS.get(place, f"{place}th")
    if not number.startswith("-"):
        return counted
    return "last" if place == "1" else f"{counted} to last"


def _listed(parts: dict[str, str], name: str) -> Sequence[str]:
    return [value for value in parts.get(name, "").split(",") if value]


def _person(line: ContentLine) -> str:
    address = re.sub(r"(?i)^mailto:", "", line.value.strip())
    name = line.parameters.get("CN", "").strip()
    reply = _REPLIES.get(line.parameters.get("PARTSTAT", "").upper(), "")
    shown = f"{name} <{address}>" if name and name != address and "@" in address else name or address
    return f"{shown} ({reply})" if reply else shown


def _files(component: _Component) -> tuple[list[Attachment], int]:
    """Return the files in an appointment, and the number of damaged ones."""
    files, damaged = list[Attachment](), 0
    for line in filter(lambda line: line.is_base64, component.every("ATTACH")):
        name = next(filter(None, map(line.parameters.get, ("FILENAME", "X-FILENAME", "X-LABEL"))), "attachment")
        try:
            files.append(Attachment(name, b64decode(line.value.rpartition("base64,")[2])))
        except ValueError:
            damaged += 1
    return files, damaged
