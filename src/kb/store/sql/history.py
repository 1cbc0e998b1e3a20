"""Earlier versions of documents and the bin, in SQL."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from kb import clock
from kb.store.row_mapping import (
    Execute,
    field_values,
    iso,
    map_binned,
    map_version,
    mapped,
    moment,
    moment_or_first,
    raw,
)
from kb.store.rows import Author, Binned, Chunk, Content, HistoryCounts, Retention, Version
from kb.store.sql.documents import Documents
from kb.store.sql.operations import note_operation
from kb.store.statements import Statements, condition

MOST_VERSIONS: Final = (1 << 31) - 1
"""The highest possible number of a version."""

MOST_ALIKE: Final = 50
"""The most files in the bin with the same content that kb examines."""


class History:
    """See `kb.store.protocol.History`."""

    def __init__(
        self,
        execute: Execute,
        statements: Statements,
        documents: Documents,
        retention: Retention,
    ) -> None:
        self._execute = execute
        self._statements = statements
        self._sql = statements("history")
        self._documents = documents
        self._retention = retention

    @property
    def has_bin(self) -> bool:
        return bool(self._retention.bin_days)

    def keep(self, document_id: int, author: Author) -> None:
        columns = self._noted(document_id, author)
        if self._retention.history_days:
            self._execute(self._sql["insert_version"], columns)
        else:
            self._begin_later(self._documents.now)
        self._execute(self._sql["begin_version"], columns)

    def unlink(self, document_id: int, author: Author) -> None:
        for (later,) in self._execute(self._sql["select_replacing"], {"id": document_id}).fetchall():
            self.keep(later, author)
        self._documents.pass_on(document_id, for_good=False)

    def versions(self, document_id: int, *, limit: int, before: int | None = None) -> list[Version]:
        parameters = {"id": document_id, "before": min(before or MOST_VERSIONS, MOST_VERSIONS), "limit": limit}
        return mapped(map_version, self._execute(self._sql["select_versions"], parameters))

    def chunks(self, version: Version) -> list[Chunk]:
        if version.content_id is None:
            return self._documents.chunks(version.document.id)
        return self._documents.former_chunks(version.content_id)

    def changed_since(self, instant: datetime) -> list[int]:
        rows = self._execute(self._sql["select_changed"], {"moment": moment(instant)})
        return sorted(document_id for (document_id,) in rows)

    def begins(self) -> str | None:
        begins, _ = self._execute(self._sql["select_history"]).fetchone()
        stamp: str | None = iso(begins)
        return stamp

    def discard(self, document_id: int, author: Author) -> None:
        if not self._retention.bin_days:
            return self._documents.delete(document_id)
        columns = self._noted(document_id, author)
        for part, _ in self._documents.parts(document_id):
            self.discard(part, author)
        self._execute(self._sql["insert_version"], columns)
        self._execute(self._sql["insert_binned"], columns)
        self._documents.remove(document_id)
        return None

    def discard_parts(self, document_id: int, *, keep: Collection[str | None], author: Author) -> None:
        for part, path in self._documents.parts(document_id):
            if path not in keep:
                self.discard(part, author)

    def binned(self, document_id: int) -> Binned | None:
        return next(iter(self._binned("where_document", limit=1, id=document_id)), None)

    def in_bin(self, source_path: str, content_hash: str) -> list[Binned]:
        return self._binned("where_file", limit=MOST_ALIKE, source_path=source_path, content_hash=content_hash)

    def bin(self, *, limit: int, before: tuple[str, int] | None = None) -> list[Binned]:
        if before is None:
            return self._binned(limit=limit)
        stamp, document_id = before
        return self._binned("where_before", limit=limit, deleted_at=moment_or_first(raw(stamp)), id=document_id)

    def parts_in_bin(self, document_id: int) -> list[int]:
        return [part for (part,) in self._execute(self._sql["select_binned_parts"], {"id": document_id}).fetchall()]

    def restore(self, document_id: int, content: Content, author: Author) -> None:
        columns = self._noted(document_id, author)
        [binned] = self._binned("where_document", limit=1, id=document_id)
        columns |= {"replaces": content.replaces, "language": content.language}
        self._execute(self._sql["restore_document"], columns)
        self._execute(self._sql["delete_binned"], {"id": document_id})
        self._documents.add_chunks(document_id, content)
        self._documents.add_tags(document_id, binned.document.tags)

    def expire(self, limit: int) -> int:
        binned = self._expired("select_expired_bin", self._retention.bin_days, limit)
        for document_id, deleted_at in binned:
            self._documents.delete(document_id)
            self._begin_later(deleted_at)
        versions = self._expired("select_oldest", self._retention.history_days, limit)
        for version in versions:
            self._drop_version(*version)
        return len(binned) + len(versions) + self._shrink(limit)

    def counts(self) -> HistoryCounts:
        begins, size = self._execute(self._sql["select_history"]).fetchone()
        versions, binned = self._execute(self._sql["count_history"]).fetchone()
        return HistoryCounts(versions, size, iso(begins), binned)

    def _noted(self, document_id: int, author: Author) -> dict[str, object]:
        """Record the operation of a change, and return the parameters of its statements."""
        note_operation(self._execute, self._statements("operations"), author, self._documents.now)
        return field_values(author) | {"id": document_id, "now": self._documents.now}

    def _shrink(self, limit: int) -> int:
        """Delete the oldest versions while the history, without the bin, is above its size limit; return the number."""
        most = self._retention.history_size
        if self._size() <= most:
            return 0
        most += self._execute(self._sql["select_bin_size"]).get
        dropped = 0
        for version in self._expired("select_oldest", 0, limit):
            if self._size() <= most:
                break
            self._drop_version(*version)
            dropped += 1
        return dropped

    def _expired(self, name: str, days: int, limit: int) -> list[tuple[int, Any]]:
        expiry = moment(clock.own.expiry())
        rows: list[tuple[int, Any]] = self._execute(
            self._sql[name], {"expiry": expiry, "days": days, "limit": limit}
        ).fetchall()
        return rows

    def _size(self) -> int:
        _, size = self._execute(self._sql["select_history"]).fetchone()
        return int(size)

    def _drop_version(self, document_id: int, number: int) -> None:
        version = {"id": document_id, "number": number}
        until, content_id, *file = self._execute(self._sql["delete_version"], version).fetchone()
        self._execute(self._sql["delete_unused_content"], {"id": content_id})
        self._begin_later(until)
        self._documents.drop_file(*file)

    def _begin_later(self, stamp: str) -> None:
        self._execute(self._sql["begin_later"], {"moment": stamp})

    def _binned(self, *names: str, limit: int, **parameters: object) -> list[Binned]:
        """Return the documents in the bin that meet the named conditions."""
        sql = self._sql["select_bin"].format(condition=condition(self._sql, names))
        return mapped(map_binned, self._execute(sql, parameters | {"limit": limit}))
