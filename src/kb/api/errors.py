"""What can go wrong, said once.

An error's class carries its HTTP status and its stable code; its docstring is its default message. The engine
turns a `KbError` into problem+json (RFC 9457) and `kb.client.client` turns problem+json back into the same class.

    KbError                      500 internal
    ├── Invalid                  422 invalid
    ├── Unauthorized             401 unauthorized
    ├── NotFound                 404 not-found
    ├── NotANote                 409 not-a-note
    ├── NotPaged                 409 not-paged
    ├── NotRetryable             409 not-retryable
    ├── JobDone                  409 job-done
    ├── PathTaken                409 path-taken
    ├── AlreadyReplaced          409 already-replaced
    ├── TooManyTags              409 too-many-tags
    ├── KeyReused                409 key-reused
    ├── KeyExists                409 key-exists
    ├── KeyRotated               409 key-rotated
    ├── NotInBin                 409 not-in-bin
    ├── Occupied                 409 occupied
    ├── FolderTaken              409 folder-taken
    ├── NotReembedding           409 not-reembedding
    ├── NoKeySet                 409 no-key-set
    ├── NoBackupFolder           409 no-backup-folder
    ├── AtWork                   409 at-work
    ├── HistoryGone              410 history-gone
    ├── Changed                  412 changed
    ├── Forbidden                403 forbidden
    ├── ForeignOrigin            403 foreign-origin
    ├── Misdirected              421 misdirected
    ├── WrongVersion             426 wrong-version
    ├── TooLarge                 413 too-large
    ├── UnsupportedMedia         415 unsupported-media-type
    ├── TooManyGuesses           429 too-many-guesses
    ├── HeadTooLarge             431 head-too-large
    ├── Unavailable              503 unavailable
    │   ├── Stopped              likewise
    │   ├── ModelChanged         likewise
    │   ├── FilesUnavailable     likewise
    │   ├── StoreUnavailable     likewise
    │   │   ├── NoConnection     likewise
    │   │   └── Unconfirmed      likewise
    │   └── LeaseLost            never sent: another engine has taken up a job
    ├── Overloaded               503 overloaded
    ├── Busy                     503 busy
    ├── DiskFull                 507 disk-full
    ├── DiskFault                503 disk-fault
    ├── NoEngine                 never sent: raised by the client
    ├── EngineUnreachable        likewise
    │   └── EngineSlow           likewise
    ├── Unreadable               never sent: the reason of a failed job
    │   └── OutOfReach           likewise
    └── StartError               never sent: stops the start with one line
        ├── SettingError
        ├── ModelError
        └── StoreError
"""

from __future__ import annotations

import errno
import inspect
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

REMEDY: Final = "Mount it writable ('mount' and the kernel's log say what is wrong) or mend it"
"""What helps where a disk cannot be written."""


class KbError(Exception):
    """The engine failed to handle the request; its log says why."""

    status = 500
    code = "internal"

    def __init__(self, detail: str | None = None, *, extra: dict[str, object] | None = None) -> None:
        self.detail = detail or inspect.getdoc(type(self)) or ""
        self.extra = extra or {}
        super().__init__(self.detail)


class Invalid(KbError):
    """The request is not valid."""

    status = 422
    code = "invalid"


class Unauthorized(KbError):
    """A valid key is needed: send it as 'Authorization: Bearer KEY'."""

    status = 401
    code = "unauthorized"


class NotFound(KbError):
    """There is nothing here."""

    status = 404
    code = "not-found"


class NotANote(KbError):
    """Only notes can be updated; send a changed file again under the same source_path instead."""

    status = 409
    code = "not-a-note"


class NotPaged(KbError):
    """This document has no pages; ask for lines or characters."""

    status = 409
    code = "not-paged"


class NotRetryable(KbError):
    """Only a failed job whose content was kept can be tried again; send the content again instead."""

    status = 409
    code = "not-retryable"


class JobDone(KbError):
    """The job is done; what it made is a document now."""

    status = 409
    code = "job-done"


class PathTaken(KbError):
    """Another document comes from this path."""

    status = 409
    code = "path-taken"


class AlreadyReplaced(KbError):
    """Another note replaces this one already; replace that one instead."""

    status = 409
    code = "already-replaced"


class TooManyTags(KbError):
    """The document would have more tags than a document may have."""

    status = 409
    code = "too-many-tags"


class KeyReused(KbError):
    """The Idempotency-Key was used before, for something else."""

    status = 409
    code = "key-reused"


class KeyExists(KbError):
    """There is a key of this name already."""

    status = 409
    code = "key-exists"


class KeyRotated(KbError):
    """Someone else has just rotated the key; rotate it again if theirs is not to be the one in use."""

    status = 409
    code = "key-rotated"


class NotInBin(KbError):
    """The document is not in the bin."""

    status = 409
    code = "not-in-bin"


class Occupied(KbError):
    """Another document has taken the place of this one."""

    status = 409
    code = "occupied"


class FolderTaken(KbError):
    """Another folder is kept in step under this name."""

    status = 409
    code = "folder-taken"


class NotReembedding(KbError):
    """There are no other vectors to do this with."""

    status = 409
    code = "not-reembedding"


class NoKeySet(KbError):
    """Set KB_API_KEY first: without it anyone may do anything, whatever keys there are."""

    status = 409
    code = "no-key-set"


class NoBackupFolder(KbError):
    """Set KB_BACKUP_DIR first: backups go there. 'kb backup DIR' makes one without it."""

    status = 409
    code = "no-backup-folder"


class AtWork(KbError):
    """Something is done with the data already; wait until it is over."""

    status = 409
    code = "at-work"


class HistoryGone(KbError):
    """History does not go back so far."""

    status = 410
    code = "history-gone"


class Changed(KbError):
    """The document was changed since it was read."""

    status = 412
    code = "changed"


class Forbidden(KbError):
    """This key may not do that."""

    status = 403
    code = "forbidden"


class ForeignOrigin(KbError):
    """Pages of other sites may not use this server."""

    status = 403
    code = "foreign-origin"


class Misdirected(KbError):
    """This server is not known by that name; KB_ALLOWED_HOSTS can add it, or a key (KB_API_KEY)."""

    status = 421
    code = "misdirected"


class WrongVersion(KbError):
    """The engine and its client are of versions that do not fit."""

    status = 426
    code = "wrong-version"


class TooLarge(KbError):
    """The request is larger than the engine accepts."""

    status = 413
    code = "too-large"


class UnsupportedMedia(KbError):
    """Send a note as application/json, or a file as multipart/form-data."""

    status = 415
    code = "unsupported-media-type"


class TooManyGuesses(KbError):
    """Too many keys that are none came from this address; wait, then send the right one."""

    status = 429
    code = "too-many-guesses"


class HeadTooLarge(KbError):
    """The request's address and headers are larger than the server accepts."""

    status = 431
    code = "head-too-large"


class Unavailable(KbError):
    """The engine is not ready yet; try again in a moment."""

    status = 503
    code = "unavailable"


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


class Overloaded(KbError):
    """The server has too many connections or files open at the moment; try again in a few seconds."""

    status = 503
    code = "overloaded"

    @staticmethod
    def is_why(error: BaseException | None) -> bool:
        """Return whether the operating system said so."""
        return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class Busy(KbError):
    """As many searches as KB_MAX_SEARCHES allows run or wait; try again in a second."""

    status = 503
    code = "busy"


class DiskFull(KbError):
    """The engine's disk is full: nothing was written. Make room and try again."""

    status = 507
    code = "disk-full"

    @staticmethod
    def is_why(error: Exception) -> bool:
        """Return whether the operating system said so."""
        return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class DiskFault(KbError):
    """The engine's disk cannot be written: nothing was. Mount it writable or mend it, and try again."""

    status = 503
    code = "disk-fault"

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
    """What answers is no kb engine."""


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
    for each in kind.__subclasses__():
        yield from _with_code(each)


BY_CODE: Final = dict(_with_code(KbError))
"""The errors with a code of their own, which come over the wire as they were raised."""
