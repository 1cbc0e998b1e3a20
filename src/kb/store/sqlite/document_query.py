"""The documents that a filter admits, in SQLite's SQL, and the index that finds a page of them."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kb.api.fields import Sort
from kb.api.limits import ID_DIGITS
from kb.api.tag_tree import stem
from kb.index.words.segmentation import as_phrase
from kb.store.row_mapping import Execute, stored
from kb.store.rows import Filter
from kb.store.sql.conditions import (
    EVERY_DOCUMENT,
    LIKE_ESCAPED,
    RECENT,
    Condition,
    Conditions,
    after_prefix,
    joined,
    like_pattern,
)

NO_DOCUMENT: Condition = ("FALSE", ())

# It yields ids in ascending order, so a page does not have to sort the documents of its filter.
PREFIXED = "SELECT id FROM documents WHERE source_path >= ? AND source_path < ?"

TAGS_NAMED = "SELECT id FROM tags WHERE name IN (SELECT value FROM json_each(?))"

# The character after the slash is 0.
TAGS_IN_BRANCHES = (
    f"{TAGS_NAMED} UNION ALL"
    " SELECT tags.id FROM json_each(?) CROSS JOIN tags ON name >= value || '/' AND name < value || '0'"
)

HOLDERS = (
    "SELECT document_id FROM chunks_fts CROSS JOIN chunks ON chunks.id = chunks_fts.rowid WHERE chunks_fts MATCH ?"
)

# The first comparison is for the index: SQLite does not use an index on an expression to compare pairs.
AFTER_RECENT = f"{RECENT} <= ? AND ({RECENT}, id) < (?, ?)"
AFTER_OLDER = f"{RECENT} >= ? AND ({RECENT}, id) > (?, ?)"

# The escapes of a quoted word in FTS5's syntax.
QUOTED = str.maketrans({'"': '""', "\0": " "})

# The name of a document's file without its folders, or its title if it has no file name.
NAME = "folded_name(source_path, title, part_of IS NOT NULL)"
SENT_AS = "source_path IS NULL AND folded_name(uploaded_as, '', 0)"

FEW = 8

# If a tag or a time has at least this many documents, a page scans all documents in order instead of sorting these.
MANY = 1000


@dataclass(frozen=True, slots=True)
class TagIds:
    """The tags of a filter as comma-separated ids: at least one of each of `groups`, and none of `excluded`."""

    groups: tuple[str, ...]
    excluded: str


class SqliteConditions(Conditions):
    """See `kb.store.sql.conditions.Conditions`."""

    mark = "?"
    own_day = "own_day(date)"
    in_order = "alphabetic({})"
    recent_day = f"substr({RECENT}, 1, 10)"
    stays_below = r"instr('/' || replace(source_path, '\', '/') || '/', '/../') = 0"
    beside = "+"

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def page(self, where: Filter, sort: Sort, cursor: str | None) -> tuple[str, Condition]:
        tags = self._resolved(where)
        if tags is None:
            return "documents", NO_DOCUMENT
        source, key = self._source(tags.groups, sort)
        created = self.on_creation(where)
        if created and source == "documents" and self._count(source, created) < MANY:
            source = "documents INDEXED BY documents_created_at"
        else:
            created = _without_index(created) + _recent_conditions(where, sort)
        after = [self.after(sort, cursor, key)] if cursor is not None else []
        condition, parameters = joined([*self.exact(where), *_carrying(tags), *created, *self.on_texts(where), *after])
        return source, (f"{condition} ORDER BY {self.order_by(sort, key)}", parameters)

    def after_change(self, sort: Sort, when: str, document_id: int) -> Condition:
        return AFTER_RECENT if sort == "recent" else AFTER_OLDER, (when, when, document_id)

    def id_queries(self, where: Filter) -> list[tuple[bool, str, tuple[object, ...]]]:
        """Return queries that each yield document ids as one text.

        The filter admits the documents that all queries marked True find and that no query marked False finds.
        In a single query, SQLite would look up every document of a tag.
        """
        tags = self._resolved(where)
        if tags is None:
            return [(True, "SELECT NULL", ())]
        carriers = "SELECT group_concat(document_id) FROM document_tags WHERE tag_id IN"
        queries: list[tuple[bool, str, tuple[object, ...]]] = [(True, f"{carriers} ({ids})", ()) for ids in tags.groups]
        if tags.excluded:
            queries.append((False, f"{carriers} ({tags.excluded})", ()))
        condition, parameters = joined([*self.exact(where), *self.on_creation(where), *self.on_texts(where)])
        if (condition, parameters) != EVERY_DOCUMENT:
            queries.append((True, f"SELECT group_concat(id) FROM documents WHERE {condition}", parameters))
        return queries

    def on_tags(self, where: Filter) -> list[Condition]:
        tags = self._resolved(where)
        if tags is None:
            return [NO_DOCUMENT]
        carriers = "SELECT document_id FROM document_tags WHERE tag_id IN"
        carried: list[Condition] = [(f"id IN ({carriers} ({ids}))", ()) for ids in tags.groups]
        return carried + ([(f"id NOT IN ({carriers} ({tags.excluded}))", ())] if tags.excluded else [])

    def under(self, prefix: str) -> list[Condition]:
        return [(f"id IN ({PREFIXED})", (prefix, after_prefix(prefix) or b""))]  # in SQLite, bytes sort after all texts

    def with_part(self, part: str) -> Condition:
        return r"source_path LIKE ? ESCAPE '\'", (f"%{part.translate(LIKE_ESCAPED)}%",)

    def called(self, pattern: str) -> Condition:
        like = like_pattern(pattern)
        return f"({NAME} LIKE ? ESCAPE '\\' OR {SENT_AS} LIKE ? ESCAPE '\\')", (like, like)

    def beginning_id(self, digits: str) -> Condition:
        first = int(digits)
        powers = [10**more for more in range(ID_DIGITS - len(digits) + 1)]
        bounds = [bound for power in powers for bound in (first * power, (first + 1) * power - 1)]
        return f"({' OR '.join('id BETWEEN ? AND ?' for _ in powers)})", tuple(bounds)

    def one_of(self, ids: Sequence[int]) -> Condition:
        return "id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)

    def holding(self, text: str) -> Condition:
        return f"id IN ({HOLDERS})", (quoted(text, begins=True),)

    def _resolved(self, where: Filter) -> TagIds | None:
        """Return the filter's tags that are in use; None if a required tag is not in use."""
        find = self._tag_ids if where.tag_exact else self._branch_ids
        groups = [find([tag]) for tag in where.tags]
        groups += [find(where.tag_any)] if where.tag_any else []
        groups += [self._branch_ids(where.limit.tags)] if where.limit and where.limit.tags else []
        return None if "" in groups else TagIds(tuple(groups), find(where.tag_not))

    def _tag_ids(self, tags: Collection[str]) -> str:
        """Return the ids of the tags that are in use, separated by commas."""
        return self._ids(TAGS_NAMED, tags) if tags else ""

    def _branch_ids(self, branches: Collection[str]) -> str:
        """Return the ids of these tags and the tags below them, as far as they are in use, separated by commas."""
        if not branches:
            return ""
        return self._ids(TAGS_IN_BRANCHES, {*branches, *map(stem, branches)}, {*map(stem, branches)})

    def _ids(self, sql: str, *names: Collection[str]) -> str:
        found = self._execute(sql, tuple(json.dumps([*each]) for each in names))
        return ",".join(map(str, sorted({tag_id for (tag_id,) in found})))

    def _source(self, groups: Sequence[str], sort: Sort) -> tuple[str, str]:
        """Return the table for a page, and its id column: the documents of the rarest tag if these are few."""
        if groups:
            rarest = min(groups, key=self._carriers) if len(groups) > 1 else groups[0]
            is_one = "," not in rarest
            if (is_one and sort == "id") or self._carriers(rarest) < MANY:
                distinct = "" if is_one else "DISTINCT "
                carriers = f"SELECT {distinct}document_id FROM document_tags WHERE tag_id IN ({rarest})"
                return f"({carriers}) JOIN documents ON id = document_id", "document_id"
        return "documents", "id"

    def _carriers(self, ids: str) -> int:
        """Return the number of documents with any of the tags, counted up to `MANY`."""
        return self._count("document_tags", [(f"tag_id IN ({ids})", ())])

    def _count(self, table: str, conditions: Sequence[Condition]) -> int:
        """Return the number of rows, counted up to `MANY`."""
        condition, parameters = joined(conditions)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} LIMIT ?)"
        number: int = self._execute(sql, (*parameters, MANY)).get
        return number


def quoted(text: str, *, begins: bool = False) -> str:
    """Return the FTS5 expression for a text; a text that ends in a star is a prefix.

    With `begins`, a text is also a prefix if its last letter is of a script without spaces.
    """
    phrase = as_phrase(text.removesuffix("*"), begins=begins)
    star = "*" if text.endswith("*") or phrase.endswith("*") else ""
    return f'"{phrase.removesuffix("*").translate(QUOTED)}" {star}'.rstrip()


def _carrying(tags: TagIds) -> list[Condition]:
    """Return the conditions on tags; SQLite checks them for each document of a page."""
    carried: list[Condition] = [(f"EXISTS ({_carries(ids)})", ()) for ids in tags.groups]
    return carried + ([(f"NOT EXISTS ({_carries(tags.excluded)})", ())] if tags.excluded else [])


def _carries(ids: str) -> str:
    """Return the query for a document's tags among some; with a plus, SQLite reads its tags, not each of the ids."""
    tag_id = "+tag_id" if ids.count(",") >= FEW else "tag_id"
    return f"SELECT 1 FROM document_tags WHERE document_id = documents.id AND {tag_id} IN ({ids})"


def _without_index(created: Iterable[Condition]) -> list[Condition]:
    """Return the conditions with a plus, so that SQLite reads a page in its order and uses no other index."""
    return [(f"+{sql}", parameters) for sql, parameters in created]


def _recent_conditions(where: Filter, sort: Sort) -> list[Condition]:
    """Return the bound of a list by date of change: no document changed before it was created."""
    if sort == "id" or where.created_after is None:
        return []
    return [(f"{RECENT} >= ?", (stored(where.created_after),))]
