"""Which documents a filter admits, in SQL, and with which index SQLite finds a page of them without reading all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kb.lexical.names import folded
from kb.lexical.segment import as_phrase
from kb.store.prefix import after_prefix
from kb.store.row_mapping import Execute, stored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from kb.api.models import Sort
    from kb.store.rows import Filter

Condition = tuple[str, tuple[object, ...]]
"""What must hold of a document in SQL, and its parameters."""

EVERY_DOCUMENT: Condition = ("TRUE", ())
NO_DOCUMENT: Condition = ("FALSE", ())

RECENT = "COALESCE(updated_at, created_at)"

PREFIXED = "SELECT id FROM documents WHERE source_path >= ? AND source_path < ?"
"""Ids come out of it in their order, so that a page need not sort what its filter admits."""

STAYS_BELOW = r"instr('/' || replace(source_path, '\', '/') || '/', '/../') = 0"
"""Of a path: it does not lead up again, as `kb.api.access` has it."""

# SQLite does not look a pair up in an index on an expression.
AFTER_RECENT = f"{RECENT} <= ? AND ({RECENT}, id) < (?, ?)"
AFTER_OLDER = f"{RECENT} >= ? AND ({RECENT}, id) > (?, ?)"

QUOTED = str.maketrans({'"': '""', "\0": " "})
"""How a word stands between quotation marks in FTS5's syntax."""

NAME = "folded_name(source_path, title, part_of IS NOT NULL)"
"""The name of a document's file without its folders, or else its title."""

LIKE_ESCAPED = str.maketrans({each: f"\\{each}" for each in r"\%_"})
ID_DIGITS = 18

MANY = 1000
"""From so many documents on, those of a tag or a time are looked for on the way through all, not sorted."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as the parts of a SELECT: `FROM source WHERE rest`."""

    source: str
    rest: str
    parameters: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class TagIds:
    """The tags of a filter by their ids, with commas between them: any of each of `groups`, none of `excluded`."""

    groups: tuple[str, ...]
    excluded: str


def page_of(execute: Execute, where: Filter, sort: Sort, cursor: str | None) -> Page | None:
    """Return what to select for a page; None if no document can be on it."""
    tags = resolve_tags(execute, where)
    if tags is None:
        return None
    source, key = _source(execute, tags.groups, sort)
    created = creation_conditions(where)
    if created and source == "documents" and _count(execute, source, created) < MANY:
        source = "documents INDEXED BY documents_created_at"
    else:
        created = _without_index(created) + _recent_conditions(where, sort)
    after = [_after(cursor, sort, key)] if cursor is not None else []
    condition, parameters = joined([*exact_conditions(where), *_carrying(tags), *created, *after])
    order = {"recent": f"{RECENT} DESC, id DESC", "oldest": f"{RECENT}, id", "id": key}[sort]
    return Page(source, f"{condition} ORDER BY {order}", parameters)


def admitted(execute: Execute, where: Filter) -> Condition:
    """Return `where` as one condition on `documents`: `EVERY_DOCUMENT` or `NO_DOCUMENT` if it comes to that."""
    tags = resolve_tags(execute, where)
    if tags is None:
        return NO_DOCUMENT
    conditions = [*exact_conditions(where), *creation_conditions(where), *text_conditions(where)]
    return joined([*conditions, *_among_carriers(tags)])


def count(execute: Execute, where: Filter) -> int:
    """Return how many documents `where` admits."""
    condition, parameters = admitted(execute, where)
    number: int = execute(f"SELECT count(*) FROM documents WHERE {condition}", parameters).get
    return number


def id_queries(execute: Execute, where: Filter) -> list[tuple[bool, str, tuple[object, ...]]]:
    """Return queries of documents' ids, as one text each: `where` admits what all find that are True, and no other one.

    SQLite would look every carrier of a tag up in a query of all.
    """
    tags = resolve_tags(execute, where)
    if tags is None:
        return [(True, "SELECT NULL", ())]
    carriers = "SELECT group_concat(document_id) FROM document_tags WHERE tag_id IN"
    queries: list[tuple[bool, str, tuple[object, ...]]] = [(True, f"{carriers} ({ids})", ()) for ids in tags.groups]
    if tags.excluded:
        queries.append((False, f"{carriers} ({tags.excluded})", ()))
    conditions = [*exact_conditions(where), *creation_conditions(where), *text_conditions(where)]
    condition, parameters = joined(conditions)
    if (condition, parameters) != EVERY_DOCUMENT:
        queries.append((True, f"SELECT group_concat(id) FROM documents WHERE {condition}", parameters))
    return queries


def resolve_tags(execute: Execute, where: Filter) -> TagIds | None:
    """Return the ids of the filter's tags that are in use; None if a wanted one is not: then there is no document."""
    anys = [where.tag_any, where.limit.tags if where.limit else ()]
    wanted = [(tag,) for tag in where.tags] + [tags for tags in anys if tags]
    groups = tuple(tag_ids(execute, group) for group in wanted)
    return None if "" in groups else TagIds(groups, tag_ids(execute, where.tag_not))


def tag_ids(execute: Execute, tags: Collection[str]) -> str:
    """Return the ids of those tags that are in use, with commas between them."""
    if not tags:
        return ""
    rows = execute("SELECT id FROM tags WHERE name IN (SELECT value FROM json_each(?))", (json.dumps(tags),))
    return ",".join(str(tag_id) for (tag_id,) in rows)


def exact_conditions(where: Filter) -> list[Condition]:
    """Return the conditions on type and path."""
    conditions: list[Condition] = []
    if where.doc_type is not None:
        # The plus keeps SQLite from looking a type up, which most documents have, where it can look a path up.
        column = "doc_type" if where.source_path is None else "+doc_type"
        conditions.append((f"{column} = ?", (where.doc_type,)))
    if where.language is not None:
        conditions.append(("+language = ?", (where.language,)))
    if where.source_path is not None:
        conditions.append(("source_path = ?", (where.source_path,)))
    if where.source_prefix is not None:
        conditions.append((f"id IN ({PREFIXED})", (where.source_prefix, _end(where.source_prefix))))
    if where.source_part is not None:
        part = where.source_part.translate(LIKE_ESCAPED)
        conditions.append((r"source_path LIKE ? ESCAPE '\'", (f"%{part}%",)))
    if where.name is not None:
        conditions.append((f"{NAME} LIKE ? ESCAPE '\\'", (like_pattern(where.name),)))
    if where.id_prefix is not None:
        conditions.append(beginning_id(where.id_prefix))
    if where.document_id is not None:
        conditions.append(("id = ?", (where.document_id,)))
    if where.among is not None:
        conditions.append(("id IN (SELECT value FROM json_each(?))", (json.dumps(where.among),)))
    if where.limit and where.limit.folder is not None:
        folder = where.limit.folder
        conditions += [(f"id IN ({PREFIXED})", (folder, _end(folder))), (STAYS_BELOW, ())]
    return conditions + date_conditions(where)


def like_pattern(pattern: str) -> str:
    """Return a pattern of names with stars as LIKE has it."""
    return folded(pattern).translate(LIKE_ESCAPED).replace("*", "%").replace("?", "_")


def beginning_id(digits: str) -> Condition:
    """Return the condition that an id begins with these digits."""
    first = int(digits)
    powers = [10**more for more in range(ID_DIGITS - len(digits) + 1)]
    ranges = [(first * power, (first + 1) * power - 1) for power in powers]
    return f"({' OR '.join('id BETWEEN ? AND ?' for _ in ranges)})", tuple(bound for pair in ranges for bound in pair)


def date_conditions(where: Filter) -> list[Condition]:
    """Return the conditions on when a document was changed, and on its own date."""
    conditions: list[Condition] = []
    if where.updated_after is not None:
        conditions.append((f"{RECENT} >= ?", (stored(where.updated_after),)))
    for bound, comparison in ((where.after, ">="), (where.before, "<")):
        if bound is not None:
            sql = f"COALESCE(own_day(date) {comparison} ?, {RECENT} {comparison} ?)"
            conditions.append((sql, (f"{bound:%Y-%m-%d}", stored(bound))))
    return conditions


def creation_conditions(where: Filter) -> list[Condition]:
    """Return the conditions on when a document was created."""
    bounds = (("created_at >= ?", where.created_after), ("created_at < ?", where.created_before))
    return [(sql, (stored(moment),)) for sql, moment in bounds if moment is not None]


def text_conditions(where: Filter) -> list[Condition]:
    """Return the conditions on what stands in a document."""
    holders = (
        "SELECT document_id FROM chunks_fts CROSS JOIN chunks ON chunks.id = chunks_fts.rowid WHERE chunks_fts MATCH ?"
    )
    held: list[Condition] = [(f"id IN ({holders})", (quoted(text, begins=True),)) for text in where.holding]
    return held + [(f"id NOT IN ({holders})", (quoted(text, begins=True),)) for text in where.lacking]


def quoted(text: str, *, begins: bool = False) -> str:
    """Return the FTS5 expression for a text; one that ends in a star is the beginning of words.

    With `begins`, a letter of a script without spaces at its end is one, too.
    """
    phrase = as_phrase(text.removesuffix("*"), begins=begins)
    star = "*" if text.endswith("*") or phrase.endswith("*") else ""
    return f'"{phrase.removesuffix("*").translate(QUOTED)}" {star}'.rstrip()


def joined(conditions: Iterable[Condition]) -> Condition:
    """Return the conditions as one."""
    sql, parameters = list[str](), list[object]()
    for condition, values in conditions:
        sql.append(condition)
        parameters += values
    return " AND ".join(sql) or EVERY_DOCUMENT[0], tuple(parameters)


def _source(execute: Execute, groups: Sequence[str], sort: Sort) -> tuple[str, str]:
    """Return where to look for a page, and the id there: among the carriers of the rarest tag if that is less work."""
    if groups:
        rarest = min(groups, key=lambda ids: _carriers(execute, ids)) if len(groups) > 1 else groups[0]
        is_one = "," not in rarest
        if (is_one and sort == "id") or _carriers(execute, rarest) < MANY:
            distinct = "" if is_one else "DISTINCT "
            carriers = f"SELECT {distinct}document_id FROM document_tags WHERE tag_id IN ({rarest})"
            return f"({carriers}) JOIN documents ON id = document_id", "document_id"
    return "documents", "id"


def _carriers(execute: Execute, ids: str) -> int:
    """Return how many documents carry any of the tags, counted up to `MANY`."""
    return _count(execute, "document_tags", [(f"tag_id IN ({ids})", ())])


def _count(execute: Execute, table: str, conditions: Sequence[Condition]) -> int:
    """Return how many rows there are, counted up to `MANY`."""
    condition, parameters = joined(conditions)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} LIMIT ?)"
    number: int = execute(sql, (*parameters, MANY)).get
    return number


def _carrying(tags: TagIds) -> list[Condition]:
    """Return the conditions on tags, to be checked for each document of a page."""
    carries = "SELECT 1 FROM document_tags WHERE document_id = documents.id AND tag_id IN"
    wanted: list[Condition] = [(f"EXISTS ({carries} ({ids}))", ()) for ids in tags.groups]
    return wanted + ([(f"NOT EXISTS ({carries} ({tags.excluded}))", ())] if tags.excluded else [])


def _among_carriers(tags: TagIds) -> list[Condition]:
    """Return the conditions on tags, to find all the documents."""
    carriers = "SELECT document_id FROM document_tags WHERE tag_id IN"
    wanted: list[Condition] = [(f"id IN ({carriers} ({ids}))", ()) for ids in tags.groups]
    return wanted + ([(f"id NOT IN ({carriers} ({tags.excluded}))", ())] if tags.excluded else [])


def _without_index(created: Iterable[Condition]) -> list[Condition]:
    """Return the conditions for a page that is read in its order: the plus keeps SQLite from sorting by another."""
    return [(f"+{sql}", parameters) for sql, parameters in created]


def _recent_conditions(where: Filter, sort: Sort) -> list[Condition]:
    """Return where a list by change ends, or begins: none changed before it was created."""
    if sort == "id" or where.created_after is None:
        return []
    return [(f"{RECENT} >= ?", (stored(where.created_after),))]


def _after(cursor: str, sort: Sort, key: str) -> Condition:
    document_id, _, recent = cursor.partition(".")
    if sort == "id":
        return f"{key} > ?", (int(document_id),)
    when = bytes.fromhex(recent).decode(errors="replace")
    return AFTER_RECENT if sort == "recent" else AFTER_OLDER, (when, when, int(document_id))


def _end(prefix: str) -> str | bytes:
    """Return what comes after all texts with this prefix; SQLite puts bytes after all texts."""
    return after_prefix(prefix) or b""
