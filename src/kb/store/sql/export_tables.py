"""The rows of a database in the form of an export, and their import into an empty database."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import StoreError
from kb.store.row_mapping import Execute, iso, raw
from kb.store.rows import OPTIONAL_FIELDS

Line = dict[str, Any]
"""A row in the form of an export: its values by name."""

ARRAYS: Final = {"tags", "own_tags"}
FLAGS: Final = {"title_given", "existed"}
OBJECTS: Final = {"omitted", "limits"}
"""The columns that hold JSON."""

MOMENTS: Final = {
    "created_at", "updated_at", "until", "deleted_at", "started_at", "heartbeat_at", "finished_at", "at",
}  # fmt: skip
MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?")
AT_ONCE: Final = 200
"""The number of rows per read; a job may have a long text."""

UNFINISHED: Final = (
    "An import into this database was interrupted. Run 'kb import' with the same folder again, or start with an empty"
    " database."
)
REMEDY: Final = "If the database is a file, run 'kb doctor --repair'. If that does not help, restore a backup."


@dataclass(frozen=True)
class Table:
    """A table whose rows are exported in the order of their keys.

    Args:
        columns: the columns that every database has.
        names: the names of columns in an export, if they differ.
        keys: the number of leading columns that identify a row, 1 or 2.
    """

    name: str
    columns: tuple[str, ...]
    names: Mapping[str, str]
    keys: int = 1

    @cached_property
    def fields(self) -> dict[str, str]:
        """The name of each column in an export."""
        return {column: self.names.get(column, column) for column in self.columns}

    def line(self, row: Mapping[str, Any]) -> Line:
        """Return a row in the form of an export.

        Raises:
            StoreError: a column cannot be read.
        """
        line: Line = {}
        for column, name in self.fields.items():
            try:
                line[name] = _exported(column, row[column])
            except (ValueError, TypeError) as error:
                where = " ".join(str(row[key]) for key in self.columns[: self.keys])
                raise StoreError(f"{self.name}, {where}: kb cannot read {column} ({error}). {REMEDY}") from error
        return line


AUTHOR: Final = {"changed_by": "by", "changed_with": "client", "changed_why": "why", "uploaded_as": "filename"}
STATE: Final = (
    "title", "source_path", "doc_type", "content_hash", "created_at", "updated_at", "date", "own_tags", "part_of",
    "uploaded_as", "title_given", "changed_by", "changed_with", "changed_why", *OPTIONAL_FIELDS, "replaces", "omitted",
    "operation", "language",
)  # fmt: skip
"""The columns shared by documents and earlier versions."""

DOCUMENTS: Final = Table("documents", ("id", "version", *STATE), AUTHOR)
VERSIONS: Final = Table(
    "versions",
    ("document_id", "number", "until", "tags", "content_id", *STATE),
    AUTHOR | {"document_id": "id", "number": "version"},
    keys=2,
)
BIN: Final = Table(
    "bin",
    ("document_id", "number", "part_of", "deleted_at", "deleted_by", "deleted_with", "deleted_why", "operation"),
    {
        "document_id": "id",
        "number": "version",
        "deleted_at": "at",
        "deleted_by": "by",
        "deleted_with": "client",
        "deleted_why": "why",
    },
)
OPERATIONS: Final = Table("operations", ("id", "key", "at", "by_key", "client"), {})
FOLDERS: Final = Table("folders", ("prefix", "machine", "host", "path", "mounts", "at", "watch"), {})
LEFT_OUT: Final = Table("left_out", ("source_path",), {})
AUDIT: Final = Table("audit", ("id", "at", "by_key", "client", "action", "document_id", "job_id", "key"), {})
JOBS: Final = Table(
    "jobs",
    (
        "id", "status", "kind", "title", "filename", "source_path", "tags", "text", "staged", "content_hash",
        "progress", "attempts", "idempotency_key", "request_hash", "part_of", "document_id", "error", "created_at",
        "started_at", "heartbeat_at", "finished_at", "depth", "sent_by", "sent_with", "sent_why", "limits",
        *OPTIONAL_FIELDS, "replaces", "existed", "omitted", "operation_key",
    ),
    {},
)  # fmt: skip
PRECISIONS: Final = Table("vector_precisions", ("precision", "vectors"), {})


class Transfer(ABC):
    """The rows of a transaction.

    Args:
        execute: the connection's.
        sql: the statements.
        placeholder: the mark for a value in the statements.
        refusals: the driver's errors for a row that breaks a rule of its table.
    """

    def __init__(
        self, execute: Execute, sql: Mapping[str, str], placeholder: str, refusals: tuple[type[Exception], ...]
    ) -> None:
        self.refusals = refusals
        self._execute = execute
        self._sql = sql
        self._placeholder = placeholder

    def rows(self, table: Table) -> Iterator[Line]:
        """Yield the rows of a table. Running jobs are exported as queued, because their engine is not exported."""
        first, second = table.columns[0], table.columns[table.keys - 1]
        names = {"table": table.name, "first": first, "second": second}
        sql = self._sql["select_rows"].format(columns=", ".join(table.columns), **names)
        after: Any = 0 if first in ("id", "document_id") else ""
        beginning = {"first": after, "second": after, "limit": AT_ONCE}
        while rows := self._execute(sql, beginning).fetchall():
            for values in rows:
                row = dict(zip(table.columns, values, strict=True))
                if row.get("status") == "running":
                    row["status"] = "queued"
                yield table.line(row)
            beginning |= {"first": row[first], "second": row[second]}

    def insert(self, table: Table, line: Mapping[str, Any]) -> None:
        row = self.stored({column: line[name] for column, name in table.fields.items()})
        places = ", ".join([self._placeholder] * len(row))
        sql = self._sql["insert_row"].format(table=table.name, columns=", ".join(row), places=places)
        self._execute(sql, tuple(row.values()))

    @contextmanager
    def translated_errors(self, what: str) -> Iterator[None]:
        """Report in one line a row that the database refuses.

        Raises:
            StoreError: the row breaks a rule of a table.
        """
        try:
            yield
        except self.refusals as error:
            raise StoreError(f"The database refused {what}: {str(error).splitlines()[0]}.") from error

    def clear(self, table: Table) -> None:
        """Remove all rows of a table."""
        self._execute(self._sql["delete_rows"].format(table=table.name))

    def stored(self, row: dict[str, Any]) -> dict[str, Any]:
        stored = {}
        for column, value in row.items():
            if value is not None and column in MOMENTS:
                value = raw(value)
            elif value is not None and column in OBJECTS:
                value = json.dumps(value, ensure_ascii=False)
            stored[column] = value
        return stored

    def last_ids(self) -> dict[str, int]:
        """Return the highest id of each kind that was ever used."""
        return {name: last or 0 for name, last in self._execute(self._sql["select_last_ids"])}

    def given_ids(self) -> dict[str, int]:
        """Return the highest ids of documents, chunks and jobs that the database assigned, without imported ids."""
        return {name: last or 0 for name, last in self._execute(self._sql["select_given_ids"])}

    def set_last_ids(self, last_ids: Mapping[str, int]) -> None:
        """Never assign ids up to these again."""
        for name, last in last_ids.items():
            self._execute(self._sql["set_last_id"], {"name": name, "last": last})

    def begins(self) -> str | None:
        """Return the time since which the database has every earlier version."""
        return _exported("at", self._execute(self._sql["select_beginning"]).get)  # type: ignore[no-any-return]

    def set_beginning(self, begins: str | None) -> None:
        """Record the time since which the database has every earlier version."""
        self._execute(self._sql["set_beginning"], {"begins": begins and raw(begins)})

    def begin(self) -> None:
        """Prepare an empty database for many rows, and keep engines from opening it until `settle`."""
        self._execute(self._sql["mark_unfinished"])

    def settle(self) -> None:
        """Record that the import is complete."""
        self._execute(self._sql["unmark_unfinished"])

    def check_whole(self) -> None:
        """Check that no import was interrupted.

        Raises:
            StoreError: an import was interrupted.
        """
        if self._execute(self._sql["is_unfinished"]).get:
            raise StoreError(UNFINISHED)

    def finish(self) -> None:  # noqa: B027 - most have nothing to do
        """Do the work that `begin` postponed."""

    @abstractmethod
    def vectors(self, chunk_ids: Sequence[int]) -> NDArray[np.float32]:
        """Return the vectors of these chunks, in this order; zeros for one without a vector."""


def _exported(column: str, value: Any) -> Any:  # noqa: ANN401 - a column's
    if value is None:
        return None
    if column in ARRAYS:
        return list(json.loads(value) if isinstance(value, str) else value)
    if column in FLAGS:
        return bool(value)
    if column in OBJECTS:
        return json.loads(value)
    if column in MOMENTS:
        if not MOMENT.fullmatch(value):
            raise ValueError(f"not a time: {value!r}")
        return iso(value)
    return value
