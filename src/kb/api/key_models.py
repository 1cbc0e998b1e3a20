"""Keys and the audit log on the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from kb.api.models import Like, Reply, Request, SourcePath, Tags, whole
from kb.api.rights import Right, folder_prefix

KeyName = Annotated[
    str,
    Field(min_length=1, max_length=50),
    Like(r"^[a-z0-9][a-z0-9_-]*$", "a name holds small letters, digits, - and _, and begins with a letter or digit"),
]
Folder = Annotated[SourcePath, AfterValidator(folder_prefix)]


class KeyRequest(Request):
    """A key to be made. With `tags` it is limited to documents with one of them, with `path` to those under it."""

    name: KeyName
    right: Right = "read"
    tags: Annotated[Tags, Field(default_factory=list)]
    path: Folder | None = None


class RotateRequest(Request):
    """For how many minutes the key that was sent before is good, too."""

    grace_minutes: Annotated[int, Field(ge=0, le=100_000), BeforeValidator(whole)] = 0


class DigestRequest(Request):
    """The SHA-256 of what a client sent as its key, in hex."""

    digest: Annotated[str, Like(r"^[0-9a-f]{64}$", "must be 64 hexadecimal digits")]


class KeyRights(Reply):
    """What a key may do, and what it is limited to."""

    name: str | None
    right: Right
    tags: list[str]
    path: str | None = None


class Key(KeyRights):
    """A key, without what is sent."""

    created_at: str
    used_at: str | None


class NewKey(Key):
    """A key that was made or rotated. `key` is what to send: it is shown once, and kept nowhere."""

    key: str


class KeyList(Reply):
    """Every key but those of the settings."""

    keys: list[Key]


class AuditLine(Reply):
    """Who did what: to a document, a job or a key."""

    id: int
    at: str
    by: str | None
    client: str | None
    action: str
    document_id: int | None
    job_id: int | None
    key: str | None


class AuditList(Reply):
    """A page, newest first."""

    lines: list[AuditLine]
    next_cursor: str | None
