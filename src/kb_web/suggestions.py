"""Suggest names of documents, and tags, while a note is written."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kb.api.tag_tree import SEPARATOR
from kb.asgi.security_headers import PAGE_HEADERS
from kb_web.document_html import Row, plain
from kb_web.pages import count
from kb_web.sessions import Visit

MOST: Final = 8
LONGEST: Final = 100
TYPES: Final = (("note", "markdown"), (None,))
INLINE_TAG: Final = re.compile(r"[\w/-]*[^\W\d][\w/-]*")
"""A tag that can be written as #tag in a text."""

UNLINKABLE: Final = re.compile(r"[\[\]|#^\n]")
"""Characters that cannot be in the target of a [[link]]."""


async def suggest(request: Request, visit: Visit) -> Response:
    """Return suggestions for a field: the text to insert, with a label and a detail."""
    query = request.query_params.get("q", "").strip()[:LONGEST]
    kind = request.query_params.get("kind")
    rows = await (names(visit, query) if kind == "link" else tags(visit, query, inline=kind == "hashtag"))
    return JSONResponse(rows, headers=PAGE_HEADERS)


async def tags(visit: Visit, query: str, *, inline: bool) -> list[Row]:
    """Return the tags with a level that begins with the query: tags that begin with it first, then the most used."""
    query = query.casefold()
    found = [
        tag
        for tag in (await visit.engine.tags())["tags"]
        if f"{SEPARATOR}{query}" in f"{SEPARATOR}{tag['tag'].casefold()}"
        and (not inline or INLINE_TAG.fullmatch(tag["tag"]))
    ]
    found.sort(key=lambda tag: (not tag["tag"].casefold().startswith(query), -tag["branch"], tag["tag"]))
    return [
        {
            "text": f"#{tag['tag']}" if inline else tag["tag"],
            "label": plain(tag["tag"], 200),
            "detail": count(tag["branch"], "document"),
        }
        for tag in found[:MOST]
    ]


async def names(visit: Visit, query: str) -> list[Row]:
    """Return links to documents: first notes and Markdown, and of these the names that begin with the query."""
    word = re.sub(r"[*?]", "?", query)
    patterns = (f"{word}*", f"*{word}*") if query else ("*",)
    groups = await asyncio.gather(*(named(visit, pattern, types) for types in TYPES for pattern in patterns))
    found = list({row["id"]: row for group in groups for row in group}.values())[:MOST]
    counts = Counter(name_of(row).casefold() for row in found)
    return [
        {
            "text": link_to(row, by_path=counts[name_of(row).casefold()] > 1),
            "label": plain(name_of(row), 200) or "Untitled",
            "detail": plain((row["source_path"] or "").rpartition("/")[0], 60),
        }
        for row in found
    ]


async def named(visit: Visit, pattern: str, types: Sequence[str | None]) -> list[Row]:
    """Return documents of these types with such a name, newest first; None means all types."""
    pages = await asyncio.gather(
        *(visit.engine.documents(name=pattern, doc_type=each, sort="recent", limit=MOST) for each in types)
    )
    rows = [row for page in pages for row in page["documents"]]
    return sorted(rows, key=lambda row: row["updated_at"] or row["created_at"], reverse=True)


def name_of(row: Row) -> str:
    """Return the name that links use: of a file its name, without `.md`, and of a note its title."""
    name: str = (row["source_path"] or "").rstrip("/").rpartition("/")[2] or row["title"]
    return name.removesuffix(".md")


def link_to(row: Row, *, by_path: bool) -> str:
    """Return a link in Markdown; `by_path` distinguishes documents with the same name."""
    target = row["source_path"].removesuffix(".md") if by_path and row["source_path"] else name_of(row)
    is_ambiguous = by_path and not row["source_path"]
    if is_ambiguous or not target.strip() or "://" in target or UNLINKABLE.search(target):
        label = re.sub(r"([\\\[\]])", r"\\\1", plain(row["title"], 200)) or f"Document {row['id']}"
        return f"[{label}](kb://documents/{row['id']})"
    return f"[[{target}]]"
