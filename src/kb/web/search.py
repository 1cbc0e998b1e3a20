"""The search page: results with filters, or recent documents if the query is empty."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Self
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from kb.api.date_parsing import own_day
from kb.api.errors import Invalid
from kb.api.job_errors import remedy_for
from kb.api.rights import OF_JOB
from kb.web.document_html import Row, matched, plain, snippet
from kb.web.pages import language_asked, render
from kb.web.sessions import Visit

MODES: Final = {"": "Both", "words": "Words", "meaning": "Meaning"}
LIMIT: Final = 20
COUNTED: Final = 50
"""Number of results counted for the filter chips."""

INSIDE: Final = re.compile(rf"{OF_JOB}\d+#")
"""The start of the path of an attachment whose message has no path."""


@dataclass(frozen=True, slots=True)
class SearchForm:
    """The parameters of a search in a URL."""

    query: str
    mode: str = ""
    tags: tuple[str, ...] = ()
    doc_type: str = ""
    lang: str = ""
    path: str = ""
    name: str = ""
    after: str = ""
    before: str = ""
    group: bool = False
    recent: bool = False
    limit: int = LIMIT

    @classmethod
    def of(cls, params: QueryParams) -> Self:
        """Return the parameters of a URL; ignore invalid ones."""
        more = params.get("n", "")
        return cls(
            query=params.get("q", "").strip(),
            mode=params.get("mode", "") if params.get("mode", "") in MODES else "",
            tags=tuple(dict.fromkeys(filter(None, params.getlist("tag")))),
            doc_type=params.get("type", ""),
            lang=language_asked(params),
            path=params.get("path", ""),
            name=params.get("name", ""),
            after=_day(params.get("after", "")),
            before=_day(params.get("before", "")),
            group=params.get("group") == "1",
            recent=params.get("sort") == "recent",
            limit=max(LIMIT, min(int(more), COUNTED)) if more.isdecimal() and len(more) < 4 else LIMIT,
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Return the parameters as name and value pairs for a URL."""
        given = {
            "q": self.query,
            "mode": self.mode,
            "type": self.doc_type,
            "lang": self.lang,
            "path": self.path,
            "name": self.name,
            "after": self.after,
            "before": self.before,
            "group": "1" if self.group else "",
            "sort": "recent" if self.recent else "",
        }
        return [*((name, value) for name, value in given.items() if value), *(("tag", tag) for tag in self.tags)]

    def with_(self, **changes: str | None) -> str:
        """Return the URL of the same search with some values changed; a tag is added, or removed if it was set."""
        pairs = [(name, value) for name, value in self.pairs() if name == "tag" or name not in changes]
        if tag := changes.pop("tag", None):
            pairs = [pair for pair in pairs if pair != ("tag", tag)] if tag in self.tags else [*pairs, ("tag", tag)]
        return "?" + urlencode([*pairs, *((name, value) for name, value in changes.items() if value)])

    def filters(self) -> dict[str, Any]:
        """Return the filters of the search, as the API names them."""
        given = {
            "tags": list(self.tags),
            "doc_type": self.doc_type,
            "lang": self.lang,
            "source_prefix": self.path,
            "name": self.name,
            "after": self.after and f"{self.after}T00:00:00Z",
            "before": self.before and f"{self.before}T00:00:00Z",
        }
        return {name: value for name, value in given.items() if value}

    def request(self, top: int) -> dict[str, Any]:
        """Return the search request for the engine's API."""
        modes = {"words": {"fts_only": True}, "meaning": {"vec_only": True}}
        options: dict[str, Any] = {"group_by": "document"} if self.group else {}
        options |= {"sort": "recent"} if self.recent else {}
        return {"query": self.query, "top": top} | self.filters() | options | modes.get(self.mode, {})


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


async def search(request: Request, visit: Visit) -> Response:
    """Show search results, or recent documents if the query is empty."""
    asked = SearchForm.of(request.query_params)
    if not asked.query:
        return render(request, "search.html", asked=asked, modes=MODES, **await home(visit))
    top = min(COUNTED, request.app.state.settings.max_top)
    try:
        reply = await visit.engine.search(**asked.request(top))
    except Invalid as error:
        return render(
            request, "search.html", asked=asked, modes=MODES, results=[], found=0, chips=[], wrong=error.detail
        )
    results = reply["results"]
    return render(
        request,
        "search.html",
        asked=asked,
        modes=MODES,
        results=shown(asked, results[: asked.limit], results),
        found=len(results),
        pending=reply["pending"],
        unknown=reply["unknown"],
        unreadable=reply["unreadable"],
        more_unreadable=reply["unreadable_count"] - len(reply["unreadable"]),
        is_weak=reply["weak"],
        chips=chips(asked, results),
        wrong=None,
        is_empty=not results and not sum((await visit.engine.status())["documents"].values()),
        is_by_meaning=not asked.mode and all(result["fts_score"] is None for result in results),
    )


async def home(visit: Visit) -> dict[str, Any]:
    """Return recent documents and failed jobs."""
    documents, failed, status, tags = await asyncio.gather(
        visit.engine.documents(sort="recent", limit=8),
        visit.engine.jobs(status="failed", limit=5),
        visit.engine.status(),
        visit.engine.tags(),
    )
    most = sorted(tags["tags"], key=lambda count: -count["branch"])[:30]
    return {
        "results": None,
        "documents": [document_row(document) for document in documents["documents"]],
        "failed": [job_row(job) for job in failed["jobs"]],
        "status": status,
        "tags": most,
    }


def document_row(document: Row) -> Row:
    """Return a document for a list."""
    return {
        **document,
        "title": plain(document["title"], 200) or "Untitled",
        "path": display_path(document),
        "source": plain(document.get("source") or "", 200),
        "replaced_by": document.get("replaced_by"),
        "when": document["updated_at"] or document["created_at"],
    }


def job_row(job: Row) -> Row:
    """Return a job for a list."""
    name = job["filename"] or job["title"] or ("Note" if job["kind"] == "note" else "File")
    remedy = remedy_for(job["error"]) if job["status"] == "failed" else None
    return {**job, "name": plain(name, 200), "path": display_path(job), "remedy": remedy}


def display_path(row: Row) -> str:
    """Return a path to display; an attachment of a file without a path is shown by its name only."""
    return plain(INSIDE.sub("", row["source_path"] or ""), 200)


def shown(asked: SearchForm, results: Sequence[Row], every: Sequence[Row]) -> list[Row]:
    """Return results for the page, with scores relative to all results."""
    scale = {name: _scale([result[name] for result in every]) for name in ("score", "fts_score", "vec_score")}
    return [
        {
            **document_row(result),
            "href": href(result, result["document_id"], asked.query),
            "snippet": snippet(result["doc_type"], result["text"], result["highlights"]),
            "place": place(result["place"]),
            "words": sorted(matched(result["text"], result["highlights"])),
            "bars": {name: scale[name](result[name]) for name in scale},
            "more": [
                {
                    "href": href(other, result["document_id"], asked.query),
                    "snippet": snippet(result["doc_type"], other["text"], other["highlights"]),
                    "place": place(other["place"]),
                }
                for other in result["more"]
            ],
        }
        for result in results
    ]


def href(passage: Row, document_id: int, query: str) -> str:
    return f"d/{document_id}?" + urlencode({"chunk": passage["index"], "q": query})


def place(where: Mapping[str, Any]) -> str:
    """Return the location of a passage in words."""
    page = [f"page {where['page']}"] if where["page"] else []
    heading = [" › ".join(plain(heading, 80) for heading in where["heading"][-2:])] if where["heading"] else []
    return " · ".join(page + heading) or f"line {where['line_start']}"


def _scale(values: Iterable[float | None]) -> Any:  # noqa: ANN401 - a function of one number
    """Return a function from a score to the length of its bar in percent, from the lowest to the highest score."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)

    def share(value: float | None) -> int:
        if value is None:
            return 0
        return 100 if high == low else round(12 + 88 * (value - low) / (high - low))

    return share


MOST_CHIPS: Final = 12
MOST_PLACES: Final = 6
"""Maximum number of chips for folders, and for years or months."""

FIRST_YEAR: Final = "0001"
"""No supported date is earlier."""

YEAR: Final = 4
MONTH: Final = 7
"""Lengths of the year and of the year with month at the start of a date."""


def chips(asked: SearchForm, results: Sequence[Row]) -> list[Row]:
    """Return the filters that can narrow the search, with counts among its results; active filters first."""
    groups = [
        *_values(asked, "type", "type", asked.doc_type, (result["doc_type"] for result in results)),
        *_values(asked, "language", "lang", asked.lang, (result["language"] for result in results)),
        *_tags(asked, results),
        *_folders(asked, results),
        *_times(asked, results),
    ]
    rows = [row for row in groups if row["is_set"] or row["count"] < len(results)]
    rows.sort(key=lambda row: not row["is_set"])
    return rows


def _values(asked: SearchForm, kind: str, parameter: str, chosen: str, values: Iterable[str]) -> Iterator[Row]:
    counts = Counter(filter(None, values))
    for value in _most(counts, [chosen]):
        is_set = value == chosen
        href = asked.with_(**{parameter: None if is_set else value})
        yield _chip(kind, value, counts[value], href, is_set=is_set)


def _tags(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    counts = Counter(tag for result in results for tag in result["tags"])
    for name in _most(counts, asked.tags):
        yield _chip("tag", name, counts[name], asked.with_(tag=name), is_set=name in asked.tags)


def _folders(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """Yield the active path, and the folders directly below the common path of the results."""
    if asked.path:
        yield _chip("path", f"in {asked.path}", len(results), asked.with_(path=None), is_set=True)
    paths = [result["source_path"] or "" for result in results]
    paths = [path for path in paths if "/" in path and not path.startswith(OF_JOB)]
    shared = os.path.commonprefix(paths).rfind("/") + 1  # noqa: RUF071 - Windows has other separators
    counts = Counter(path[: path.index("/", shared) + 1] for path in paths if "/" in path[shared:])
    for folder, number in counts.most_common(MOST_PLACES):
        if folder != asked.path:
            yield _chip("path", f"in {folder[shared:]}", number, asked.with_(path=folder))


def _times(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """Yield the active dates, and the years of the results, or their months if all are of one year."""
    if asked.after:
        yield _chip("after", f"from {asked.after}", len(results), asked.with_(after=None), is_set=True)
    if asked.before:
        yield _chip("before", f"before {asked.before}", len(results), asked.with_(before=None), is_set=True)
    days = [own_day(result["date"]) or (result["updated_at"] or result["created_at"])[:10] for result in results]
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
    """Return the first day of a year or month, and the first day after it."""
    year, month, length = int(time[:YEAR]), int(time[YEAR + 1 :] or 1), 1 if len(time) > YEAR else 12
    later, following = divmod(month - 1 + length, 12)
    return f"{year:04}-{month:02}-01", f"{year + later:04}-{following + 1:02}-01"


def _chip(kind: str, label: str, count: int, href: str, *, is_set: bool = False) -> Row:
    return {"kind": kind, "label": plain(label, 60), "count": count, "is_set": is_set, "href": href}


def _most(counts: Counter[str], values: Iterable[str]) -> list[str]:
    frequent = [name for name, _ in counts.most_common(MOST_CHIPS)]
    return list(dict.fromkeys([*filter(None, values), *frequent]))
