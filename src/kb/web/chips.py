"""What a search can be narrowed by, and what it is narrowed by: each is a click away, to and fro."""

from __future__ import annotations

import os
from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, Final

from kb.api.access import OF_JOB
from kb.api.own_day import own_day
from kb.web.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kb.web.pages import Row
    from kb.web.search import SearchForm

MOST_CHIPS: Final = 12
MOST_PLACES: Final = 6
"""Of the chips for folders, and for years or months, so many are shown."""

FIRST_YEAR: Final = "0001"
"""No calendar here begins before that."""

YEAR: Final = 4
MONTH: Final = 7
"""So many characters of a day are its year, and its month."""


def chips(asked: SearchForm, results: Sequence[Row]) -> list[Row]:
    """Return what the search can be narrowed by, with counts among its results; the filters that are set first."""
    found = [
        *_types(asked, results),
        *_languages(asked, results),
        *_tags(asked, results),
        *_folders(asked, results),
        *_times(asked, results),
    ]
    rows = [row for row in found if row["is_set"] or row["count"] < len(results)]
    rows.sort(key=lambda row: not row["is_set"])
    return rows


def _types(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    counts = Counter(each["doc_type"] for each in results)
    for name in _most(counts, [asked.doc_type]):
        is_set = name == asked.doc_type
        yield _chip("type", name, counts[name], asked.with_(type=None if is_set else name), is_set=is_set)


def _languages(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    counts = Counter(each["language"] for each in results if each["language"])
    for code in _most(counts, [asked.lang]):
        is_set = code == asked.lang
        yield _chip("language", code, counts[code], asked.with_(lang=None if is_set else code), is_set=is_set)


def _tags(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    counts = Counter(tag for each in results for tag in each["tags"])
    for name in _most(counts, asked.tags):
        yield _chip("tag", name, counts[name], asked.with_(tag=name), is_set=name in asked.tags)


def _folders(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """The path that is set, and the folders next below all that was found."""
    if asked.path:
        yield _chip("path", f"in {asked.path}", len(results), asked.with_(path=None), is_set=True)
    paths = [each["source_path"] or "" for each in results]
    paths = [path for path in paths if "/" in path and not path.startswith(OF_JOB)]
    shared = os.path.commonprefix(paths).rfind("/") + 1  # noqa: RUF071 - Windows has other separators
    counts = Counter(path[: path.index("/", shared) + 1] for path in paths if "/" in path[shared:])
    for folder, number in counts.most_common(MOST_PLACES):
        if folder != asked.path:
            yield _chip("path", f"in {folder[shared:]}", number, asked.with_(path=folder))


def _times(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """The dates that are set, and the years of what was found, or its months if it is of one year."""
    if asked.after:
        yield _chip("after", f"from {asked.after}", len(results), asked.with_(after=None), is_set=True)
    if asked.before:
        yield _chip("before", f"before {asked.before}", len(results), asked.with_(before=None), is_set=True)
    days = [own_day(each["date"]) or (each["updated_at"] or each["created_at"])[:10] for each in results]
    days = [day for day in days if day > FIRST_YEAR]
    length = YEAR if len({day[:YEAR] for day in days}) > 1 else MONTH
    counts = Counter(day[:length] for day in days)
    for time, number in sorted(counts.most_common(MOST_PLACES), reverse=True):
        first, following = bounds(time)
        if (first, following) != (asked.after, asked.before):
            yield _chip(
                "time",
                time if length == YEAR else f"{date.fromisoformat(first):%b %Y}",
                number,
                asked.with_(after=first, before=following),
            )


def bounds(time: str) -> tuple[str, str]:
    """Return the first day of a year or a month, and the first one after it."""
    year, month, length = int(time[:YEAR]), int(time[YEAR + 1 :] or 1), 1 if len(time) > YEAR else 12
    later, following = divmod(month - 1 + length, 12)
    return f"{year:04}-{month:02}-01", f"{year + later:04}-{following + 1:02}-01"


def _chip(kind: str, label: str, count: int, href: str, *, is_set: bool = False) -> Row:
    return {"kind": kind, "label": plain(label, 60), "count": count, "is_set": is_set, "href": href}


def _most(counts: Counter[str], kept: Iterable[str]) -> list[str]:
    frequent = [name for name, _ in counts.most_common(MOST_CHIPS)]
    return list(dict.fromkeys([*filter(None, kept), *frequent]))
