"""From SQL's values to rows, each by the name of its column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from inspect import signature
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from kb.api.access import Limit
from kb.store.rows import (
    AuditLine,
    Author,
    Binned,
    Chunk,
    ChunkPlace,
    Document,
    Hit,
    Job,
    Operation,
    Place,
    SyncedFolder,
    Version,
)

if TYPE_CHECKING:
    import apsw
    from _typeshed import DataclassInstance

    from kb.api.models import JobStatus

Execute = Callable[..., Any]
"""A connection's `execute`; APSW cannot know the types of a statement's columns."""

Row = TypeVar("Row")


def iso(stored: str | None) -> Any:  # noqa: ANN401 - None stays None, and only there
    """Return a stored time in ISO 8601."""
    return f"{stored.replace(' ', 'T')}Z" if stored else None


def raw(stamp: str) -> str:
    """Return a time in ISO 8601 as it is stored."""
    return stamp.replace("T", " ").removesuffix("Z")


def strings(array: str | list[str] | None) -> tuple[str, ...]:
    """Return an array of strings, which may be JSON, or none."""
    if isinstance(array, str):
        return tuple(json.loads(array)) if array != "[]" else ()
    return tuple(array or ())


def mapped(make: Callable[..., Row], cursor: apsw.Cursor) -> list[Row]:
    """Return what `make` makes of each row; its parameters are the columns, by name and in order.

    Raises:
        TypeError: the columns are others, or stand in another order.
    """
    if (first := next(cursor, None)) is None:
        return []
    # A cursor describes its columns only while it has rows.
    _check(make, cursor.get_description())
    return [make(*row) for row in chain((first,), cursor)]


@cache
def _check(make: Callable[..., object], columns: tuple[tuple[str, str], ...]) -> None:
    names, parameters = [name for name, _ in columns], list(_parameters(make))
    if names != parameters:
        raise TypeError(f"{make.__name__} takes {parameters}, and the columns are {names}.")


def _parameters(make: Callable[..., object]) -> Iterator[str]:
    for name, parameter in signature(make).parameters.items():
        yield from signature(document_of).parameters if parameter.kind is parameter.VAR_POSITIONAL else (name,)


def document_of(
    id: int,
    title: str,
    source_path: str | None,
    doc_type: str,
    content_hash: str,
    tags: str,
    created_at: str,
    updated_at: str | None,
    date: str | None,
    own_tags: str,
    filename: str | None,
    title_given: int,
    source: str | None,
    replaces: int | None,
    omitted: str,
    language: str | None,
) -> Document:
    return Document(
        id=id,
        title=title,
        source_path=source_path,
        doc_type=doc_type,
        content_hash=content_hash,
        tags=strings(tags),
        created_at=iso(created_at),
        updated_at=iso(updated_at),
        date=date,
        own_tags=strings(own_tags),
        filename=filename,
        title_given=bool(title_given),
        source=source,
        replaces=replaces,
        omitted=json.loads(omitted),
        language=language,
    )


def chunk_of(
    id: int,
    index: int,
    header: str,
    text: str,
    line_start: int,
    line_end: int,
    char_start: int,
    char_end: int,
    heading: str,
    page: int | None,
) -> Chunk:
    return Chunk(id, index, header, text, Place(line_start, line_end, char_start, char_end, strings(heading), page))


def chunk_place_of(id: int, index: int, heading: str, page: int | None) -> ChunkPlace:
    return ChunkPlace(id, index, strings(heading), page)


def hit_of(
    chunk_id: int,
    index: int,
    document_id: int,
    title: str,
    source_path: str | None,
    doc_type: str,
    text: str,
    line_start: int,
    line_end: int,
    char_start: int,
    char_end: int,
    heading: str,
    page: int | None,
    tags: str,
    created_at: str,
    updated_at: str | None,
    date: str | None,
    source: str | None,
    language: str | None,
    changed_by: str | None,
    changed_with: str | None,
) -> Hit:
    return Hit(
        chunk_id=chunk_id,
        index=index,
        document_id=document_id,
        title=title,
        source_path=source_path,
        doc_type=doc_type,
        text=text,
        place=Place(line_start, line_end, char_start, char_end, strings(heading), page),
        tags=strings(tags),
        created_at=iso(created_at),
        updated_at=iso(updated_at),
        date=date,
        source=source,
        language=language,
        author=Author(changed_by, changed_with),
    )


def job_of(
    id: int,
    status: JobStatus,
    kind: Literal["note", "file"],
    title: str | None,
    filename: str | None,
    source_path: str | None,
    tags: str,
    progress: float,
    document_id: int | None,
    error: str | None,
    created_at: str,
    started_at: str | None,
    finished_at: str | None,
    attempts: int,
    text: str | None,
    staged: str | None,
    request_hash: str | None,
    content_hash: str | None,
    part_of: int | None,
    depth: int,
    sent_by: str | None,
    sent_with: str | None,
    sent_why: str | None,
    limits: str | None,
    source: str | None,
    replaces: int | None,
    existed: int,
    omitted: str,
    operation_key: str | None,
) -> Job:
    return Job(
        id=id,
        status=status,
        kind=kind,
        title=title,
        filename=filename,
        source_path=source_path,
        tags=strings(tags),
        progress=progress,
        document_id=document_id,
        error=error,
        created_at=iso(created_at),
        started_at=iso(started_at),
        finished_at=iso(finished_at),
        attempts=attempts,
        text=text,
        staged=staged,
        request_hash=request_hash,
        content_hash=content_hash,
        part_of=part_of,
        depth=depth,
        author=Author(sent_by, sent_with, sent_why, operation_key),
        limit=limit_of(limits),
        source=source,
        replaces=replaces,
        existed=bool(existed),
        omitted=json.loads(omitted),
    )


def limit_of(limits: str | None) -> Limit | None:
    """Return what is stored of a limit."""
    if limits is None:
        return None
    fields_ = json.loads(limits)
    return Limit(tuple(fields_["tags"]), fields_["folder"])


def stored_limit(limit: Limit | None) -> str | None:
    """Return a limit as it is stored, the same text for the same one."""
    return None if limit is None else json.dumps({"tags": limit.tags, "folder": limit.folder}, ensure_ascii=False)


def audit_line_of(
    id: int,
    at: str,
    by_key: str | None,
    client: str | None,
    action: str,
    document_id: int | None,
    job_id: int | None,
    key: str | None,
) -> AuditLine:
    return AuditLine(id, iso(at), by_key, client, action, document_id, job_id, key)


def version_of(
    number: int,
    until: str | None,
    changed_by: str | None,
    changed_with: str | None,
    changed_why: str | None,
    content_id: int | None,
    operation: int | None,
    *document: Any,  # noqa: ANN401 - the columns of `document_of`
) -> Version:
    state = document_of(*document)
    author = Author(changed_by, changed_with, changed_why)
    return Version(state, number, state.updated_at or state.created_at, iso(until), author, content_id, operation)


def binned_of(
    number: int,
    part_of: int | None,
    deleted_at: str,
    deleted_by: str | None,
    deleted_with: str | None,
    deleted_why: str | None,
    operation: int | None,
    *document: Any,  # noqa: ANN401 - the columns of `document_of`
) -> Binned:
    author = Author(deleted_by, deleted_with, deleted_why)
    return Binned(document_of(*document), number, part_of, iso(deleted_at), author, operation)


def operation_of(id: int, key: str, at: str, by_key: str | None, client: str | None) -> Operation:
    return Operation(id, key, iso(at), by_key, client)


def folder_of(prefix: str, machine: str, host: str, path: str, mounts: str, at: str) -> SyncedFolder:
    return SyncedFolder(prefix, machine, host, path, mounts, iso(at))


def field_values(row: DataclassInstance) -> dict[str, Any]:
    """Return a row's fields by name. `asdict` would copy what is in them."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def next_ids(execute: Execute, take: str, count: int) -> range:
    """Return so many ids above every one that was ever given, kept by the statement `take`."""
    last: int = execute(take, (count,)).get
    return range(last - count + 1, last + 1)


def stored(instant: datetime | None) -> str | None:
    """A moment as it is stored, cut to the millisecond; a whole second without its zeros, as version 2 has it too."""
    if instant is None:
        return None
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds").removesuffix(".000")


def cursor_after(document: Document) -> str:
    """Return a text from which a list goes on after a document: its id, and when it was changed, or else added."""
    stamp = raw(document.updated_at or document.created_at)
    return f"{document.id}.{stamp.encode().hex()}"


def moment(instant: datetime) -> str:
    """Return a moment as changes are stamped with it."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")


def moment_or_first(stamp: str) -> str:
    """Return a moment as it is stored, from a cursor; what no store has said comes before all."""
    try:
        return datetime.fromisoformat(stamp).replace(tzinfo=None).isoformat(" ", "milliseconds")
    except ValueError:
        return "-infinity"


def array(values: Sequence[str] | Sequence[int]) -> str:
    """Return strings or numbers as a JSON array."""
    return json.dumps(values, ensure_ascii=False) if values else "[]"


def counts(omitted: Mapping[str, int] | None) -> str:
    """Counts by kind as a JSON object."""
    return json.dumps(dict(omitted)) if omitted else "{}"
