"""What tools answer, made of what the engine answers: nothing twice, nothing empty. Some clients show it to models."""

from __future__ import annotations

import re
from typing import Final

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


def document_date(document: JSON) -> str:
    """Return the date a document gives itself, or else the day it was changed or added."""
    date: str = document["date"] or (document["updated_at"] or document["created_at"])[:DAY]
    return date


def origin(record: JSON) -> JSON:
    """Return where a document comes from, and what took its place."""
    return given(source=record.get("source"), replaced_by=record.get("replaced_by"))


def author_label(record: JSON) -> str:
    """Return which key, or else which agent, made a document what it is; nothing of keys without a name."""
    name, client = record.get("by") or "", AGENT.fullmatch(record.get("client") or "")
    return name if not UNNAMED.fullmatch(name) else client[1] if client else ""


def without_own(results: list[JSON], reader: str) -> list[JSON]:
    """Return results without their author where that is the reader of all of them, who need not be told."""
    if any(result.get("by") != reader for result in results):
        return results
    return [{name: value for name, value in result.items() if name != "by"} for result in results]


def compact_place(place: JSON) -> JSON:
    """Return page and heading; the line only where there is neither."""
    fields = given(page=place["page"], heading=place["heading"])
    return fields or {"line": place["line_start"]}


def passage_text(record: JSON) -> str:
    """Return a passage without the front matter that the line before it shows: date, title and tags."""
    text: str = record["text"]
    return KNOWN_FRONT_MATTER.sub("", text).lstrip("\r\n") if record["index"] == 0 else text


def passage(record: JSON) -> JSON:
    return given(
        chunk_id=record["chunk_id"],
        place=compact_place(record["place"]),
        score=round(record["score"], 3),
        text=passage_text(record),
    ) | {"index": record["index"]}


def search_result(record: JSON) -> JSON:
    """Return a passage with its document; without the title where the text begins with it."""
    return {
        "document_id": record["document_id"],
        "chunk_id": record["chunk_id"],
        "index": record["index"],
        **given(
            title=None if _begins_with_title(record) else record["title"],
            doc_type=record["doc_type"],
            source_path=record["source_path"],
            place=compact_place(record["place"]),
            date=document_date(record),
            **origin(record),
            by=author_label(record),
        ),
        "tags": record["tags"],
        "score": round(record["score"], 3),
        "text": passage_text(record),
        **given(more=[passage(other) for other in record["more"]], copies=copies(record)),
    }


def changed(record: JSON) -> JSON:
    """Return a document that was just changed, with when that was."""
    return document(record) | {"updated_at": record["updated_at"]}


def copies(record: JSON) -> JSON:
    """Return how many other documents have a passage, and some of them."""
    some = record.get("copies", [])
    such_as = [copy["source_path"] or copy["title"] for copy in some[:MOST_COPIES]]
    return {"count": record.get("copy_count", len(some)), "such_as": such_as} if some else {}


def document(record: JSON) -> JSON:
    """Return a document without its text."""
    note = record["doc_type"] == "note"
    return {
        "id": record["id"],
        "title": record["title"],
        "date": document_date(record),
        "tags": record["tags"],
        **given(
            doc_type=record["doc_type"],
            source_path=record["source_path"],
            content_hash=record["content_hash"] if note else None,
            replaces=record.get("replaces"),
            omitted=record.get("omitted"),
            language=record.get("language"),
            **origin(record),
            by=author_label(record),
        ),
    }


def listed_document(record: JSON) -> JSON:
    """Return a document as lists show it."""
    return {name: value for name, value in document(record).items() if name != "content_hash"}


def chunk(record: JSON) -> JSON:
    return {
        "id": record["id"],
        "index": record["index"],
        "place": compact_place(record["place"]),
        "text": record["text"],
    }


def receipt(accepted: JSON) -> JSON:
    """Return what was accepted, and whether it existed only if it did."""
    return given(**accepted | {"existed": accepted.get("existed") or None})


def job(record: JSON) -> JSON:
    left_out = ("content_hash", "progress") if record["status"] != "running" else ("content_hash",)
    return {name: value for name, value in receipt(record).items() if name not in left_out}


def _begins_with_title(record: JSON) -> bool:
    words = " ".join(passage_text(record).lstrip(MARKS).split())
    return record["doc_type"] == "note" and words.startswith(record["title"].removesuffix("…"))
