"""The conditions of a filter on documents, in SQL."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from kb.api.document_day import own_day
from kb.api.fields import Sort
from kb.api.file_types import KINDS
from kb.index.words.document_names import folded
from kb.store.row_mapping import stored
from kb.store.rows import Filter

Condition = tuple[str, tuple[object, ...]]
"""A condition on a document in SQL, and its parameters."""

EVERY_DOCUMENT: Final[Condition] = ("TRUE", ())

RECENT: Final = "COALESCE(updated_at, created_at)"

LIKE_ESCAPED: Final = str.maketrans({character: f"\\{character}" for character in r"\%_"})

ALPHABETIC: Final = {"title": "title", "path": "COALESCE(source_path, title)"}
"""The columns of the lists from A to Z."""

SURROGATES: Final = range(0xD800, 0xE000)
AFTER_SURROGATES: Final = 0xE000


class Conditions(ABC):
    """A store's conditions on documents. `mark` is the placeholder for a parameter in its SQL."""

    mark: ClassVar[str]
    own_day: ClassVar[str]
    """The day of the document date."""

    recent_day: ClassVar[str]
    """The day of the last change."""

    stays_below: ClassVar[str]
    """The condition that a path contains no `..`, as in `kb.api.rights`."""

    beside: ClassVar[str] = ""
    """The prefix of a column with few distinct values, to keep the database from using its index."""

    in_order: ClassVar[str]
    """A text's place from A to Z, from its first `ORDERED` characters."""

    @property
    def dated(self) -> str:
        """The day of a document, by which a list by date is in order."""
        return f"COALESCE({self.own_day}, {self.recent_day})"

    def order_by(self, sort: Sort, key: str = "id") -> str:
        """Return the ORDER BY expression of a list; `key` is the expression for the order by id."""
        orders = {"recent": f"{RECENT} DESC, id DESC", "oldest": f"{RECENT}, id", "date": f"{self.dated} DESC, id DESC"}
        return orders.get(sort) or (f"{self.in_order.format(ALPHABETIC[sort])}, id" if sort in ALPHABETIC else key)

    def after(self, sort: Sort, cursor: str, key: str = "id") -> Condition:
        """Return the condition that a document comes after a cursor in a list."""
        id_, _, stamp = cursor.partition(".")
        document_id, mark = int(id_), self.mark
        if sort == "date":
            return f"({self.dated}, id) < ({mark}, {mark})", (day_in(stamp), document_id)
        if sort in ALPHABETIC:
            text, place = self.in_order.format(ALPHABETIC[sort]), self.in_order.format(mark)
            return f"({text}, id) > ({place}, {mark})", (stamp_in(stamp), document_id)
        return (
            self.after_change(sort, stamp_in(stamp), document_id)
            if sort != "id"
            else (f"{key} > {mark}", (document_id,))
        )

    @abstractmethod
    def after_change(self, sort: Sort, when: str, document_id: int) -> Condition:
        """Return the condition that a document comes after another one in a list by the time of change."""

    def admitted(self, where: Filter) -> Condition:
        """Return `where` as one condition on `documents`; `EVERY_DOCUMENT` if it admits all of them."""
        return joined([*self.on_tags(where), *self.exact(where), *self.on_creation(where), *self.on_texts(where)])

    def exact(self, where: Filter) -> list[Condition]:
        """Return the conditions on type, language, path, name and id, and on dates other than the date added."""
        kind = KINDS.get(where.doc_type or "", ())
        columns = (
            ("doc_type" if where.source_path is None else f"{self.beside}doc_type", None if kind else where.doc_type),
            (f"{self.beside}language", where.lang),
            ("source_path", where.source_path),
            ("id", where.document_id),
        )
        conditions: list[Condition] = [
            (f"{column} = {self.mark}", (value,)) for column, value in columns if value is not None
        ]
        if where.source_prefix is not None:
            conditions += self.under(where.source_prefix)
        conditions += map(self.with_part, where.source_parts)
        conditions += [(f"({sql}) IS NOT TRUE", part) for sql, part in map(self.with_part, where.source_parts_not)]
        conditions += map(self.written_by, filter(None, (where.by, *where.authors)))
        conditions += [(f"{sql} IS NOT TRUE", names) for sql, names in map(self.written_by, where.authors_not)]
        for test, types in (("IN", kind), ("IN", where.doc_types), ("NOT IN", where.doc_types_not)):
            if types:
                conditions.append((f"doc_type {test} ({', '.join([self.mark] * len(types))})", types))
        if where.name is not None:
            conditions.append(self.called(where.name))
        if where.id_prefix is not None:
            conditions.append(self.beginning_id(where.id_prefix))
        if where.among is not None:
            conditions.append(self.one_of(where.among))
        if where.limit and where.limit.folder is not None:
            conditions += [*self.under(where.limit.folder), (self.stays_below, ())]
        return conditions + self.on_dates(where)

    def written_by(self, name: str) -> Condition:
        """Return the condition that a key or program of this name made the last change, or is the source of a note."""
        typed = f"LOWER(CAST({self.mark} AS text))"
        names = f"{typed} IN (LOWER(changed_by), LOWER(source))"
        program = f"LOWER(changed_with) LIKE {typed} ESCAPE '\\'"
        return f"({names} OR {program})", (name, f"% {name.translate(LIKE_ESCAPED)} %")

    def on_dates(self, where: Filter) -> list[Condition]:
        conditions: list[Condition] = []
        if where.updated_after is not None:
            conditions.append((f"{RECENT} >= {self.mark}", (stored(where.updated_after),)))
        for bound, comparison in ((where.after, ">="), (where.before, "<")):
            if bound is not None:
                sql = f"COALESCE({self.own_day} {comparison} {self.mark}, {RECENT} {comparison} {self.mark})"
                day, moment = f"{bound:%Y-%m-%d}", stored(bound)
                if comparison == ">=" and where.before is None:  # a note with an old date can say something new
                    later = f"doc_type = 'note' AND updated_at >= {self.mark}"
                    conditions.append((f"({sql} OR ({later}))", (day, moment, moment)))
                else:
                    conditions.append((sql, (day, moment)))
        return conditions

    def on_creation(self, where: Filter) -> list[Condition]:
        """Return the conditions on the date added."""
        bounds = ((">=", where.created_after), ("<", where.created_before))
        return [(f"created_at {sign} {self.mark}", (stored(moment),)) for sign, moment in bounds if moment is not None]

    def on_texts(self, where: Filter) -> list[Condition]:
        lacking = [self.holding(text) for text in where.lacking]
        return [*map(self.holding, where.holding), *((f"NOT {sql}", parameters) for sql, parameters in lacking)]

    @abstractmethod
    def page(self, where: Filter, sort: Sort, cursor: str | None) -> tuple[str, Condition]:
        """Return the source of a page for FROM, and its condition and order for WHERE."""

    @abstractmethod
    def on_tags(self, where: Filter) -> list[Condition]:
        """Return the conditions on tags."""

    @abstractmethod
    def under(self, prefix: str) -> list[Condition]:
        """Return the conditions that a path begins with `prefix`."""

    @abstractmethod
    def with_part(self, part: str) -> Condition:
        """Return the condition that a path contains a text; ASCII case is ignored."""

    @abstractmethod
    def called(self, pattern: str) -> Condition:
        """Return the condition that a name of a document, as `folded_names` returns them, matches a pattern."""

    @abstractmethod
    def beginning_id(self, digits: str) -> Condition:
        """Return the condition that an id begins with these digits."""

    @abstractmethod
    def one_of(self, ids: Sequence[int]) -> Condition:
        """Return the condition that an id is one of these."""

    @abstractmethod
    def holding(self, text: str) -> Condition:
        """Return the condition for documents that contain a text."""


def after_prefix(prefix: str) -> str | None:
    """Return the first text after all texts with this prefix; None if no text comes after them."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(AFTER_SURROGATES if following in SURROGATES else following)


def like_pattern(pattern: str) -> str:
    """Return a pattern of names, with `*` and `?`, as a pattern for LIKE."""
    return folded(pattern).translate(LIKE_ESCAPED).replace("*", "%").replace("?", "_")


def joined(conditions: Iterable[Condition]) -> Condition:
    sql, parameters = list[str](), list[object]()
    for condition, values in conditions:
        if condition != EVERY_DOCUMENT[0]:
            sql.append(condition)
            parameters += values
    return " AND ".join(sql) or EVERY_DOCUMENT[0], tuple(parameters)


def among(condition: Condition) -> Condition:
    """Return the WHERE clause that limits rows with a `document_id` to a condition's documents; empty for all."""
    if condition == EVERY_DOCUMENT:
        return "", ()
    documents = f"SELECT id FROM documents WHERE {condition[0]}"  # noqa: S608 - its values are parameters
    return f"WHERE document_id IN ({documents})", condition[1]


def stamp_in(cursor: str) -> str:
    """Return what follows the id in a cursor."""
    return bytes.fromhex(cursor).decode(errors="replace").replace("\0", "")


def day_in(cursor: str) -> str:
    """Return the day in a cursor; a day before all others if it contains none."""
    return own_day(stamp_in(cursor)) or ""
