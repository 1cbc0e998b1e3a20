"""Files that a query names and that could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from kb.lexical.names import folded, folded_name
from kb.search.named import is_meant, sought
from kb.store.row_mapping import stored

if TYPE_CHECKING:
    from kb.search.query import Query
    from kb.store.protocol import Analyzer, Transaction
    from kb.store.rows import Filter, Job

MOST_FAILED = 50
"""Among how many files that could not be read, the last ones, those that a query names are looked for."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file of which no text could be read, and why."""

    job_id: int
    filename: str
    error: str


def unreadable(tx: Transaction, query: Query, analyzer: Analyzer) -> list[Unreadable]:
    """Return the files that a query names, within its filter, and that could not be read, the last ones first."""
    if not (query.units and (failed := tx.jobs.page(status="failed", limit=MOST_FAILED, before=None))):
        return []
    wanted, _ = sought(query.units, analyzer.indexed)
    return [
        Unreadable(job.id, job.filename, job.error or "")
        for job in failed
        if job.filename and is_meant(job.filename, wanted, analyzer.indexed) and admits(query.where, job)
    ]


def admits(where: Filter, job: Job) -> bool:
    """Return whether a search's filter would admit the document of a file. Its type and its language are not known."""
    tags, path, created = set(job.tags), job.source_path or "", datetime.fromisoformat(job.created_at)
    earliest = (where.created_after, where.updated_after, where.after)
    latest = (where.created_before, where.before)
    return (
        tags.issuperset(where.tags)
        and (not where.tag_any or not tags.isdisjoint(where.tag_any))
        and tags.isdisjoint(where.tag_not)
        and where.source_path in (None, job.source_path)
        and (where.source_prefix is None or path.startswith(where.source_prefix))
        and (where.name is None or _is_called(where.name, job))
        and where.document_id in (None, job.document_id)
        and all(created >= _to_millisecond(bound) for bound in earliest if bound)
        and all(created < _to_millisecond(bound) for bound in latest if bound)
    )


def _is_called(pattern: str, job: Job) -> bool:
    is_part = job.filename is not None and (job.source_path or "").endswith(f"#{job.filename}")
    name = folded_name(job.source_path, job.title or job.filename or "", is_part)
    return fnmatchcase(name, folded(pattern).replace("[", "[[]"))


def _to_millisecond(instant: datetime) -> datetime:
    """Return a moment cut to the millisecond, as SQL compares it."""
    return datetime.fromisoformat(f"{stored(instant)}Z")
