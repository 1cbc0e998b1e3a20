"""The parameters of a search in a URL."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Final, Self
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from kb_web.pages import day_asked, language_asked, midnight, name_pattern, path_asked

MODES: Final = {"": "Both", "words": "Words", "meaning": "Meaning"}
LIMIT: Final = 20
COUNTED: Final = 50
"""Number of results counted for the filters."""


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
    zone: tzinfo = UTC
    """In which the days of `after` and `before` begin."""

    @classmethod
    def of(cls, params: QueryParams, zone: tzinfo = UTC) -> Self:
        """Return the parameters of a URL; ignore invalid ones."""
        more = params.get("n", "")
        return cls(
            query=params.get("q", "").strip(),
            mode=params.get("mode", "") if params.get("mode", "") in MODES else "",
            tags=tuple(dict.fromkeys(filter(None, params.getlist("tag")))),
            doc_type=params.get("type", ""),
            lang=language_asked(params),
            path=path_asked(params),
            name=params.get("name", ""),
            after=day_asked(params, "after"),
            before=day_asked(params, "before"),
            by_passage=params.get("by") == "passage",
            recent=params.get("sort") == "recent",
            limit=max(LIMIT, min(int(more), COUNTED)) if more.isdecimal() and len(more) < 4 else LIMIT,
            zone=zone,
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

    def without(self, typed: Iterable[str]) -> str:
        """Return the query without some operators, as they were typed."""
        query = self.query
        for operator in typed:
            query = re.sub(rf"(?<!\S){re.escape(operator)}(?!\S)", " ", query, count=1)
        return " ".join(query.split())

    def filters(self) -> dict[str, Any]:
        """Return the filters of the search, as the API names them."""
        given = {
            "tags": list(self.tags),
            "doc_type": self.doc_type,
            "lang": self.lang,
            "source_prefix": self.path,
            "name": name_pattern(self.name),
            "after": midnight(self.after, self.zone),
            "before": midnight(self.before, self.zone),
        }
        return {name: value for name, value in given.items() if value}

    def request(self, top: int) -> dict[str, Any]:
        """Return the search request for the engine's API."""
        modes = {"words": {"fts_only": True}, "meaning": {"vec_only": True}}
        options: dict[str, Any] = {} if self.by_passage else {"group_by": "document"}
        options |= {"sort": "recent"} if self.recent else {}
        return {"query": self.query, "top": top} | self.filters() | options | modes.get(self.mode, {})
