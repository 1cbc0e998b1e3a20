"""Lists of documents as they stood at a former moment: those that stand so still, and former versions of the others."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from kb.api.own_day import own_day
from kb.store.sqlite.row_mapping import Execute, binned_of, document_of, mapped, moment, raw, stored, version_of
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kb.api.access import Limit
    from kb.api.models import Sort
    from kb.store.rows import Document, Filter, Version

STOOD = "until > ? AND COALESCE(updated_at, created_at) <= ?"
"""Which former versions stood at a moment, which is given twice."""


def former_versions(execute: Execute, instant: datetime) -> list[Version]:
    """Return the versions that stood at a moment and do not any more."""
    when = moment(instant)
    sql = statements("history")["select_versions"].format(condition=STOOD)
    return mapped(version_of, execute(sql, (when, when)))


def ids_within(execute: Execute, limit: Limit, ids: Collection[int]) -> set[int]:
    """Return which of these documents a limit admits as they are today, there or in the bin."""
    among = (json.dumps(sorted(ids)),)
    there = statements("documents")["select_documents"].format(
        source="documents", condition="id IN (SELECT value FROM json_each(?))"
    )
    gone = statements("history")["select_bin"].format(condition="bin.document_id IN (SELECT value FROM json_each(?))")
    documents = mapped(document_of, execute(there, among))
    documents += [binned.document for binned in mapped(binned_of, execute(gone, among))]
    return {each.id for each in documents if limit.admits(each.tags, each.source_path)}


def admits(where: Filter, document: Document) -> bool:
    """Return whether a document as it stood passes a filter."""
    tags, path, created = set(document.tags), document.source_path or "", datetime.fromisoformat(document.created_at)
    return (
        tags.issuperset(where.tags)
        and (not where.tag_any or not tags.isdisjoint(where.tag_any))
        and tags.isdisjoint(where.tag_not)
        and where.doc_type in (None, document.doc_type)
        and where.source_path in (None, document.source_path)
        and (where.source_prefix is None or path.startswith(where.source_prefix))
        and (where.source_part is None or where.source_part.encode().lower() in path.encode().lower())
        and (where.id_prefix is None or str(document.id).startswith(where.id_prefix))
        and (where.created_after is None or created >= _cut(where.created_after))
        and (where.created_before is None or created < _cut(where.created_before))
        and where.document_id in (None, document.id)
        and (where.among is None or document.id in where.among)
        and (where.limit is None or where.limit.admits(tags, document.source_path))
        and (where.updated_after is None or _changed_at(document) >= f"{stored(where.updated_after)}")
        and (where.after is None or not _is_before(document, where.after))
        and (where.before is None or _is_before(document, where.before))
    )


def _is_before(document: Document, bound: datetime) -> bool:
    """Return whether a document's own day, or else when it was changed or added, lies before a moment."""
    if day := own_day(document.date):
        return day < f"{bound:%Y-%m-%d}"
    return _changed_at(document) < f"{stored(bound)}"


def _changed_at(document: Document) -> str:
    return changed(document)[0]


def merged(
    current: Iterable[Document], former: Iterable[Document], sort: Sort, cursor: str | None, limit: int
) -> list[Document]:
    """Return a page of both: `current` comes after the cursor, `former` is looked through."""
    after = [document for document in former if cursor is None or _is_after(document, cursor, sort)]
    documents = [*current, *after]
    if sort == "id":
        return sorted(documents, key=lambda document: document.id)[:limit]
    return sorted(documents, key=changed, reverse=sort == "recent")[:limit]


def changed(document: Document) -> tuple[str, int]:
    """Return when a document was changed, or else added, as it is stored, and its id."""
    return raw(document.updated_at or document.created_at), document.id


def _is_after(document: Document, cursor: str, sort: Sort) -> bool:
    document_id, _, recent = cursor.partition(".")
    if sort == "id":
        return document.id > int(document_id)
    last = bytes.fromhex(recent).decode(errors="replace"), int(document_id)
    return changed(document) < last if sort == "recent" else changed(document) > last


def _cut(instant: datetime) -> datetime:
    """Return a moment to the millisecond, as SQL compares it."""
    return datetime.fromisoformat(f"{stored(instant)}Z")
