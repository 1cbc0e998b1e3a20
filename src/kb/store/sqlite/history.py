"""Former versions of documents and the bin, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kb.store.row_mapping import Execute, binned_of, field_values, iso, mapped, moment, raw, version_of
from kb.store.rows import NOBODY, HistoryCounts
from kb.store.sql.operations import note_operation
from kb.store.sql.replacements import pass_on
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    import apsw

    from kb.store.rows import Author, Binned, Chunk, Content, Retention, Version
    from kb.store.sqlite.documents import SqliteDocuments

WAS_THERE: Final = """
doc_type <> 'note' AND (bin.document_id, bin.number) IN (
  SELECT document_id, number FROM versions WHERE doc_type <> 'note' AND source_path = ?
  UNION SELECT document_id, number FROM versions WHERE doc_type <> 'note' AND content_hash = ?
)
"""
"""That a file in the bin was at a path, or held a content."""

MOST_ALIKE: Final = 50
"""Of the files in the bin that held a content so many are looked at."""


class SqliteHistory:
    """See `kb.store.protocol.History`."""

    def __init__(self, connection: apsw.Connection, documents: SqliteDocuments, retention: Retention) -> None:
        self._execute: Execute = connection.execute
        self._documents = documents
        self._retention = retention
        self._sql = statements("history")

    @property
    def has_bin(self) -> bool:
        """Whether what is deleted can be restored."""
        return bool(self._retention.bin_days)

    def keep(self, document_id: int, author: Author) -> None:
        """Keep the document as it stands, before the author changes it in this transaction."""
        note_operation(self._execute, statements("operations"), author, self._documents.now)
        if self._retention.history_days:
            self._execute(self._sql["insert_version"], {"id": document_id, "now": self._documents.now})
        else:
            self._begin_later(self._documents.now)
        columns = field_values(author) | {"id": document_id, "now": self._documents.now}
        self._execute(self._sql["begin_version"], columns)

    def unlink(self, document_id: int, author: Author) -> None:
        """Let what replaces a document replace what that does: the document is to stand behind it."""
        for (later,) in self._execute("SELECT id FROM documents WHERE replaces = ?", (document_id,)).fetchall():
            self.keep(later, author)
        pass_on(self._execute, statements("replacements"), document_id, for_good=False)

    def versions(self, document_id: int, *, limit: int, before: int | None = None) -> list[Version]:
        """Return the versions of a document, newest first, also of one in the bin."""
        before = before or (1 << 62)
        current = self._current("id = ? AND version < ?", document_id, before)
        former = self._former("document_id = ? AND number < ? ORDER BY number DESC LIMIT ?", document_id, before, limit)
        return (current + former)[:limit]

    def version(self, document_id: int, number: int) -> Version | None:
        """Return a version of a document, if it is kept."""
        found = self._current("id = ? AND version = ?", document_id, number)
        return next(iter(found or self._former("document_id = ? AND number = ?", document_id, number)), None)

    def author(self, document_id: int) -> Author:
        """Return who made a document what it is."""
        return next((version.author for version in self._current("id = ?", document_id)), NOBODY)

    def chunks(self, version: Version) -> list[Chunk]:
        """Return the chunks of a version."""
        if version.content_id is None:
            return self._documents.chunks(version.document.id)
        return self._documents.former.chunks(version.content_id)

    def changed_since(self, instant: datetime) -> list[int]:
        """Return the documents that were added, changed or deleted after a moment, by ascending id."""
        rows = self._execute(self._sql["select_changed"], {"moment": moment(instant)})
        return sorted(document_id for (document_id,) in rows)

    def begins(self) -> str | None:
        """Return from when on every former version is kept; None if that is so for all times."""
        begins, _ = self._execute(self._sql["select_history"]).fetchone()
        stamp: str | None = iso(begins)
        return stamp

    def discard(self, document_id: int, author: Author) -> None:
        """Move a document to the bin, with those that came inside it; delete it if there is no bin."""
        if not self._retention.bin_days:
            return self._documents.delete(document_id)
        note_operation(self._execute, statements("operations"), author, self._documents.now)
        for part, _ in self._documents.parts(document_id):
            self.discard(part, author)
        self._execute(self._sql["insert_version"], {"id": document_id, "now": self._documents.now})
        columns = field_values(author) | {"id": document_id, "now": self._documents.now}
        self._execute(self._sql["insert_binned"], columns)
        self._documents.remove(document_id)
        return None

    def discard_parts(self, document_id: int, *, keep: Collection[str | None], author: Author) -> None:
        """Move the documents that came inside this one to the bin, but those at the paths to `keep`."""
        for part, path in self._documents.parts(document_id):
            if path not in keep:
                self.discard(part, author)

    def binned(self, document_id: int) -> Binned | None:
        """Return a document that is in the bin."""
        return next(iter(self._binned("bin.document_id = ?", document_id)), None)

    def in_bin(self, source_path: str, content_hash: str) -> list[Binned]:
        """Return the files in the bin that were at a path or held a content, the last deleted first."""
        order = "ORDER BY deleted_at DESC, bin.document_id DESC LIMIT ?"
        return self._binned(f"{WAS_THERE} {order}", source_path, content_hash, MOST_ALIKE)

    def bin(self, *, limit: int, before: tuple[str, int] | None = None) -> list[Binned]:
        """Return what is in the bin, the last deleted first."""
        condition = "(deleted_at, bin.document_id) < (?, ?)" if before else "TRUE"
        order = "ORDER BY deleted_at DESC, bin.document_id DESC LIMIT ?"
        place = (raw(before[0]), before[1]) if before else ()
        return self._binned(f"{condition} {order}", *place, limit)

    def parts_in_bin(self, document_id: int) -> list[int]:
        """Return the documents in the bin that came inside this one."""
        return [part for (part,) in self._execute(self._sql["select_binned_parts"], (document_id,)).fetchall()]

    def restore(self, document_id: int, content: Content, author: Author) -> None:
        """Bring a document back from the bin, with the content that it had."""
        note_operation(self._execute, statements("operations"), author, self._documents.now)
        [binned] = self._binned("bin.document_id = ?", document_id)
        columns = field_values(author) | {"id": document_id, "now": self._documents.now}
        columns |= {"replaces": content.replaces, "language": content.language}
        self._execute(self._sql["restore_document"], columns)
        self._execute(self._sql["delete_binned"], (document_id,))
        self._documents.add_chunks(document_id, content)
        self._documents.add_tags(document_id, binned.document.tags)

    def expire(self, limit: int) -> int:
        """Delete at most so many documents of the bin, and former versions, whose time has come; return how many."""
        binned = self._execute(self._sql["select_expired_bin"], (f"-{self._retention.bin_days} days", limit)).fetchall()
        for document_id, deleted_at in binned:
            self._documents.delete(document_id)
            self._begin_later(deleted_at)
        versions = self._execute(
            self._sql["select_oldest"], (f"-{self._retention.history_days} days", limit)
        ).fetchall()
        for (version_id,) in versions:
            self._drop_version(version_id)
        return len(binned) + len(versions) + self._shrink(limit)

    def counts(self) -> HistoryCounts:
        """Return how much is kept."""
        begins, size = self._execute(self._sql["select_history"]).fetchone()
        versions, binned = self._execute(self._sql["count_history"]).fetchone()
        return HistoryCounts(versions, size, iso(begins), binned)

    def _shrink(self, limit: int) -> int:
        """Delete the oldest former versions while all but those in the bin take more than they may; return how many."""
        most = self._retention.history_size
        if self._size() <= most:
            return 0
        most += self._execute(self._sql["select_bin_size"]).get
        dropped = 0
        for (version_id,) in self._execute(self._sql["select_oldest"], ("+0 days", limit)).fetchall():
            if self._size() <= most:
                break
            self._drop_version(version_id)
            dropped += 1
        return dropped

    def _size(self) -> int:
        _, size = self._execute(self._sql["select_history"]).fetchone()
        return int(size)

    def _drop_version(self, version_id: int) -> None:
        until, content_id, *file = self._execute(self._sql["delete_version"], (version_id,)).fetchone()
        self._execute(self._sql["delete_unused_content"], {"id": content_id})
        self._begin_later(until)
        self._documents.drop_file(*file)

    def _begin_later(self, stamp: str) -> None:
        self._execute(self._sql["begin_later"], (stamp,))

    def _current(self, condition: str, *parameters: object) -> list[Version]:
        return mapped(version_of, self._execute(self._sql["select_current"].format(condition=condition), parameters))

    def _former(self, condition: str, *parameters: object) -> list[Version]:
        return mapped(version_of, self._execute(self._sql["select_versions"].format(condition=condition), parameters))

    def _binned(self, condition: str, *parameters: object) -> list[Binned]:
        return mapped(binned_of, self._execute(self._sql["select_bin"].format(condition=condition), parameters))
