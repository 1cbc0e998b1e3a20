"""The search page: results with filters, or recent documents if the query is empty."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Self
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Invalid
from kb.api.job_errors import remedy_for
from kb.api.rights import OF_JOB
from kb_web.document_html import Row, plain, snippet
from kb_web.facets import facets
from kb_web.marking import matched
from kb_web.pages import language_asked, render
from kb_web.sessions import Visit

MODES: Final = {"": "Both", "words": "Words", "meaning": "Meaning"}
LIMIT: Final = 20
COUNTED: Final = 50
"""Number of results counted for the filters."""

SLIDES: Final = ("pptx", "odp")
"""Types of documents whose pages are slides."""

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
    by_passage: bool = False
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
            by_passage=params.get("by") == "passage",
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
            "by": "passage" if self.by_passage else "",
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
        options: dict[str, Any] = {} if self.by_passage else {"group_by": "document"}
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
            request,
            "search.html",
            asked=asked,
            modes=MODES,
            results=[],
            found=0,
            facets=facets(asked, []),
            wrong=error.detail,
        )
    results = reply["results"]
    return render(
        request,
        "search.html",
        asked=asked,
        modes=MODES,
        results=shown(asked, results[: asked.limit], results),
        found=len(results),
        found_ids=list(dict.fromkeys(result["document_id"] for result in results)),
        pending=reply["pending"],
        unknown=reply["unknown"],
        unreadable=reply["unreadable"],
        more_unreadable=reply["unreadable_count"] - len(reply["unreadable"]),
        is_weak=reply["weak"],
        facets=facets(asked, results),
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
        "facets": facets(SearchForm(""), []),
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
            "place": place_below(result),
            "words": sorted(matched(result["text"], result["highlights"])),
            "bars": {name: scale[name](result[name]) for name in scale},
            "more": [
                {
                    "href": href(other, result["document_id"], asked.query),
                    "snippet": snippet(result["doc_type"], other["text"], other["highlights"]),
                    "place": place(other["place"], result["doc_type"]),
                }
                for other in result["more"]
            ],
        }
        for result in results
    ]


def href(passage: Row, document_id: int, query: str) -> str:
    return f"d/{document_id}?" + urlencode({"chunk": passage["index"], "q": query})


def place_below(result: Row) -> str:
    """Return the location of a result in words, without a heading that repeats the title; it may be empty."""
    where, title = result["place"], plain(result["title"], 80)
    headings = [heading for heading in where["heading"] if plain(heading, 80) != title]
    is_only_title = where["heading"] and not headings and not where["page"]
    return "" if is_only_title else place({**where, "heading": headings}, result["doc_type"])


def place(where: Mapping[str, Any], doc_type: str = "") -> str:
    """Return the location of a passage in words."""
    page = [f"{'slide' if doc_type in SLIDES else 'page'} {where['page']}"] if where["page"] else []
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
