"""From SQL's values to rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from kb.store.rows import Place

Execute = Callable[..., Any]
"""A connection's `execute`; APSW cannot know the types of a statement's columns."""

NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
"""The current time as it is stored: SQLite's own form, to the millisecond, in UTC."""

PLACE = "line_start, line_end, char_start, char_end, heading, page"
TAGS = (
    "(SELECT json_group_array(name ORDER BY name) FROM document_tags JOIN tags ON tags.id = tag_id"
    " WHERE document_id = documents.id)"
)


def next_ids(execute: Execute, table: str, count: int) -> range:
    """So many ids above every one that was ever given, kept for rows of `table`."""
    last: int = execute(
        f"UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM {table})) + ? WHERE name = ? RETURNING id",
        (count, table),
    ).get
    return range(last - count + 1, last + 1)


def iso(stored: str | None) -> Any:  # noqa: ANN401 - None stays None, and only there
    """A stored time in ISO 8601."""
    return f"{stored.replace(' ', 'T')}Z" if stored else None


def stored(instant: datetime | None) -> str | None:
    """A moment as it is stored, cut to the millisecond; a whole second without its zeros, as version 2 has it too."""
    if instant is None:
        return None
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds").removesuffix(".000")


def place(line_start: int, line_end: int, char_start: int, char_end: int, heading: str, page: int | None) -> Place:
    """The columns of `PLACE`."""
    return Place(line_start, line_end, char_start, char_end, tuple(json.loads(heading)), page)


def array(texts: Sequence[str]) -> str:
    """Strings as a JSON array."""
    return json.dumps(texts, ensure_ascii=False)


def strings(array: str) -> tuple[str, ...]:
    """A JSON array of strings, such as `TAGS`."""
    return tuple(json.loads(array))
