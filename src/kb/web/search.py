"""The search page, which without a question shows what is new."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlencode

from kb.api.access import OF_JOB
from kb.api.errors import Invalid
from kb.api.job_errors import remedy_of
from kb.web.chips import chips
from kb.web.pages import language_asked, render
from kb.web.text import matched, plain, snippet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from kb.web.pages import Row
    from kb.web.visits import Visit

MODES: Final = {"": "Both", "words": "Words", "meaning": "Meaning"}
LIMIT: Final = 20
COUNTED: Final = 50
"""How many results are looked at for the counts on chips."""

INSIDE: Final = re.compile(rf"{OF_JOB}\d+#")
"""What the path of an attachment begins with whose message has none."""


@dataclass(frozen=True, slots=True)
class SearchForm:
    """What the address of a search says."""

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
        """Return what an address says; what it says wrongly is left out."""
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
        """Return what the address says, as it says it."""
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
        """Return the address of the same search with other values; a tag is added, or taken away."""
        pairs = [(name, value) for name, value in self.pairs() if name == "tag" or name not in changes]
        if tag := changes.pop("tag", None):
            pairs = [each for each in pairs if each != ("tag", tag)] if tag in self.tags else [*pairs, ("tag", tag)]
        return "?" + urlencode([*pairs, *((name, value) for name, value in changes.items() if value)])

    def filters(self) -> dict[str, Any]:
        """Return what narrows the search."""
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
        """Return it as the engine's API takes it."""
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
    """Search, or say what is new."""
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
    found = reply["results"]
    return render(
        request,
        "search.html",
        asked=asked,
        modes=MODES,
        results=shown(asked, found[: asked.limit], found),
        found=len(found),
        pending=reply["pending"],
        unknown=reply["unknown"],
        unreadable=reply["unreadable"],
        more_unreadable=reply["unreadable_count"] - len(reply["unreadable"]),
        is_weak=reply["weak"],
        chips=chips(asked, found),
        wrong=None,
        is_empty=not found and not sum((await visit.engine.status())["documents"].values()),
        is_by_meaning=not asked.mode and all(each["fts_score"] is None for each in found),
    )


async def home(visit: Visit) -> dict[str, Any]:
    """Return what is new and what failed."""
    documents, failed, status, tags = await asyncio.gather(
        visit.engine.documents(sort="recent", limit=8),
        visit.engine.jobs(status="failed", limit=5),
        visit.engine.status(),
        visit.engine.tags(),
    )
    most = sorted(tags["tags"], key=lambda each: -each["documents"])[:30]
    return {
        "results": None,
        "documents": [document_row(each) for each in documents["documents"]],
        "failed": [job_row(each) for each in failed["jobs"]],
        "status": status,
        "tags": most,
    }


def document_row(document: Row) -> Row:
    """Return a document for a list."""
    return {
        **document,
        "title": plain(document["title"], 200) or "Untitled",
        "path": path_of(document),
        "source": plain(document.get("source") or "", 200),
        "replaced_by": document.get("replaced_by"),
        "when": document["updated_at"] or document["created_at"],
    }


def job_row(job: Row) -> Row:
    """Return a job for a list."""
    name = job["filename"] or job["title"] or ("Note" if job["kind"] == "note" else "File")
    remedy = remedy_of(job["error"]) if job["status"] == "failed" else None
    return {**job, "name": plain(name, 200), "path": path_of(job), "remedy": remedy}


def path_of(row: Row) -> str:
    """Return a path for people: what came inside a file without one has its name alone."""
    return plain(INSIDE.sub("", row["source_path"] or ""), 200)


def shown(asked: SearchForm, results: Sequence[Row], every: Sequence[Row]) -> list[Row]:
    """Return results for the page: scores as shares of the best one's."""
    scale = {name: _scale([each[name] for each in every]) for name in ("score", "fts_score", "vec_score")}
    return [
        {
            **document_row(each),
            "href": href(each, each["document_id"], asked.query),
            "snippet": snippet(each["doc_type"], each["text"], each["highlights"]),
            "place": place(each["place"]),
            "words": sorted(matched(each["text"], each["highlights"])),
            "bars": {name: scale[name](each[name]) for name in scale},
            "more": [
                {
                    "href": href(other, each["document_id"], asked.query),
                    "snippet": snippet(each["doc_type"], other["text"], other["highlights"]),
                    "place": place(other["place"]),
                }
                for other in each["more"]
            ],
        }
        for each in results
    ]


def href(passage: Row, document_id: int, query: str) -> str:
    """Return the way to a passage."""
    return f"d/{document_id}?" + urlencode({"chunk": passage["index"], "q": query})


def place(where: Mapping[str, Any]) -> str:
    """Return where a passage stands, in words."""
    page = [f"page {where['page']}"] if where["page"] else []
    heading = [" › ".join(plain(each, 80) for each in where["heading"][-2:])] if where["heading"] else []
    return " · ".join(page + heading) or f"line {where['line_start']}"


def _scale(values: Iterable[float | None]) -> Any:  # noqa: ANN401 - a function of one number
    """Return what gives the length of a score's bar, in percent, between those of the worst and the best."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)

    def share(value: float | None) -> int:
        if value is None:
            return 0
        return 100 if high == low else round(12 + 88 * (value - low) / (high - low))

    return share
