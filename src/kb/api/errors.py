"""The errors of kb.

The class of an error has its HTTP status and its stable code; its docstring is its default message. The engine
turns a `KbError` into problem+json (RFC 9457), and `kb.client.client` turns problem+json back into the same class.
An error without a code of its own is sent as its base class, or is never sent.
"""

import errno
import inspect
import math
from collections.abc import Iterator
from typing import Final, Self

REMEDY: Final = "Mount it writable or repair it ('mount' and the kernel's log show the fault)"
"""What to do if a disk cannot be written."""


LONGEST_RETRY: Final = 60


class KbError(Exception):
    """The engine failed to handle the request; its log says why."""

    status = 500
    code = "internal"

    def __init_subclass__(cls, *, status: int | None = None, code: str | None = None) -> None:
        if status and code:
            cls.status, cls.code = status, code

    def __init__(self, detail: str | None = None, *, extra: dict[str, object] | None = None) -> None:
        self.detail = detail or inspect.getdoc(type(self)) or ""
        self.extra = extra or {}
        super().__init__(self.detail)


class Invalid(KbError, status=422, code="invalid"):
    """The request is not valid."""


class Unauthorized(KbError, status=401, code="unauthorized"):
    """This call needs a valid key. Send it as 'Authorization: Bearer KEY'."""


class NotFound(KbError, status=404, code="not-found"):
    """Nothing exists at this address."""


class NotANote(KbError, status=409, code="not-a-note"):
    """Only notes can be updated. To change a file, send it again under the same source_path."""


class AlreadyMade(KbError, status=409, code="already-made"):
    """The note already has this change, so it was not made again."""


class NotPaged(KbError, status=409, code="not-paged"):
    """This document has no pages. Request lines or characters."""


class NotRetryable(KbError, status=409, code="not-retryable"):
    """Only a failed job whose content was kept can run again. Send the content again."""


class JobDone(KbError, status=409, code="job-done"):
    """The job is done, so it cannot be dropped. Delete its document instead."""


class PathTaken(KbError, status=409, code="path-taken"):
    """Another document already has this source_path. Move or delete that document first."""


class AlreadyReplaced(KbError, status=409, code="already-replaced"):
    """Another note already replaces this one. Replace that note instead."""


class TooManyTags(KbError, status=409, code="too-many-tags"):
    """The document would have too many tags. Remove some of them first."""


class KeyReused(KbError, status=409, code="key-reused"):
    """The Idempotency-Key was already used for a different request. Send a new key."""


class KeyExists(KbError, status=409, code="key-exists"):
    """A key with this name already exists. Choose another name, or rotate that key."""


class KeyRotated(KbError, status=409, code="key-rotated"):
    """Someone else just rotated this key. Rotate it again to replace theirs."""


class NotInBin(KbError, status=409, code="not-in-bin"):
    """The document is not in the bin."""


class Occupied(KbError, status=409, code="occupied"):
    """Another document now has the path of this one. Delete or move that document first."""


class FolderTaken(KbError, status=409, code="folder-taken"):
    """Another synced folder already has this name. Choose another name, or take it over."""


class NotReembedding(KbError, status=409, code="not-reembedding"):
    """This action needs vectors other than those in use, and kb has none. Send 'start' first."""


class NoKeySet(KbError, status=409, code="no-key-set"):
    """Make the first key on the Keys page, or set KB_API_KEY and KB_MCP_API_KEY. Until then, anyone may do anything."""


class SettingFixed(KbError, status=409, code="setting-fixed"):
    """This setting comes from kb's environment. Change it there, then restart kb."""


class NoBackupFolder(KbError, status=409, code="no-backup-folder"):
    """Name a folder for backups on the Settings page, or in KB_BACKUP_DIR. 'kb backup DIR' needs no setting."""


class NoNotesFolder(KbError, status=409, code="no-notes-folder"):
    """Set KB_NOTES_DIR, the folder for a file of each note, and restart kb."""


class NotesFolderElsewhere(KbError, status=409, code="notes-folder-elsewhere"):
    """Another engine that uses this database manages the notes folder. Ask that engine."""


class MaintenanceRunning(KbError, status=409, code="at-work"):
    """A backup, check or repair is already running. Wait until it ends."""


class HistoryGone(KbError, status=410, code="history-gone"):
    """The history does not go back that far. Choose a later time."""


class Changed(KbError, status=412, code="changed"):
    """The document has changed since you read it. Read it again, then repeat the change."""


class Forbidden(KbError, status=403, code="forbidden"):
    """This key does not have the right to do this."""


class ForeignOrigin(KbError, status=403, code="foreign-origin"):
    """Pages from other sites may not call this server. To allow a site, add its host to KB_ALLOWED_HOSTS."""


class Misdirected(KbError, status=421, code="misdirected"):
    """This host name is not allowed. Add it to KB_ALLOWED_HOSTS, or set KB_API_KEY."""


class WrongVersion(KbError, status=426, code="wrong-version"):
    """The versions of the engine and its client are not compatible. Upgrade the older one."""


class TooLarge(KbError, status=413, code="too-large"):
    """The request is larger than the engine accepts."""


class UnsupportedMedia(KbError, status=415, code="unsupported-media-type"):
    """Send a note as application/json, or a file as multipart/form-data."""


class Later(KbError):
    """A request that may be repeated later."""

    retry_after = 1
    """The seconds to wait before the next attempt."""

    @classmethod
    def after(cls, seconds: float, detail: str | None = None) -> Self:
        """Return the error for a request that would have to wait this long."""
        error = cls(detail)
        error.retry_after = max(1, min(math.ceil(seconds), LONGEST_RETRY))
        return error


class TooManyGuesses(Later, status=429, code="too-many-guesses"):
    """This address sent too many wrong keys. Wait, then send the right one."""


class TooManyCalls(Later, status=429, code="too-many-calls"):
    """This key has used up its requests for this minute. Wait, or ask for a key with more."""


class HeadTooLarge(KbError, status=431, code="head-too-large"):
    """The URL and headers of the request are larger than the server accepts."""


class Unavailable(KbError, status=503, code="unavailable"):
    """The engine is not ready yet; try again in a moment."""


class Stopped(Unavailable):
    """The engine is shutting down; the request is not at fault. Try again when the engine is running again."""


class ModelChanged(Unavailable):
    """The engine switched to another embedding model during the request; nothing was written. Try again."""


class FilesUnavailable(Unavailable):
    """The file storage does not respond. Try again in a few seconds."""


class StoreUnavailable(Unavailable):
    """The database does not answer. Try again in a few seconds."""


class NoConnection(StoreUnavailable):
    """The database accepts no connections; nothing was changed. Try again in a few seconds."""


class Unconfirmed(StoreUnavailable):
    """The database connection broke during a commit, so the change may or may not be saved."""


class LeaseLost(Unavailable):
    """Another engine has taken over the job; this engine saved none of its results."""


class Overloaded(KbError, status=503, code="overloaded"):
    """The server has too many open connections or files. Try again in a few seconds."""

    @staticmethod
    def is_why(error: BaseException | None) -> bool:
        """Return whether the operating system reported this fault."""
        return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class Busy(Later, status=503, code="busy"):
    """Too many searches are running or waiting (KB_MAX_SEARCHES). Try again in a second."""


class TooLong(KbError, status=503, code="search-too-long"):
    """This search took too long, so kb ended it. Use fewer words, shorter phrases, or a filter."""


class DiskFull(KbError, status=507, code="disk-full"):
    """The engine's disk is full; nothing was written. Free some space (a short note can need 10 MB) and try again."""

    @staticmethod
    def is_why(error: Exception) -> bool:
        """Return whether the operating system reported this fault."""
        return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class DiskFault(KbError, status=503, code="disk-fault"):
    """The engine cannot write to its disk; nothing was saved. Mount it writable or repair it, and try again."""

    @classmethod
    def at(cls, path: object, reason: object, verb: str = "written") -> Self:
        """Return the error for this file or folder."""
        return cls(
            f"The disk cannot be {verb}: {path}: {reason}. {REMEDY}, and try again. You can still search and read."
        )

    @classmethod
    def of(cls, error: BaseException | None) -> Self | None:
        """Return the error if the operating system reported a disk fault, else None."""
        if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EIO):
            return cls.at(error.filename or "a file", error.strerror)
        return None


class NoEngine(KbError):
    """The server at this address is not a kb engine. Check KB_ENGINE_URL."""


class EngineUnreachable(KbError):
    """The engine is unreachable. Start it with 'kb serve', or check KB_ENGINE_URL."""


class EngineSlow(EngineUnreachable):
    """The engine did not respond in time. Try again in a minute."""


class Unreadable(KbError):
    """The file cannot be read."""


class OutOfReach(Unreadable):
    """The extractor for this file is unreachable for now."""


class StartError(KbError):
    """The program cannot start."""


class SettingError(StartError):
    """A setting is wrong."""


class ModelError(StartError):
    """The embedding model cannot be used."""


class StoreError(StartError):
    """The database cannot be used."""


def _with_code(kind: type[KbError]) -> Iterator[tuple[str, type[KbError]]]:
    if "code" in vars(kind):
        yield kind.code, kind
    for subclass in kind.__subclasses__():
        yield from _with_code(subclass)


BY_CODE: Final = dict(_with_code(KbError))
"""The errors with a code of their own, by code; a client receives them as they were raised."""
