"""The filters of a request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from kb.store.rows import Filter


class Filters(Protocol):
    """What lists and searches share; the tags that must all match have different names there."""

    tag_any: list[str]
    tag_not: list[str]
    doc_type: str | None
    lang: str | None
    source_path: str | None
    source_prefix: str | None
    name: str | None
    created_after: datetime | None
    created_before: datetime | None
    updated_after: datetime | None
    after: datetime | None
    before: datetime | None


def filter_of(tags: Sequence[str], request: Filters) -> Filter:
    """Return a request's filters, as the store takes them."""
    return Filter(
        tags=tuple(tags),
        tag_any=tuple(request.tag_any),
        tag_not=tuple(request.tag_not),
        doc_type=request.doc_type,
        language=request.lang,
        source_path=request.source_path,
        source_prefix=request.source_prefix,
        name=request.name,
        created_after=request.created_after,
        created_before=request.created_before,
        updated_after=request.updated_after,
        after=request.after,
        before=request.before,
    )
