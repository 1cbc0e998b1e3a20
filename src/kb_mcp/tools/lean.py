"""What tools answer, made of what the engine answers: nothing twice, nothing empty. Some clients show it to models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kb.client.client import JSON

MARKS: Final = "#*_-> \t\n"
"""What Markdown puts before the words of a first line."""

AGENT: Final = re.compile(r"kb/\S+ (.+) \(mcp\)")
"""Where the gateway says which agent it asks for."""

UNNAMED: Final = re.compile(r"|[0-9a-f]{8}")
"""What history calls keys that have no name."""

KNOWN_FRONT_MATTER: Final = re.compile(r"\A---\r?\n(?:(?:date|title|tags):.*\r?\n)+---\s*\n(?=\s*\S)")
"""Front matter that says no more than what stands before a passage."""

MOST_COPIES: Final = 3
"""How many of the documents that repeat a passage are named."""

DAY: Final = len("2026-01-31")
EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def given(**fields: object) -> JSON:
    """Return the fields that hold something."""
    return {name: value for name, value in fields.items() if value not in EMPTY}


def date_of(document: JSON) -> str:
    """Return the date a document gives itself, or else the day it was changed or added."""
    date: str = document["date"] or (document["updated_at"] or document["created_at"])[:DAY]
    return date


def origin(found: JSON) -> JSON:
    """Return where a document comes from, and what took its place."""
    return given(source=found.get("source"), replaced_by=found.get("replaced_by"))


def author_of(found: JSON) -> str:
    """Return which key, or else which agent, made a document what it is; nothing of keys without a name."""
    name, client = found.get("by") or "", AGENT.fullmatch(found.get("client") or "")
    return name if not UNNAMED.fullmatch(name) else client[1] if client else ""


def without_own(results: list[JSON], reader: str) -> list[JSON]:
    """Return results without their author where that is the reader of all of them, who need not be told."""
    if any(each.get("by") != reader for each in results):
        return results
    return [{name: value for name, value in each.items() if name != "by"} for each in results]


def place_of(place: JSON) -> JSON:
    """Return page and heading; the line only where there is neither."""
    found = given(page=place["page"], heading=place["heading"])
    return found or {"line": place["line_start"]}


def passage_text(found: JSON) -> str:
    """Return a passage without the front matter that the line before it shows: date, title and tags."""
    text: str = found["text"]
    return KNOWN_FRONT_MATTER.sub("", text).lstrip("\r\n") if found["index"] == 0 else text


def passage(found: JSON) -> JSON:
    return given(
        chunk_id=found["chunk_id"],
        place=place_of(found["place"]),
        score=round(found["score"], 3),
        text=passage_text(found),
    ) | {"index": found["index"]}


def search_result(found: JSON) -> JSON:
    """Return a passage with its document; without the title where the text begins with it."""
    return {
        "document_id": found["document_id"],
        "chunk_id": found["chunk_id"],
        "index": found["index"],
        **given(
            title=None if _begins_with_title(found) else found["title"],
            doc_type=found["doc_type"],
            source_path=found["source_path"],
            place=place_of(found["place"]),
            date=date_of(found),
            **origin(found),
            by=author_of(found),
        ),
        "tags": found["tags"],
        "score": round(found["score"], 3),
        "text": passage_text(found),
        **given(more=[passage(each) for each in found["more"]], copies=copies(found)),
    }


def changed(found: JSON) -> JSON:
    """Return a document that was just changed, with when that was."""
    return document(found) | {"updated_at": found["updated_at"]}


def copies(found: JSON) -> JSON:
    """Return how many other documents have a passage, and some of them."""
    some = found.get("copies", [])
    such_as = [each["source_path"] or each["title"] for each in some[:MOST_COPIES]]
    return {"count": found.get("copy_count", len(some)), "such_as": such_as} if some else {}


def document(found: JSON) -> JSON:
    """Return a document without its text."""
    note = found["doc_type"] == "note"
    return {
        "id": found["id"],
        "title": found["title"],
        "date": date_of(found),
        "tags": found["tags"],
        **given(
            doc_type=found["doc_type"],
            source_path=found["source_path"],
            content_hash=found["content_hash"] if note else None,
            replaces=found.get("replaces"),
            omitted=found.get("omitted"),
            language=found.get("language"),
            **origin(found),
            by=author_of(found),
        ),
    }


def listed_document(found: JSON) -> JSON:
    """Return a document as lists show it."""
    return {name: value for name, value in document(found).items() if name != "content_hash"}


def chunk(found: JSON) -> JSON:
    return {
        "id": found["id"],
        "index": found["index"],
        "place": place_of(found["place"]),
        "text": found["text"],
    }


def receipt(accepted: JSON) -> JSON:
    """Return what was accepted, and whether it existed only if it did."""
    return given(**accepted | {"existed": accepted.get("existed") or None})


def job(found: JSON) -> JSON:
    left_out = ("content_hash", "progress") if found["status"] != "running" else ("content_hash",)
    return {name: value for name, value in receipt(found).items() if name not in left_out}


def _begins_with_title(found: JSON) -> bool:
    words = " ".join(passage_text(found).lstrip(MARKS).split())
    return found["doc_type"] == "note" and words.startswith(found["title"].removesuffix("…"))
