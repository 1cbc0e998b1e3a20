"""What can go wrong, said once.

An error's class carries its HTTP status and its stable code; its docstring is its default message. The engine
turns a `KbError` into problem+json (RFC 9457) and `kb.client.client` turns problem+json back into the same class.
Those without a code of their own go over the wire as what they are a kind of, or are never sent.
"""

from __future__ import annotations

import errno
import inspect
from collections.abc import Iterator
from typing import Final, Self

REMEDY: Final = "Mount it writable ('mount' and the kernel's log say what is wrong) or mend it"
"""What helps where a disk cannot be written."""


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
    """A valid key is needed: send it as 'Authorization: Bearer KEY'."""


class NotFound(KbError, status=404, code="not-found"):
    """There is nothing here."""


class NotANote(KbError, status=409, code="not-a-note"):
    """Only notes can be updated; send a changed file again under the same source_path instead."""


class NotPaged(KbError, status=409, code="not-paged"):
    """This document has no pages; ask for lines or characters."""


class NotRetryable(KbError, status=409, code="not-retryable"):
    """Only a failed job whose content was kept can be tried again; send the content again instead."""


class JobDone(KbError, status=409, code="job-done"):
    """The job is done; what it made is a document now."""


class PathTaken(KbError, status=409, code="path-taken"):
    """Another document comes from this path."""


class AlreadyReplaced(KbError, status=409, code="already-replaced"):
    """Another note replaces this one already; replace that one instead."""


class TooManyTags(KbError, status=409, code="too-many-tags"):
    """The document would have more tags than a document may have."""


class KeyReused(KbError, status=409, code="key-reused"):
    """The Idempotency-Key was used before, for something else."""


class KeyExists(KbError, status=409, code="key-exists"):
    """There is a key of this name already."""


class KeyRotated(KbError, status=409, code="key-rotated"):
    """Someone else has just rotated the key; rotate it again if theirs is not to be the one in use."""


class NotInBin(KbError, status=409, code="not-in-bin"):
    """The document is not in the bin."""


class Occupied(KbError, status=409, code="occupied"):
    """Another document has taken the place of this one."""


class FolderTaken(KbError, status=409, code="folder-taken"):
    """Another folder is kept in step under this name."""


class NotReembedding(KbError, status=409, code="not-reembedding"):
    """There are no other vectors to do this with."""


class NoKeySet(KbError, status=409, code="no-key-set"):
    """Set KB_API_KEY first: without it anyone may do anything, whatever keys there are."""


class NoBackupFolder(KbError, status=409, code="no-backup-folder"):
    """Set KB_BACKUP_DIR first: backups go there. 'kb backup DIR' makes one without it."""


class MaintenanceRunning(KbError, status=409, code="at-work"):
    """Something is done with the data already; wait until it is over."""


class HistoryGone(KbError, status=410, code="history-gone"):
    """History does not go back so far."""


class Changed(KbError, status=412, code="changed"):
    """The document was changed since it was read."""


class Forbidden(KbError, status=403, code="forbidden"):
    """This key may not do that."""


class ForeignOrigin(KbError, status=403, code="foreign-origin"):
    """Pages of other sites may not use this server."""


class Misdirected(KbError, status=421, code="misdirected"):
    """This server is not known by that name; KB_ALLOWED_HOSTS can add it, or a key (KB_API_KEY)."""


class WrongVersion(KbError, status=426, code="wrong-version"):
    """The engine and its client are of versions that do not fit."""


class TooLarge(KbError, status=413, code="too-large"):
    """The request is larger than the engine accepts."""


class UnsupportedMedia(KbError, status=415, code="unsupported-media-type"):
    """Send a note as application/json, or a file as multipart/form-data."""


class TooManyGuesses(KbError, status=429, code="too-many-guesses"):
    """Too many keys that are none came from this address; wait, then send the right one."""


class HeadTooLarge(KbError, status=431, code="head-too-large"):
    """The request's address and headers are larger than the server accepts."""


class Unavailable(KbError, status=503, code="unavailable"):
    """The engine is not ready yet; try again in a moment."""


class Stopped(Unavailable):
    """The engine stops; nothing is wrong with what it worked on. Try again when it runs again."""


class ModelChanged(Unavailable):
    """The engine changed to another embedding model in the meantime; nothing was written. Try again."""


class FilesUnavailable(Unavailable):
    """The place of the files does not answer. Try again in a few seconds."""


class StoreUnavailable(Unavailable):
    """The database does not answer. Try again in a few seconds."""


class NoConnection(StoreUnavailable):
    """The database gives no connection, so that nothing has begun. Try again in a few seconds."""


class Unconfirmed(StoreUnavailable):
    """The database broke off while a change was committed: it is not known whether it was written."""


class LeaseLost(Unavailable):
    """Another engine has taken up the job; nothing of it was written here."""


class Overloaded(KbError, status=503, code="overloaded"):
    """The server has too many connections or files open at the moment; try again in a few seconds."""

    @staticmethod
    def is_why(error: BaseException | None) -> bool:
        """Return whether the operating system said so."""
        return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class Busy(KbError, status=503, code="busy"):
    """As many searches as KB_MAX_SEARCHES allows run or wait; try again in a second."""


class DiskFull(KbError, status=507, code="disk-full"):
    """The engine's disk is full: nothing was written. Make room and try again."""

    @staticmethod
    def is_why(error: Exception) -> bool:
        """Return whether the operating system said so."""
        return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class DiskFault(KbError, status=503, code="disk-fault"):
    """The engine's disk cannot be written: nothing was. Mount it writable or mend it, and try again."""

    @classmethod
    def at(cls, path: object, reason: object, verb: str = "written") -> Self:
        """Return the error of a file, or of a folder."""
        return cls(f"The disk cannot be {verb}: {path}: {reason}. {REMEDY}, and try again; reading goes on.")

    @classmethod
    def of(cls, error: BaseException | None) -> Self | None:
        """Return what the operating system said, if it said so."""
        if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EIO):
            return cls.at(error.filename or "a file", error.strerror)
        return None


class NoEngine(KbError):
    """What answers is not a kb engine."""


class EngineUnreachable(KbError):
    """The engine is unreachable."""


class EngineSlow(EngineUnreachable):
    """The engine did not answer in time."""


class Unreadable(KbError):
    """The file cannot be read."""


class OutOfReach(Unreadable):
    """What would read the file is out of reach for now."""


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
"""The errors with a code of their own, which come over the wire as they were raised."""
