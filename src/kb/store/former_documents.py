"""Documents as they stood at a former moment: whether a filter admits them, and their place in a list."""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from kb.api.own_day import own_day
from kb.lexical.names import folded, folded_name
from kb.store.row_mapping import raw, stored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kb.api.models import Sort
    from kb.store.rows import Document, Filter


def admits(where: Filter, document: Document) -> bool:
    """Return whether a document as it stood passes a filter."""
    tags, path, created = set(document.tags), document.source_path or "", datetime.fromisoformat(document.created_at)
    return (
        tags.issuperset(where.tags)
        and (not where.tag_any or not tags.isdisjoint(where.tag_any))
        and tags.isdisjoint(where.tag_not)
        and where.doc_type in (None, document.doc_type)
        and where.language in (None, document.language)
        and where.source_path in (None, document.source_path)
        and (where.source_prefix is None or path.startswith(where.source_prefix))
        and (where.source_part is None or where.source_part.encode().lower() in path.encode().lower())
        and (where.name is None or is_called(where.name, document))
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


def is_called(pattern: str, document: Document) -> bool:
    """Return whether a document's file, or the note, has a name of this pattern."""
    is_part = document.filename is not None and (document.source_path or "").endswith(f"#{document.filename}")
    name = folded_name(document.source_path, document.title, is_part)
    return fnmatchcase(name, folded(pattern).replace("[", "[[]"))


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
