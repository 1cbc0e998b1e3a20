"""Requests and replies about earlier versions, the bin and undo."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kb.api.document_models import Document
from kb.api.fields import DocumentId, Instant, Reply, Request, Timestamp, VersionNumber


class Revert(Request):
    """The version to restore."""

    version: VersionNumber


TWO_SCOPES: dict[str, Any] = {
    "required": ["operation"],
    "properties": {"operation": {"type": "integer"}},
    "anyOf": [
        {"required": ["since"], "properties": {"since": {"type": "string"}}},
        {"required": ["key"], "properties": {"key": {"type": "string"}}},
    ],
}

MINE_ALONE: dict[str, Any] = {
    "required": ["mine"],
    "properties": {"mine": {"const": True}},
    "not": {"required": ["since"], "properties": {"since": {"type": "string"}}},
}


class UndoRequest(Request):
    """The operation to undo: the one with this number, or by default the caller's last one.

    `since` undoes the changes of all operations from a time on; with `key`, only the changes of this key. `key` without
    `since` undoes the last operation of this key. `operation` cannot be combined with either. `dry_run` only shows the
    changes. With `mine`, `since` undoes only the changes made by the same key and program as this request.
    """

    model_config = ConfigDict(json_schema_extra={"not": {"anyOf": [TWO_SCOPES, MINE_ALONE]}})

    operation: Annotated[DocumentId | None, Field(description="The number of an operation.")] = None
    since: Instant | None = None
    key: Annotated[str | None, Field(min_length=1, max_length=200, description="The name of a key.")] = None
    mine: bool = False
    dry_run: bool = False


class Version(Reply):
    """A version of a document, valid from `at` until `until`, which is null for the current version.

    `by` is the name of the key that made the change, `client` its program, and `why` the reason that it gave.
    """

    number: int
    at: Timestamp
    until: Timestamp | None
    by: str | None
    client: str | None
    why: str | None
    title: str
    source_path: str | None
    tags: list[str]
    content_hash: str


class VersionList(Reply):
    """A page of versions, newest first. `deleted_at` is the time of deletion if the document is in the bin."""

    document_id: int
    deleted_at: Timestamp | None
    versions: list[Version]
    next_cursor: str | None


class VersionText(Version):
    """A version with its text."""

    document_id: int
    text: str


class Change(Reply):
    """A piece of text in both versions (`equal`), or only in the later (`insert`) or the earlier one (`delete`)."""

    kind: Literal["equal", "insert", "delete"]
    text: str


class VersionDiff(Reply):
    """The differences between two versions of a document, word by word."""

    document_id: int
    start: int
    end: int
    changes: list[Change]


class DocumentDiff(Reply):
    """The differences between two documents, word by word."""

    start: int
    end: int
    changes: list[Change]


class BinnedDocument(Document):
    """A document in the bin, with the key, program and reason of its deletion. kb purges it at `expires_at`."""

    deleted_at: Timestamp
    by: str | None
    client: str | None
    why: str | None
    expires_at: Timestamp


class BinList(Reply):
    """A page of the bin, last deleted first. `next_cursor` is null on the last page."""

    documents: list[BinnedDocument]
    next_cursor: str | None


class UndoStep(Reply):
    """The step that undoes the changes of a document: it is deleted, restored, or gets the text or tags of `version`.

    `skipped` is the reason if the document stays unchanged.
    """

    document_id: int
    title: str
    action: Literal["delete", "restore", "revert", "retag"]
    version: int | None
    skipped: str | None


class Operation(Reply):
    """The changes of one command, request or sync: the numbers of documents added, changed and deleted.

    `added` includes the documents `restored` from the bin. `at` is its time, and `jobs` the number of its jobs that are
    queued or running. `tags_added` and `tags_removed` are the tags that it changed, if it changed the same tags of at
    most 20 documents, and nothing else.
    """

    number: int
    at: Timestamp
    by: str | None
    client: str | None
    added: int
    changed: int
    deleted: int
    restored: int
    jobs: int
    tags_added: list[str]
    tags_removed: list[str]


class OperationList(Reply):
    """A page of operations, newest first. `next_cursor` is null on the last page."""

    operations: list[Operation]
    next_cursor: str | None


class Undone(Reply):
    """The changes that were undone, or with `dry_run` would be: documents that were added, changed and deleted.

    `operation` is the operation that was undone, or null if the request set `since`. `jobs` is the number of unfinished
    jobs that were ended.
    """

    dry_run: bool
    operation: Operation | None
    added: int
    changed: int
    deleted: int
    jobs: int
    steps: list[UndoStep]
