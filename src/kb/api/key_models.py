"""Bodies for keys and the audit log."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from kb.api.fields import Instant, Like, Reply, Request, SourcePath, Tags, whole
from kb.api.rights import Right, folder_prefix

KeyName = Annotated[
    str,
    Field(min_length=1, max_length=50),
    Like(r"^[a-z0-9][a-z0-9_-]*$", "a name may contain a-z, 0-9, - and _, and must begin with a letter or digit"),
]
Folder = Annotated[SourcePath, AfterValidator(folder_prefix)]


class KeyRequest(Request):
    """A new key. `tags` limits it to documents with one of these tags, `path` to documents in this folder.

    A key with the right write that `reads_all` reads all documents; its limit is only for what it writes. The key
    ends at `expires_at`, and may make at most `per_minute` requests per minute.
    """

    name: KeyName
    right: Right = "read"
    tags: Annotated[Tags, Field(default_factory=list)]
    path: Folder | None = None
    expires_at: Instant | None = None
    per_minute: Annotated[int, Field(ge=1, le=100_000)] | None = None
    reads_all: bool = False


class RotateRequest(Request):
    """The number of minutes that the previous secret of the key stays valid."""

    grace_minutes: Annotated[int, Field(ge=0, le=100_000), BeforeValidator(whole)] = 0


class DigestRequest(Request):
    """The SHA-256 of a client's key, in hex."""

    digest: Annotated[str, Like(r"^[0-9a-f]{64}$", "must be 64 hexadecimal digits")]


class KeyRights(Reply):
    """The right of a key, and its limit to tags or a folder, which is only for writing if the key `reads_all`."""

    name: str | None
    right: Right
    tags: list[str]
    path: str | None = None
    reads_all: bool = False


class Key(KeyRights):
    """A key without its secret."""

    created_at: str
    used_at: str | None
    expires_at: str | None = None
    per_minute: int | None = None


class NewKey(Key):
    """A new or rotated key. `key` is the secret to send. kb shows it only once and does not store it."""

    key: str


class FirstKey(Reply):
    """The first API key, and the file that contains it."""

    key: str
    file: str


class KeyList(Reply):
    """All keys with rights, without the keys in settings."""

    keys: list[Key]


class AuditLine(Reply):
    """A record of an action on a document, a job or a key: its time, key and program."""

    id: int
    at: str
    by: str | None
    client: str | None
    action: str
    document_id: int | None
    job_id: int | None
    key: str | None


class AuditList(Reply):
    """A page of the audit log, newest first. `next_cursor` is null on the last page."""

    lines: list[AuditLine]
    next_cursor: str | None
