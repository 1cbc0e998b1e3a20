"""Conversion of SQL values to rows, by the names of the columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.api.fields import Sort
from kb.api.rights import Limit
from kb.index.words.document_names import ORDERED
from kb.store.rows import (
    AuditLine,
    Author,
    Binned,
    Chunk,
    ChunkPlace,
    ChunkPosition,
    Document,
    Grant,
    Hit,
    Job,
    NamedKey,
    NoteFile,
    NotesFolderState,
    Operation,
    SyncedFolder,
    Version,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Execute = Callable[..., Any]
"""A connection's `execute`; APSW cannot know the types of a statement's columns."""

Row = TypeVar("Row")


def iso(stored: str | None) -> Any:  # noqa: ANN401 - None stays None, and only there
    """Return a stored time in ISO 8601."""
    return f"{stored.replace(' ', 'T')}Z" if stored else None


def raw(stamp: str) -> str:
    """Return a time in ISO 8601 in its stored form."""
    return stamp.replace("T", " ").removesuffix("Z")


def strings(array: str | list[str] | None) -> tuple[str, ...]:
    """Return an array of strings, which may be JSON or None, as a tuple."""
    if isinstance(array, str):
        return tuple(json.loads(array)) if array != "[]" else ()
    return tuple(array or ())


@dataclass(frozen=True, eq=False)
class Mapper(Generic[Row]):
    """A function of the values of these columns, in this order."""

    columns: tuple[str, ...]
    make: Callable[..., Row]


def mapped(mapper: Mapper[Row], cursor: apsw.Cursor) -> list[Row]:
    """Return the mapper's result for each row.

    Raises:
        TypeError: the columns or their order differ.
    """
    if (first := next(cursor, None)) is None:
        return []
    # A cursor describes its columns only while it has rows.
    _check(mapper, cursor.get_description())
    make = mapper.make
    return [make(*row) for row in chain((first,), cursor)]


@cache
def _check(mapper: Mapper[Any], columns: tuple[tuple[str, str], ...]) -> None:
    names = tuple(name for name, _ in columns)
    if names != mapper.columns:
        raise TypeError(f"The columns are {names} instead of {mapper.columns}.")


def mapper(cls: Callable[..., Row], **columns: str | Mapper[Any]) -> Mapper[Row]:
    """Return a mapper to a dataclass from columns with the names of its fields, keyword-only fields last.

    Args:
        cls: the dataclass.
        columns: for a field, the other name of its column, or the mapper that makes it from several columns.
    """
    names: list[str] = []
    conversions: list[tuple[int, Callable[[Any], Any]]] = []
    parts: list[tuple[slice, Callable[..., Any]]] = []
    declared = fields(cast("type[DataclassInstance]", cls))
    by_name = [field.name for field in declared if field.kw_only]
    for field in sorted(declared, key=lambda field: field.name in by_name):
        column = columns.get(field.name, field.name)
        if isinstance(column, Mapper):
            parts.insert(0, (slice(len(names), len(names) + len(column.columns)), column.make))  # from the end
            names += column.columns
        else:
            if convert := CONVERSIONS.get(field.name):
                conversions.append((len(names), convert))
            names.append(column)

    def make(*row: Any) -> Row:  # noqa: ANN401 - the values of any columns
        values = list(row)
        for index, convert in conversions:
            values[index] = convert(values[index])
        for where, part in parts:
            values[where] = [part(*values[where])]
        if not by_name:
            return cls(*values)
        last = len(values) - len(by_name)
        return cls(*values[:last], **dict(zip(by_name, values[last:], strict=True)))

    return Mapper(tuple(names), make)


def parse_limit(limits: str | None) -> Limit | None:
    if limits is None:
        return None
    fields_ = json.loads(limits)
    return Limit(tuple(fields_["tags"]), fields_["folder"])


def stored_limit(limit: Limit | None) -> str | None:
    """Return a limit in its stored form; equal limits yield equal texts."""
    return None if limit is None else json.dumps({"tags": limit.tags, "folder": limit.folder}, ensure_ascii=False)


CONVERSIONS: Final[Mapping[str, Callable[[Any], Any]]] = (
    dict.fromkeys(
        (
            "at",
            "until",
            "created_at",
            "updated_at",
            "deleted_at",
            "started_at",
            "finished_at",
            "used_at",
            "former_until",
        ),
        iso,
    )
    | dict.fromkeys(("tags", "own_tags", "heading"), strings)
    | dict.fromkeys(("title_given", "existed", "is_kept"), bool)
    | {"omitted": json.loads, "limit": parse_limit}
)
"""The conversions of column values by the name of the field; all other values stay the same."""

map_document = mapper(Document)
place_of = mapper(ChunkPosition)
map_chunk = mapper(Chunk, place=place_of)
map_chunk_place = mapper(ChunkPlace)
map_hit = mapper(Hit, place=place_of, author=Mapper(("changed_by", "changed_with"), Author))
map_job = mapper(Job, author=Mapper(("sent_by", "sent_with", "sent_why", "operation_key"), Author), limit="limits")
map_audit_line = mapper(AuditLine, by="by_key")
map_operation = mapper(Operation, by="by_key")
map_folder = mapper(SyncedFolder)
map_notes_folder = mapper(NotesFolderState)
map_note_file = mapper(NoteFile)
map_version = mapper(
    Version, document=map_document, author=Mapper(("changed_by", "changed_with", "changed_why"), Author)
)
map_binned = mapper(Binned, document=map_document, author=Mapper(("deleted_by", "deleted_with", "deleted_why"), Author))
map_key = mapper(NamedKey, right="may")
map_grant = Mapper(tuple(field.name for field in fields(Grant)), Grant)  # its times are stored in ISO 8601


def field_values(row: DataclassInstance) -> dict[str, Any]:
    """Return a row's fields by name, without the copies that `asdict` makes."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def next_ids(execute: Execute, take: str, count: int) -> range:
    """Return `count` ids above all ids ever used; the statement `take` reserves them."""
    last: int = execute(take, (count,)).get
    return range(last - count + 1, last + 1)


def stored(instant: datetime | None) -> str | None:
    """Return a time in its stored form, cut to the millisecond; a whole second has no zeros, as in kb 2."""
    if instant is None:
        return None
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds").removesuffix(".000")


def cursor_after(document: Document, sort: Sort = "recent") -> str:
    """Return the cursor of a list after a document: its id, and the time of its last change, otherwise its date added.

    In a list by date, the cursor has the day of the document instead, from A to Z the beginning of its title or path.
    """
    stamps = {"date": document.day, "title": document.title, "path": document.source_path or document.title}
    stamp = stamps[sort][:ORDERED] if sort in stamps else raw(document.changed)
    return f"{document.id}.{stamp.encode().hex()}"


def moment(instant: datetime) -> str:
    """Return a time in the form of the stamps of changes, which always has milliseconds."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")


def moment_or_first(stamp: str) -> str:
    """Return the time of a cursor in its stored form; an invalid time comes before all others."""
    try:
        return datetime.fromisoformat(stamp).replace(tzinfo=None).isoformat(" ", "milliseconds")
    except ValueError:
        return "-infinity"


def listed_ids(text: str | None) -> NDArray[np.int64]:
    """Return the ids from a comma-separated text, which is faster to read than one row for each."""
    return np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)


def array(values: Sequence[str] | Sequence[int]) -> str:
    """Return strings or numbers as a JSON array."""
    return json.dumps(values, ensure_ascii=False) if values else "[]"


def counts(omitted: Mapping[str, int] | None) -> str:
    """Return counts by kind as a JSON object."""
    return json.dumps(dict(omitted)) if omitted else "{}"
