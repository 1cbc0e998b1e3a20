"""The keys that `kb keys` makes; only their digests are stored, in a file or in a shared database."""

import json
import logging
import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Final

from kb import clock
from kb.api.errors import (
    Invalid,
    KeyExists,
    KeyRotated,
    NotFound,
    SettingError,
    StoreUnavailable,
    TooManyCalls,
    Unavailable,
)
from kb.api.rights import KEY_PREFIX, OF_SETTINGS, Limit, Right
from kb.asgi.key_check import access_changes
from kb.asgi.rate_limit import GCRA
from kb.clock import shown
from kb.filesystem import ownership, write_private
from kb.store.protocol import Keys
from kb.store.rows import NamedKey, now_iso

logger = logging.getLogger(__name__)

FILE: Final = "keys.json"
TAKEN: Final = ".json.taken"
"""The ending of a key file whose keys have moved into a database."""

FRESH_SECONDS: Final = 1.0
"""For how many seconds at most a key revoked by another engine remains valid here."""

STALE_SECONDS: Final = 10.0
"""Shared keys that were read longer ago than this are not trusted."""

USED_SECONDS: Final = 60
"""How long after a use the time of last use is written; no request waits for that."""


class KeyFile:
    """See `kb.store.protocol.Keys`: the keys of one engine, which is the only writer of the file.

    Args:
        path: the file, which may be missing.

    Raises:
        SettingError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._keys = {key.name: key for key in _read(path)}
        except PermissionError as error:
            raise SettingError(f"{path}, the key file, cannot be read.{ownership(path)}") from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise SettingError(f"{path}, the key file, cannot be read: {why}") from None

    def all(self) -> list[NamedKey]:
        return list(self._keys.values())

    def add(self, key: NamedKey) -> bool:
        is_new = key.name not in self._keys
        if is_new:
            self._write({**self._keys, key.name: key})
        return is_new

    def rotate(self, key: NamedKey, before: str) -> bool:
        is_there = key.name in self._keys and self._keys[key.name].digest == before
        if is_there:
            self._write({**self._keys, key.name: key})
        return is_there

    def remove(self, name: str) -> None:
        self._write({other: key for other, key in self._keys.items() if other != name})

    def used(self, moments: Mapping[str, str]) -> None:
        """Write the times of the last uses of keys."""
        used = {name: replace(key, used_at=moments.get(name, key.used_at)) for name, key in self._keys.items()}
        self._write(used)

    def _write(self, keys: dict[str, NamedKey]) -> None:
        _write(self._path, keys.values())
        self._keys = keys


class Keyring:
    """The named keys.

    Args:
        file: the storage, if only this engine changes the keys; shared keys come from `open`.
    """

    def __init__(self, file: KeyFile | None = None) -> None:
        self._kept: Keys | None = file
        self._fresh_seconds = float("inf")
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._used: dict[str, str] = {}
        self._keys = {key.name: key for key in file.all()} if file else {}
        self._read_at = monotonic()
        self._retry_at = 0.0
        self._rates = cache(GCRA)

    def open(self, keys: Keys) -> None:
        """Use the keys that engines share."""
        self._kept = keys
        self._fresh_seconds = FRESH_SECONDS
        self._read_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether the keys must be read again, because another engine may have changed them."""
        return monotonic() - self._read_at > self._fresh_seconds

    def refresh(self) -> None:
        """Read the keys again, if that is due."""
        with self._lock:
            self._read()

    def every(self) -> list[NamedKey]:
        """Return the keys in the order of their names."""
        with self._lock:
            return sorted(self._read(fresh=True).values(), key=lambda key: key.name)

    def identify(self, digest: str) -> NamedKey | None:
        """Return the key whose token has this SHA-256 in hex, and record the use; None if no key has it.

        Raises:
            TooManyCalls: the key has used its requests of this minute.
        """
        with self._lock:
            matching = [key for key in self._read().values() if key.opens(digest)]
            if not matching:
                return None
            [key, *_] = matching
            if key.per_minute and (wait := self._rates(key.per_minute).acquire(key.name)):
                raise TooManyCalls.after(wait)
            return self._use(key)

    def named(self, name: str) -> NamedKey | None:
        """Return a key by name, as last read, without waiting.

        Raises:
            Unavailable: the keys were read too long ago.
        """
        if monotonic() - self._read_at > max(STALE_SECONDS, self._fresh_seconds):
            raise Unavailable
        key = self._keys.get(name)
        return None if key is None or key.is_expired else key

    def existing(self, name: str) -> NamedKey:
        """Return the current key of a name.

        Raises:
            NotFound: the key does not exist.
        """
        with self._lock:
            return self._existing(name)

    def make(
        self,
        name: str,
        right: Right,
        limit: Limit,
        expires_at: str | None = None,
        per_minute: int | None = None,
        *,
        reads_all: bool = False,
    ) -> tuple[NamedKey, str]:
        """Make a key; return it along with its token, which is not stored.

        Args:
            name: its name.
            right: its right.
            limit: its limit.
            expires_at: the time from which it is not valid.
            per_minute: the maximum number of its requests per minute.
            reads_all: whether the limit is only for what it writes.

        Raises:
            KeyExists: a key of this name exists.
            Invalid: the name has the form of the settings' keys, or the right does not go with the limit.
        """
        if OF_SETTINGS.fullmatch(name):
            raise Invalid("name: eight hexadecimal digits are reserved for the keys in settings. Choose another name.")
        if right == "admin" and limit != Limit():
            raise Invalid("right: a key with a limit can have the right read or write, not admin.")
        if reads_all and (right != "write" or limit == Limit()):
            raise Invalid("reads_all: this is for a key that can write, with a limit on what it may write.")
        token = _new_token()
        with self._lock:
            key = NamedKey(
                name,
                right,
                limit.tags,
                limit.folder,
                token_digest(token),
                now_iso(),
                expires_at=expires_at,
                per_minute=per_minute,
                reads_all=reads_all,
            )
            if not self._opened().add(key):
                raise KeyExists(f"Key {name!r} already exists. Rotate it, or revoke it first.")
            self._keys[name] = key
        return key, token

    def make_first(self, path: Path) -> str:
        """Make the first key, which kb requires from now on; return it.

        Raises:
            KeyExists: the file exists.
        """
        token = secrets.token_urlsafe(32)
        with self._lock:
            if path.exists():
                raise KeyExists(f"kb has already made the first key. It is in {path}.")
            write_private(path, f"{token}\n")
        return token

    def rotate(self, before: NamedKey, grace: timedelta) -> tuple[NamedKey, str]:
        """Give a key a new token, while the old one remains valid for a grace period. Return both key and token.

        Args:
            before: the key as `existing` returned it.
            grace: the grace period.

        Raises:
            NotFound: the key has been revoked in the meantime.
            KeyRotated: the key has been rotated in the meantime.
        """
        token = _new_token()
        former = (before.digest, _later(grace)) if grace else (None, None)
        key = replace(before, digest=token_digest(token), former_digest=former[0], former_until=former[1])
        with self._lock:
            if not self._opened().rotate(key, before.digest):
                self._existing(key.name)
                raise KeyRotated
            self._keys[key.name] = key
        access_changes.count += 1
        return key, token

    def revoke(self, name: str) -> NamedKey:
        """Revoke a key; return it.

        Raises:
            NotFound: the key does not exist.
        """
        with self._lock:
            key = self._existing(name)
            self._opened().remove(name)
            self._keys.pop(name, None)
            self._used.pop(name, None)
        access_changes.count += 1
        return key

    def flush(self) -> None:
        with self._lock:
            if self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            with suppress(OSError, StoreUnavailable):  # requests still work with a full disk
                self._opened().used(self._used)
                self._used = {}

    def _opened(self) -> Keys:
        """Return the storage of the keys.

        Raises:
            Unavailable: the storage is not open yet.
        """
        if self._kept is None:
            raise Unavailable
        return self._kept

    def _read(self, *, fresh: bool = False) -> dict[str, NamedKey]:
        """Return the keys, at most slightly outdated, because another engine may have changed them.

        Raises:
            StoreUnavailable: the database does not answer; callers that waited for the failed read do not repeat it.
        """
        if fresh or self.is_due:
            if not fresh and monotonic() < self._retry_at:
                raise StoreUnavailable
            now = monotonic()
            try:
                self._keys = {key.name: self._with_use(key) for key in self._opened().all()}
            except StoreUnavailable:
                self._retry_at = monotonic() + FRESH_SECONDS
                raise
            self._read_at = now
        return self._keys

    def _with_use(self, key: NamedKey) -> NamedKey:
        used = max(filter(None, (key.used_at, self._used.get(key.name))), default=None)
        return replace(key, used_at=used)

    def _existing(self, name: str) -> NamedKey:
        keys = self._read(fresh=True)
        if name not in keys:
            raise _no_key(name)
        return keys[name]

    def _use(self, key: NamedKey) -> NamedKey:
        used = self._keys[key.name] = replace(key, used_at=now_iso())
        self._used[key.name] = str(used.used_at)
        if self._timer is None:
            self._timer = threading.Timer(USED_SECONDS, self.flush)
            self._timer.daemon = True
            self._timer.start()
        return used


def take_in(path: Path, keys: Keys) -> None:
    """Move the keys of a file into the database and rename the file; keys whose names are taken stay in the file.

    Raises:
        SettingError: the file cannot be read.
    """
    if not path.exists():
        return
    left = [key.name for key in KeyFile(path).all() if not keys.add(key)]
    taken = path.with_suffix(TAKEN)
    path.replace(taken)
    logger.info("moved the keys of %s into the database; the file is now %s", path, taken.name)
    if left:
        logger.warning("the database already has keys with these names, so kb ignores those in the file: %s", left)


def _no_key(name: str) -> NotFound:
    return NotFound(f"Key {name!r} does not exist.")


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token in hex."""
    return sha256(token.encode(errors="replace")).hexdigest()


def _new_token() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(32)


def _later(grace: timedelta) -> str:
    """Return the end of a grace period, by the clock for expiry."""
    return shown((clock.own.expiry() + grace).timestamp())


def _read(path: Path) -> Iterable[NamedKey]:
    if not path.exists():
        return []
    return [NamedKey(**{**key, "tags": tuple(key["tags"])}) for key in json.loads(path.read_text("utf-8"))["keys"]]


def _write(path: Path, keys: Iterable[NamedKey]) -> None:
    write_private(path, json.dumps({"keys": [asdict(key) for key in keys]}, indent=1))
