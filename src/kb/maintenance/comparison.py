"""Two databases that should hold the same, read as the engine reads them and compared document by document."""

from __future__ import annotations

import zlib
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kb.store.rows import Filter
from kb.store.transfer import AUDIT, JOBS, MOMENTS, NEVER_LOWER, OPERATIONS, Origin, Row, State, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kb.store.protocol import Selection, Transaction

BATCH: Final = 500
"""How many documents are looked at together."""

ROWS: Final = 50
"""How many jobs, which may have long texts, or audit lines."""

ALL: Final = (1 << 31) - 1
"""More versions than a document has."""

UNREADABLE: Final = (ValueError, TypeError, LookupError, zlib.error)
"""What reading a damaged row raises."""

NAMES: Final = {"jobs": "job", "operations": "operation", "audit": "audit line"}


def differences(one: Origin, other: Origin, on_documents: Callable[[int], None]) -> Iterator[str]:
    """Yield what differs, a line for each document and each fact, and tell how many documents are compared."""
    if one.space != other.space:
        yield f"vectors: of {one.space}, and of {other.space}"
        return
    first, second = _Reader(one), _Reader(other)
    after = done = 0
    while ids := sorted({*one.ids(after, BATCH), *other.ids(after, BATCH)})[:BATCH]:
        states, copies = one.states(after, ids[-1]), other.states(after, ids[-1])
        for id_ in ids:
            yield from _compare(f"document {id_}", first.document(id_, states), second.document(id_, copies))
        on_documents(done := done + len(ids))
        after = ids[-1]
    for table in (JOBS, OPERATIONS, AUDIT):
        for key, row, copy in _rows(one, other, table):
            yield from _compare(f"{NAMES[table.name]} {key}", row, copy)
    yield from _compare("database", first.facts(), second.facts())
    for name, last in one.facts().last_ids.items():
        if name in NEVER_LOWER and other.facts().last_ids[name] < last:
            yield f"database: the last id of {name} is lower"


def _rows(one: Origin, other: Origin, table: Table) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Yield each key with both rows, by the names of their columns; none where there is no row."""
    after = 0
    while keys := sorted({*one.keys(table, after, ROWS), *other.keys(table, after, ROWS)})[:ROWS]:
        rows, copies = one.rows(table, after, keys[-1]), other.rows(table, after, keys[-1])
        for key in keys:
            yield key, _named(table, rows.get(key)), _named(table, copies.get(key))
        after = keys[-1]


def _named(table: Table, row: Row | None) -> dict[str, Any]:
    return dict(zip(table.columns, row, strict=True)) if row else {}


class _Reader:
    """Reads a database's moment through what the engine asks of a store."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._tx: Transaction = origin.tx
        self._selection: Selection = self._tx.index.select(Filter())

    def document(self, document_id: int, states: Mapping[int, State]) -> dict[str, Any]:
        """Return all that is known of a document, by what it is."""
        documents, history = self._tx.documents, self._tx.history
        try:
            versions = history.versions(document_id, limit=ALL)
            chunks = documents.chunks(document_id)
            ids = np.array([chunk.id for chunk in chunks], np.int64)
            return {
                "rows": states.get(document_id),
                "fields": plain(documents.get(document_id)),
                "the document that it came inside": documents.part_of(document_id),
                "chunks": chunks,
                "vectors": self._selection.vectors(ids).tobytes(),
                "versions": plain(versions),
                "former chunks": [history.chunks(version) for version in versions if version.content_id is not None],
                "former vectors": self._origin.former(document_id) if len(versions) > 1 or not chunks else [],
                "what the bin says": plain(history.binned(document_id)),
            }
        except UNREADABLE as error:
            return {"what can be read": str(error)}

    def facts(self) -> dict[str, Any]:
        """Return what stands for itself."""
        counts = self._tx.counts()
        return {
            "tags": self._tx.documents.tags(),
            "the number of documents": counts.documents,
            "the number of chunks": counts.chunks,
            "history": plain(self._tx.history.counts()),
            "files": self._tx.documents.file_hashes(),
            "synced folders": plain(self._tx.folders.all()),
            "files that stay out": self._tx.folders.left_out(),
            "staged files": self._tx.jobs.staged(),
        }


def plain(row: Any) -> Any:  # noqa: ANN401 - a row of any kind
    """Return the fields of a row by name, moments to the millisecond: old ones were written to the second."""
    if isinstance(row, list):
        return [plain(each) for each in row]
    if not is_dataclass(row):
        return row
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    moments = {name: _exact(values[name]) for name in MOMENTS | {"begins"} if values.get(name)}
    return {name: plain(value) for name, value in (values | moments).items()}


def _exact(moment: str) -> str:
    return moment if "." in moment else moment.replace("Z", ".000Z")


def _compare(what: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    if differing := [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]:
        yield f"{what}: {', '.join(sorted(differing))}"
