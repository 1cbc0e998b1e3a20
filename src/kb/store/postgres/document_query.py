"""Which documents a filter admits, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kb.lexical.names import FILE_MARK, folded
from kb.store.prefix import after_prefix
from kb.store.row_mapping import moment_or_first, stored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kb.api.models import Sort
    from kb.store.postgres.words import FullText
    from kb.store.rows import Filter

Condition = tuple[str, tuple[object, ...]]
"""What must hold of a document in SQL, and its parameters."""

EVERY_DOCUMENT: Condition = ("TRUE", ())

LIKE_ESCAPED = str.maketrans({each: f"\\{each}" for each in r"\%_"})

RECENT = "COALESCE(updated_at, created_at)"
CARRIES = "EXISTS (SELECT 1 FROM document_tags WHERE document_id = documents.id AND tag = ANY(%s))"
CARRIES_ALL = "ARRAY(SELECT tag FROM document_tags WHERE document_id = documents.id) @> %s::text[]"

MOST_JOINED: Final = 8
"""So many tags are each a table to join, which takes the planner the cube of their number; the others are a set."""

CALLED = "id IN (SELECT document_id FROM names WHERE token LIKE %s)"
"""That a document's file, or else its title, has a name of a pattern."""

STAYS_BELOW = r"strpos('/' || replace(source_path, '\', '/') || '/', '/../') = 0"
"""Of a path: it does not lead up again, as `kb.api.access` has it."""

ORDERS: dict[Sort, str] = {"recent": f"{RECENT} DESC, id DESC", "oldest": f"{RECENT}, id", "id": "id"}


def admitted(words: FullText, where: Filter) -> Condition:
    """Return `where` as one condition on `documents`: `EVERY_DOCUMENT` if it comes to that."""
    return joined(
        [
            *tag_conditions(where),
            *exact_conditions(where),
            *date_conditions(where),
            *text_conditions(words, where),
        ]
    )


def page_of(words: FullText, where: Filter, sort: Sort, cursor: str | None) -> Condition:
    """Return what follows WHERE for a page: a condition and an order."""
    after = [_after(cursor, sort)] if cursor is not None else []
    condition, parameters = joined([admitted(words, where), *after])
    return f"{condition} ORDER BY {ORDERS[sort]}", parameters


def tag_conditions(where: Filter) -> list[Condition]:
    """Return the conditions on tags."""
    anys = [where.tag_any, where.limit.tags if where.limit else ()]
    wanted = [(tag,) for tag in where.tags[:MOST_JOINED]] + [tags for tags in anys if tags]
    carried: list[Condition] = [(CARRIES, (list(group),)) for group in wanted]
    if more := where.tags[MOST_JOINED:]:
        carried.append((CARRIES_ALL, (list(more),)))
    return carried + ([(f"NOT {CARRIES}", (list(where.tag_not),))] if where.tag_not else [])


def exact_conditions(where: Filter) -> list[Condition]:
    """Return the conditions on type and path, and on ids."""
    conditions: list[Condition] = []
    if where.doc_type is not None:
        conditions.append(("doc_type = %s", (where.doc_type,)))
    if where.language is not None:
        conditions.append(("language = %s", (where.language,)))
    if where.source_path is not None:
        conditions.append(("source_path = %s", (where.source_path,)))
    if where.source_prefix is not None:
        conditions += prefix_conditions(where.source_prefix)
    if where.source_part is not None:
        conditions.append(("strpos(lower(source_path), %s) > 0", (where.source_part.encode().lower().decode(),)))
    if where.name is not None:
        conditions.append((CALLED, (like_pattern(f"{FILE_MARK}{where.name}"),)))
    if where.id_prefix is not None:
        conditions.append(("starts_with(id::text, %s)", (where.id_prefix,)))
    if where.document_id is not None:
        conditions.append(("id = %s", (where.document_id,)))
    if where.among is not None:
        conditions.append(("id = ANY(%s)", (list(where.among),)))
    if where.limit and where.limit.folder is not None:
        conditions += [*prefix_conditions(where.limit.folder), (STAYS_BELOW, ())]
    return conditions


def like_pattern(pattern: str) -> str:
    """Return a pattern of names with stars as LIKE has it."""
    return folded(pattern).translate(LIKE_ESCAPED).replace("*", "%").replace("?", "_")


def prefix_conditions(prefix: str) -> list[Condition]:
    """Return the conditions on how a path begins."""
    end = after_prefix(prefix)
    beginning: list[Condition] = [("source_path >= %s", (prefix,))]
    return beginning + ([("source_path < %s", (end,))] if end is not None else [])


def date_conditions(where: Filter) -> list[Condition]:
    """Return the conditions on when a document was created and changed, and on its own date."""
    bounds = (
        ("created_at >= %s", where.created_after),
        ("created_at < %s", where.created_before),
        (f"{RECENT} >= %s", where.updated_after),
    )
    conditions: list[Condition] = [(sql, (stored(instant),)) for sql, instant in bounds if instant is not None]
    for bound, comparison in ((where.after, ">="), (where.before, "<")):
        if bound is not None:
            sql = f"COALESCE(own_day {comparison} %s, {RECENT} {comparison} %s)"
            conditions.append((sql, (f"{bound:%Y-%m-%d}", stored(bound))))
    return conditions


def text_conditions(words: FullText, where: Filter) -> list[Condition]:
    """Return the conditions on what stands in a document."""
    held: list[Condition] = [("id = ANY(%s)", (words.documents_with(text),)) for text in where.holding]
    return held + [("NOT id = ANY(%s)", (words.documents_with(text),)) for text in where.lacking]


def joined(conditions: Iterable[Condition]) -> Condition:
    """Return the conditions as one."""
    sql, parameters = list[str](), list[object]()
    for condition, values in conditions:
        if condition != EVERY_DOCUMENT[0]:
            sql.append(condition)
            parameters += values
    return " AND ".join(sql) or EVERY_DOCUMENT[0], tuple(parameters)


def among(condition: Condition) -> Condition:
    """Return what keeps rows with a `document_id` to the documents of a condition; nothing for all."""
    if condition == EVERY_DOCUMENT:
        return "", ()
    documents = f"SELECT id FROM documents WHERE {condition[0]}"  # noqa: S608 - its values are parameters
    return f"WHERE document_id IN ({documents})", condition[1]


def _after(cursor: str, sort: Sort) -> Condition:
    document_id, _, recent = cursor.partition(".")
    if sort == "id":
        return "id > %s", (int(document_id),)
    when = moment_or_first(bytes.fromhex(recent).decode(errors="replace"))
    comparison = "<" if sort == "recent" else ">"
    return f"({RECENT}, id) {comparison} (%s::timestamptz, %s)", (when, int(document_id))
