"""The structured answers of tools: the engine's without empty or duplicate fields. Some clients show them to models."""

import re
from itertools import groupby
from operator import itemgetter
from typing import Final

from kb.api.document_day import own_day
from kb.api.fields import NOTE
from kb.client.client import JSON
from kb.wording import OPTIONAL_FIELDS

MARKS: Final = "#*_-> \t\n"
"""Markdown characters that can precede the words of a first line."""

AGENT: Final = re.compile(r"kb/\S+ (.+) \(mcp\)")
"""The User-Agent of the gateway, which contains the name of the agent."""

UNNAMED: Final = re.compile(r"|[0-9a-f]{8}")
"""The label of keys without a name in the history."""

NAMELESS: Final = re.compile(
    r"(?:(?:mcp|fastmcp|test|example)?[-_ ]?client|(?:fast)?mcp|python-\w+|httpx2?|aiohttp|node(?:-fetch)?|undici|axios"
    r"|curl|go-http-client|okhttp|unknown)(?:[ /]v?\d\S*)?",
    re.IGNORECASE,
)
"""The names of libraries, which many agents share."""

KNOWN_FRONT_MATTER: Final = re.compile(r"\A---\r?\n(?:(?:date|title|tags):.*\r?\n)+---\s*\n(?=\s*\S)")
"""Front matter with only the fields that the line above a passage also shows."""

MOST_COPIES: Final = 3
"""Maximum number of documents to name that contain the same passage."""

EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def given(**fields: object) -> JSON:
    return {name: value for name, value in fields.items() if value not in EMPTY}


def document_date(document: JSON) -> str:
    """Return the document date as written, or failing that, the day of the last change."""
    return str(document["date"] or document["day"])


def later_change(record: JSON) -> str:
    """Return the day of the last change of a note if it is after the note's own date; otherwise empty."""
    day = (record["updated_at"] or "")[: len("2026-01-31")]
    return day if record["doc_type"] == NOTE and record["date"] and (own_day(record["date"]) or day) < day else ""


def origin(record: JSON) -> JSON:
    return given(**{name: record.get(name) for name in (*OPTIONAL_FIELDS, "replaced_by")})


def author_label(record: JSON) -> str:
    """Return the key or otherwise the agent that last changed a document; empty if neither has a name of its own."""
    name, client = record.get("by") or "", AGENT.fullmatch(record.get("client") or "")
    if not UNNAMED.fullmatch(name):
        return name
    return client[1] if client and not NAMELESS.fullmatch(client[1]) else ""


def without_own(results: list[JSON], reader: str) -> list[JSON]:
    """Return the results without their author if the reader wrote all of them."""
    if any(result.get("by") != reader for result in results):
        return results
    return [{name: value for name, value in result.items() if name != "by"} for result in results]


def compact_place(place: JSON) -> JSON:
    """Return page and heading, or the line if the place has neither."""
    fields = given(page=place["page"], heading=place["heading"])
    return fields or {"line": place["line_start"]}


def passage_text(record: JSON) -> str:
    """Return a passage without front matter that the line above also shows: date, title and tags."""
    text: str = record["text"]
    return KNOWN_FRONT_MATTER.sub("", text).lstrip("\r\n") if record["index"] == 0 else text


def passage(record: JSON, doc_type: str) -> JSON:
    """Return a passage; its place only if it is not the beginning of a note."""
    index = record["index"]
    return given(
        chunk_id=record["chunk_id"],
        index=index or None,
        place=compact_place(record["place"]) if index or doc_type != NOTE else None,
        score=round(record["score"], 3),
        text=passage_text(record),
    )


def search_result(record: JSON) -> JSON:
    """Return a passage with its document, without the title if the text begins with it."""
    doc_type = record["doc_type"]
    return {
        "document_id": record["document_id"],
        **given(
            title=None if doc_type == NOTE and begins_with(passage_text(record), record["title"]) else record["title"],
            doc_type=doc_type,
            source_path=record["source_path"],
            date=document_date(record),
            updated_at=record["updated_at"],
            changed=later_change(record),
            **origin(record),
            by=author_label(record),
        ),
        "tags": record["tags"],
        **passage(record, doc_type),
        **given(more=[passage(other, doc_type) for other in record["more"]], copies=copies(record)),
    }


def changed(record: JSON) -> JSON:
    """Return a changed document with the time of the change, and `embedded` only if it is false."""
    later = {} if record.get("embedded", True) else {"embedded": False}
    return document(record) | {"updated_at": record["updated_at"]} | later


def copies(record: JSON) -> JSON:
    """Return the number of other documents that contain the passage, and some of them."""
    some = record.get("copies", [])
    such_as = [copy["source_path"] or copy["title"] for copy in some[:MOST_COPIES]]
    return {"count": record.get("copy_count", len(some)), "such_as": such_as} if some else {}


def document(record: JSON) -> JSON:
    note = record["doc_type"] == NOTE
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
    fields = {name: value for name, value in document(record).items() if name != "content_hash"}
    return fields | given(**{name: record.get(name) for name in ("changed", "change", "deleted_at", "text")})


def change_of_text(versions: list[JSON]) -> JSON:
    """Return the day since which a document has its text, from its versions, newest first; nothing for its first text.

    A change of only the title or the tags, or a time in the bin, makes a version with the same text.
    """
    texts = groupby(versions, itemgetter("content_hash"))
    *_, oldest = next(texts)[1]
    is_later = next(texts, None) or oldest["number"] > 1  # the versions before may have expired
    return given(changed=oldest["at"][: len("2026-01-31")] if is_later else None)


def change_between(versions: list[JSON]) -> str:
    """Return the kind of a document's last change, from its newest versions, newest first."""
    newest = versions[0]
    if (newest["why"] or "").startswith(("reverted", "undo", "restored")):
        return str(newest["why"])
    if len(versions) == 1:
        return "added" if newest["number"] == 1 else "changed"
    earlier = versions[1]
    fields = {"content_hash": "text", "title": "title", "tags": "tags", "source_path": "path"}
    kinds = [kind for name, kind in fields.items() if newest[name] != earlier[name]]
    return ", ".join(kinds) or "nothing visible"


def chunk(record: JSON) -> JSON:
    return {
        "id": record["id"],
        "index": record["index"],
        "place": compact_place(record["place"]),
        "text": record["text"],
    }


def receipt(accepted: JSON) -> JSON:
    """Return the receipt, with `existed` only if it is true, and `stored` only if it is false."""
    flags = {"existed": accepted.get("existed") or None, "stored": None if accepted.get("stored", True) else False}
    return given(**accepted | flags)


def job(record: JSON) -> JSON:
    left_out = ("content_hash", "progress") if record["status"] != "running" else ("content_hash",)
    return {name: value for name, value in receipt(record).items() if name not in left_out}


def begins_with(text: str, title: str) -> bool:
    """Whether a text begins with its title, apart from Markdown."""
    words = " ".join(text.lstrip(MARKS).split())
    return bool(words) and words.startswith(title.removesuffix("…"))
