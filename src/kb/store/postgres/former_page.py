"""Documents that stood at a former moment and do not any more, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.store.postgres.statements import statements
from kb.store.row_mapping import Execute, binned_of, document_of, mapped, moment, version_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from kb.api.access import Limit
    from kb.store.rows import Version

STOOD = "until > %s AND COALESCE(updated_at, created_at) <= %s"
"""Which former versions stood at a moment, which is given twice."""


def former_versions(execute: Execute, instant: datetime) -> list[Version]:
    """Return the versions that stood at a moment and do not any more."""
    when = moment(instant)
    sql = statements("history")["select_versions"].format(condition=STOOD)
    return mapped(version_of, execute(sql, (when, when)))


def ids_within(execute: Execute, limit: Limit, ids: Collection[int]) -> set[int]:
    """Return which of these documents a limit admits as they are today, there or in the bin."""
    there = statements("documents")["select_documents"].format(condition="id = ANY(%s)")
    gone = statements("history")["select_bin"].format(condition="bin.document_id = ANY(%s)")
    documents = mapped(document_of, execute(there, (list(ids),)))
    documents += [binned.document for binned in mapped(binned_of, execute(gone, (list(ids),)))]
    return {each.id for each in documents if limit.admits(each.tags, each.source_path)}
