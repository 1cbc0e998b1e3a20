"""The conditions of a filter on documents, in PostgreSQL's SQL."""

from collections.abc import Collection, Sequence
from typing import Final

from kb.api.fields import Sort
from kb.api.tag_tree import stem
from kb.index.words.document_names import FILE_MARK, ORDERED
from kb.store.postgres.full_text import FullText
from kb.store.row_mapping import Execute, moment_or_first
from kb.store.rows import Filter
from kb.store.sql.conditions import RECENT, Condition, Conditions, after_prefix, joined, like_pattern

CARRIES = "EXISTS (SELECT 1 FROM document_tags WHERE document_id = documents.id AND tag = ANY(%s))"
CARRIES_ANY = "ARRAY(SELECT tag FROM document_tags WHERE document_id = documents.id) && %s::text[]"

# The tags from the first to before the second of each pair, each found by one step in the index.
TAGS_BELOW = """
WITH RECURSIVE below AS (
  SELECT (SELECT min(tag) FROM document_tags WHERE tag >= first COLLATE "C" AND tag < beyond COLLATE "C") AS tag, beyond
  FROM unnest(%s::text[], %s::text[]) AS branch (first, beyond)
  UNION ALL
  SELECT (SELECT min(document_tags.tag) FROM document_tags WHERE tag > below.tag AND tag < beyond COLLATE "C"), beyond
  FROM below WHERE below.tag IS NOT NULL
)
SELECT tag FROM below WHERE tag IS NOT NULL
"""

MOST_JOINED: Final = 8
"""The most tags that get their own join: the planner's time grows with the cube of the joins."""


class PostgresConditions(Conditions):
    """See `kb.store.sql.conditions.Conditions`; the full-text index finds texts in documents."""

    mark = "%s"
    own_day = "own_day"
    in_order = f"lower(left({{}}, {ORDERED}))"
    recent_day = f"to_char({RECENT} AT TIME ZONE 'UTC', 'YYYY-MM-DD') COLLATE \"C\""
    stays_below = r"strpos('/' || replace(source_path, '\', '/') || '/', '/../') = 0"

    def __init__(self, execute: Execute, words: FullText) -> None:
        self._execute = execute
        self._words = words

    def page(self, where: Filter, sort: Sort, cursor: str | None) -> tuple[str, Condition]:
        after = [self.after(sort, cursor)] if cursor is not None else []
        condition, parameters = joined([self.admitted(where), *after])
        return "documents", (f"{condition} ORDER BY {self.order_by(sort)}", parameters)

    def after_change(self, sort: Sort, when: str, document_id: int) -> Condition:
        comparison = "<" if sort == "recent" else ">"
        return f"({RECENT}, id) {comparison} (%s::timestamptz, %s)", (moment_or_first(when), document_id)

    def on_tags(self, where: Filter) -> list[Condition]:
        find = list if where.tag_exact else self._branches
        groups = [find([tag]) for tag in where.tags]
        carried: list[Condition] = [(CARRIES, (group,)) for group in groups[:MOST_JOINED]]
        carried += [(CARRIES_ANY, (group,)) for group in groups[MOST_JOINED:]]
        carried += [(CARRIES, (find(where.tag_any),))] if where.tag_any else []
        carried += [(CARRIES, (self._branches(where.limit.tags),))] if where.limit and where.limit.tags else []
        return carried + ([(f"NOT {CARRIES}", (find(where.tag_not),))] if where.tag_not else [])

    def _branches(self, branches: Collection[str]) -> list[str]:
        """Return these tags and the tags below them: as values, because PostgreSQL plans by how common each one is."""
        stems = [*map(stem, branches)]
        below = self._execute(TAGS_BELOW, ([f"{each}/" for each in stems], [f"{each}0" for each in stems]))
        return [*{*branches, *stems, *(tag for (tag,) in below)}]

    def under(self, prefix: str) -> list[Condition]:
        end = after_prefix(prefix)
        beginning: list[Condition] = [("source_path >= %s", (prefix,))]
        return beginning + ([("source_path < %s", (end,))] if end is not None else [])

    def with_part(self, part: str) -> Condition:
        return "strpos(lower(source_path), %s) > 0", (part.encode().lower().decode(),)

    def called(self, pattern: str) -> Condition:
        names = "SELECT document_id FROM names WHERE token LIKE %s"
        return f"id IN ({names})", (like_pattern(f"{FILE_MARK}{pattern}"),)

    def beginning_id(self, digits: str) -> Condition:
        return "starts_with(id::text, %s)", (digits,)

    def one_of(self, ids: Sequence[int]) -> Condition:
        return "id = ANY(%s)", (list(ids),)

    def holding(self, text: str) -> Condition:
        return "id = ANY(%s)", (self._words.documents_with(text),)
