"""The search page: results with filters, or recent documents if the query is empty."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Invalid
from kb.api.search_wording import FEW, PROBABLY_NOT, end_of_exact, has_no_word
from kb_web.document_html import Row, plain, snippet
from kb_web.marking import matched
from kb_web.pages import render, zone_of
from kb_web.rows import document_row, place
from kb_web.search_filters import facets
from kb_web.search_form import COUNTED, LIMIT, MODES, SearchForm
from kb_web.sessions import Visit

SHOWN: Final = 8
LOOKED_AT: Final = 40
FEW_TOGETHER: Final = 4
"""More documents that changed in one minute were changed by a program, or by one command."""


async def search(request: Request, visit: Visit) -> Response:
    """Show search results, or recent documents if the query is empty."""
    asked = SearchForm.of(request.query_params, zone_of(request))
    if not asked.query:
        return render(request, "search.html", asked=asked, modes=MODES, **await home(visit))
    top = min(COUNTED, request.app.state.settings.max_top)
    try:
        reply = await visit.engine.search(**asked.request(top))
    except Invalid as error:
        nothing: Row = {"results": [], "found": 0, "facets": facets(asked, [])}
        return render(request, "search.html", asked=asked, modes=MODES, **nothing, wrong=error.detail)
    results = reply["results"]
    return render(
        request,
        "search.html",
        asked=asked,
        modes=MODES,
        results=shown(asked, results[: FEW if reply["weak"] and asked.limit == LIMIT else asked.limit], results),
        found=len(results),
        found_ids=list(dict.fromkeys(result["document_id"] for result in results)),
        pending=reply["pending"],
        unknown=reply["unknown"],
        unreadable=reply["unreadable"],
        more_unreadable=reply["unreadable_count"] - len(reply["unreadable"]),
        is_weak=reply["weak"],
        probably_not=PROBABLY_NOT,
        facets=facets(asked, results, reply["operators"]),
        wrong=None,
        exact=end_of_exact(results),
        as_typed=reply["as_typed"],
        without_filters=asked.without(operator["typed"] for operator in reply["operators"]),
        is_filtered=bool(asked.filters() or reply["operators"]),
        is_empty=not results and not sum((await visit.engine.status())["documents"].values()),
        is_by_meaning=not asked.mode and has_no_word(results),
    )


async def home(visit: Visit) -> dict[str, Any]:
    documents, status, tags = await asyncio.gather(
        visit.engine.documents(sort="recent", limit=LOOKED_AT),
        visit.engine.status(),
        visit.engine.tags(),
    )
    return {
        "results": None,
        "facets": facets(SearchForm(""), []),
        "documents": by_a_person(document_row(document) for document in documents["documents"])[:SHOWN],
        "status": status,
        "tags": sorted(tags["tags"], key=lambda count: -count["branch"])[:30],
    }


def by_a_person(rows: Iterable[Row]) -> list[Row]:
    """Return documents, first those that did not change together with many others within a minute."""
    rows = list(rows)
    together = Counter(row["when"][: len("2026-11-29T12:30")] for row in rows)
    return sorted(rows, key=lambda row: together[row["when"][: len("2026-11-29T12:30")]] > FEW_TOGETHER)


def shown(asked: SearchForm, results: Sequence[Row], every: Sequence[Row]) -> list[Row]:
    """Return results for the page, with scores relative to all results."""
    scale = {name: _scale([result[name] for result in every]) for name in ("score", "fts_score", "vec_score")}
    rows = [
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
    if not asked.recent:  # the order has more grounds than the score, and no bar is longer than one above it
        for row, most in zip(rows, accumulate((row["bars"]["score"] for row in rows), min), strict=True):
            row["bars"]["score"] = most
    return rows


def href(passage: Row, document_id: int, query: str) -> str:
    return f"d/{document_id}?" + urlencode({"chunk": passage["index"], "q": query})


def place_below(result: Row) -> str:
    """Return the location of a result in words, without a heading that repeats the title; it may be empty."""
    where, title = result["place"], plain(result["title"], 80)
    headings = [heading for heading in where["heading"] if plain(heading, 80) != title]
    is_only_title = where["heading"] and not headings and not where["page"]
    is_beginning = not (headings or where["page"]) and where["line_start"] == 1
    return "" if is_only_title or is_beginning else place({**where, "heading": headings}, result["doc_type"])


def _scale(values: Iterable[float | None]) -> Any:  # noqa: ANN401 - a function of one number
    """Return a function from a score to the length of its bar in percent, from the lowest to the highest score."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)

    def share(value: float | None) -> int:
        if value is None:
            return 0
        return 100 if high == low else round(12 + 88 * (value - low) / (high - low))

    return share
