"""Pages of documents: which ones, in which order, and with which index SQLite finds them without reading all."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kb.store.sqlite.values import Execute, stored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from kb.api.models import Sort
    from kb.store.rows import Filter

    Condition = tuple[str, tuple[object, ...]]
    """What must hold of a document in SQL, and its parameters."""

SURROGATES = range(0xD800, 0xE000)
AFTER_SURROGATES = 0xE000
RECENT = "COALESCE(updated_at, created_at)"
TAGGED = (
    "SELECT document_id FROM document_tags WHERE tag_id IN"
    " (SELECT id FROM tags WHERE name IN (SELECT value FROM json_each(?)))"
)
PREFIXED = "SELECT id FROM documents WHERE source_path >= ? AND source_path < ?"
"""Ids come out of it in their order, so that a page need not sort what its filter admits."""

# SQLite does not look a pair up in an index on an expression.
AFTER_RECENT = f"{RECENT} <= ? AND ({RECENT}, id) < (?, ?)"

CARRIES = "SELECT 1 FROM document_tags WHERE document_id = documents.id"

MANY = 1000
"""From so many documents on, those of a tag or a time are looked for on the way through all, not sorted."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as the parts of a SELECT: `FROM source WHERE rest`."""

    source: str
    rest: str
    parameters: tuple[object, ...]


def page_of(execute: Execute, where: Filter, sort: Sort, cursor: str | None) -> Page | None:
    """What to select for a page; None if no document can be on it."""
    groups = [(tag,) for tag in where.tags] + ([where.tag_any] if where.tag_any else [])
    wanted = [tag_ids(execute, group) for group in groups]
    if "" in wanted:
        return None
    source, key = _source(execute, wanted, sort)
    conditions = [*_plain(where), *_tagged(execute, wanted, where.tag_not)]
    if created := _created(where):
        is_short = source == "documents" and _count(execute, "documents", [created]) < MANY
        source = "documents INDEXED BY documents_created_at" if is_short else source
        conditions += [created] if is_short else _on_the_way(created, where, sort)
    if cursor is not None:
        conditions.append(_after(cursor, sort, key))
    condition, parameters = _joined(conditions)
    order = f"{RECENT} DESC, id DESC" if sort == "recent" else key
    return Page(source, f"{condition} ORDER BY {order}", parameters)


def condition_of(where: Filter) -> Condition:
    """`where` as one condition on `documents`."""
    conditions = _plain(where)
    if created := _created(where):
        conditions.append(created)
    conditions += [(f"id IN ({TAGGED})", (json.dumps([tag]),)) for tag in where.tags]
    if where.tag_any:
        conditions.append((f"id IN ({TAGGED})", (json.dumps(where.tag_any),)))
    if where.tag_not:
        conditions.append((f"id NOT IN ({TAGGED})", (json.dumps(where.tag_not),)))
    return _joined(conditions)


def without_unused(execute: Execute, where: Filter) -> Filter:
    """The same without the unwanted tags that nobody carries: they keep nothing out."""
    return replace(where, tag_not=()) if where.tag_not and not tag_ids(execute, where.tag_not) else where


def tag_ids(execute: Execute, tags: Collection[str]) -> str:
    """The ids of those tags that are in use, with commas between them."""
    rows = execute("SELECT id FROM tags WHERE name IN (SELECT value FROM json_each(?))", (json.dumps(tags),))
    return ",".join(str(tag_id) for (tag_id,) in rows)


def after_prefix(prefix: str) -> str | bytes:
    """What comes after all texts with this prefix, and before any other; SQLite puts bytes after all texts."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return b""
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(AFTER_SURROGATES if following in SURROGATES else following)


def _source(execute: Execute, wanted: Sequence[str], sort: Sort) -> tuple[str, str]:
    """Where a page is looked for, and the id there: among the carriers of the rarest tag if that is less work."""
    if wanted:
        rarest = min(wanted, key=lambda ids: _carriers(execute, ids)) if len(wanted) > 1 else wanted[0]
        is_one = "," not in rarest
        if (is_one and sort == "id") or _carriers(execute, rarest) < MANY:
            distinct = "" if is_one else "DISTINCT "
            carriers = f"SELECT {distinct}document_id FROM document_tags WHERE tag_id IN ({rarest})"
            return f"({carriers}) JOIN documents ON id = document_id", "document_id"
    return "documents", "id"


def _carriers(execute: Execute, ids: str) -> int:
    """How many documents carry any of the tags, counted up to `MANY`."""
    return _count(execute, "document_tags", [(f"tag_id IN ({ids})", ())])


def _count(execute: Execute, table: str, conditions: Sequence[Condition]) -> int:
    """How many rows there are, counted up to `MANY`."""
    condition, parameters = _joined(conditions)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} LIMIT ?)"
    number: int = execute(sql, (*parameters, MANY)).get
    return number


def _plain(where: Filter) -> list[Condition]:
    # The plus keeps SQLite from looking a type up, which most documents have, where it can look a path up.
    doc_type = "doc_type" if where.source_path is None else "+doc_type"
    conditions: list[Condition] = [
        (f"{comparison} ?", (value,))
        for comparison, value in ((f"{doc_type} =", where.doc_type), ("source_path =", where.source_path))
        if value is not None
    ]
    if where.source_prefix is not None:
        conditions.append((f"id IN ({PREFIXED})", (where.source_prefix, after_prefix(where.source_prefix))))
    return conditions


def _created(where: Filter) -> Condition | None:
    bounds = (("created_at >= ?", where.created_after), ("created_at < ?", where.created_before))
    conditions: list[Condition] = [(sql, (stored(moment),)) for sql, moment in bounds if moment is not None]
    return _joined(conditions) if conditions else None


def _on_the_way(created: Condition, where: Filter, sort: Sort) -> list[Condition]:
    """When documents were created, as a matter of reading on in their order: the plus keeps SQLite from sorting."""
    sql, parameters = created
    conditions: list[Condition] = [(sql.replace("created_at", "+created_at"), parameters)]
    if sort == "recent" and where.created_after:
        # No document changed before it was created: the rest of the list need not be read.
        conditions.append((f"{RECENT} >= ?", (stored(where.created_after),)))
    return conditions


def _tagged(execute: Execute, wanted: Iterable[str], tag_not: Collection[str]) -> list[Condition]:
    conditions: list[Condition] = [(f"EXISTS ({CARRIES} AND tag_id IN ({ids}))", ()) for ids in wanted]
    if tag_not and (unwanted := tag_ids(execute, tag_not)):
        conditions.append((f"NOT EXISTS ({CARRIES} AND tag_id IN ({unwanted}))", ()))
    return conditions


def _after(cursor: str, sort: Sort, key: str) -> Condition:
    document_id, _, recent = cursor.partition(".")
    if sort == "id":
        return f"{key} > ?", (int(document_id),)
    moment = bytes.fromhex(recent).decode(errors="replace")
    return AFTER_RECENT, (moment, moment, int(document_id))


def _joined(conditions: Iterable[Condition]) -> Condition:
    sql, parameters = ["TRUE"], list[object]()
    for condition, values in conditions:
        sql.append(condition)
        parameters += values
    return " AND ".join(sql), tuple(parameters)
