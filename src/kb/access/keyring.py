"""The keys that `kb keys` makes: their digests alone, in a file or in the database that engines share."""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Final

from kb import clock
from kb.api.errors import Invalid, KeyExists, KeyRotated, NotFound, SettingError, StoreUnavailable, Unavailable
from kb.api.rights import KEY_PREFIX, Limit, Right
from kb.clock import shown
from kb.filesystem import sync
from kb.store.protocol import Keys
from kb.store.rows import NamedKey, now_iso

logger = logging.getLogger(__name__)

FILE: Final = "keys.json"
TAKEN: Final = ".json.taken"
"""How the name of the file ends when its keys are in a database."""

FRESH_SECONDS: Final = 1.0
"""For how long a key that another engine revoked is good here at most."""

STALE_SECONDS: Final = 10.0
"""Keys that were read so long ago, where others change them, are not relied on."""

USED_SECONDS: Final = 60
"""How long after a use it is written when keys were used last: no request waits for that."""

OF_SETTINGS: Final = re.compile("[0-9a-f]{8}")
"""What the keys of the settings are called: no other key is called so."""


class KeyFile:
    """See `kb.store.protocol.Keys`: the keys of one engine, which alone writes the file.

    Args:
        path: of the file, which need not be there.

    Raises:
        SettingError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._keys = {key.name: key for key in _read(path)}
        except (OSError, ValueError, TypeError, KeyError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise SettingError(f"{path} holds the keys, and cannot be read: {why}") from None

    def all(self) -> list[NamedKey]:
        """Return them."""
        return list(self._keys.values())

    def add(self, key: NamedKey) -> bool:
        """Write a key, unless there is one of its name; return whether there was none."""
        is_new = key.name not in self._keys
        if is_new:
            self._write({**self._keys, key.name: key})
        return is_new

    def rotate(self, key: NamedKey, before: str) -> bool:
        """Write the digests of a key whose digest is still `before`; return whether there was one."""
        is_there = key.name in self._keys and self._keys[key.name].digest == before
        if is_there:
            self._write({**self._keys, key.name: key})
        return is_there

    def remove(self, name: str) -> None:
        """Delete a key."""
        self._write({other: key for other, key in self._keys.items() if other != name})

    def used(self, moments: Mapping[str, str]) -> None:
        """Write when keys were used last."""
        used = {name: replace(key, used_at=moments.get(name, key.used_at)) for name, key in self._keys.items()}
        self._write(used)

    def _write(self, keys: dict[str, NamedKey]) -> None:
        _write(self._path, keys.values())
        self._keys = keys


class Keyring:
    """The keys that have names.

    Args:
        file: where they are kept, if this engine alone changes them; others are given to `open`.
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

    def open(self, keys: Keys) -> None:
        """Have the keys that engines share."""
        self._kept = keys
        self._fresh_seconds = FRESH_SECONDS
        self._read_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether the keys are to be read again: another engine may have changed them."""
        return monotonic() - self._read_at > self._fresh_seconds

    def refresh(self) -> None:
        """Read the keys again, if that is due."""
        with self._lock:
            self._read()

    def every(self) -> list[NamedKey]:
        """Return the keys by their names."""
        with self._lock:
            return sorted(self._read(fresh=True).values(), key=lambda key: key.name)

    def identify(self, digest: str) -> NamedKey | None:
        """Return the key that a token with this SHA-256 in hex is, which is used now; None if it is none of them."""
        with self._lock:
            matching = [key for key in self._read().values() if key.opens(digest)]
            return self._use(matching[0]) if matching else None

    def named(self, name: str) -> NamedKey | None:
        """Return the key with a name, as it was read last: this waits for nothing.

        Raises:
            Unavailable: that was long ago.
        """
        if monotonic() - self._read_at > max(STALE_SECONDS, self._fresh_seconds):
            raise Unavailable
        return self._keys.get(name)

    def existing(self, name: str) -> NamedKey:
        """Return the key with a name as it is now.

        Raises:
            NotFound: there is no such key.
        """
        with self._lock:
            return self._existing(name)

    def make(self, name: str, right: Right, limit: Limit) -> tuple[NamedKey, str]:
        """Make a key; return it, and the text to send, which is kept nowhere.

        Raises:
            KeyExists: there is one of this name.
            Invalid: the name is like that of a key of the settings, or a key that may do anything has a limit.
        """
        if OF_SETTINGS.fullmatch(name):
            raise Invalid("name: eight hexadecimal digits are what the keys of the settings are called.")
        if right == "admin" and limit != Limit():
            raise Invalid("right: a key that is limited can read or write; admin is without limits.")
        token = _new_token()
        with self._lock:
            key = NamedKey(name, right, limit.tags, limit.folder, token_digest(token), now_iso())
            if not self._opened().add(key):
                raise KeyExists(f"There is a key {name!r} already: revoke it, or rotate it.")
            self._keys[name] = key
        return key, token

    def rotate(self, before: NamedKey, grace: timedelta) -> tuple[NamedKey, str]:
        """Give a key a new text to send; the old one is good for a while yet. Return both.

        Args:
            before: the key as `existing` returned it.
            grace: for how long.

        Raises:
            NotFound: it was revoked since.
            KeyRotated: it was rotated since.
        """
        token = _new_token()
        former = (before.digest, _later(grace)) if grace else (None, None)
        key = replace(before, digest=token_digest(token), former_digest=former[0], former_until=former[1])
        with self._lock:
            if not self._opened().rotate(key, before.digest):
                self._existing(key.name)
                raise KeyRotated
            self._keys[key.name] = key
        return key, token

    def revoke(self, name: str) -> NamedKey:
        """Have a key open nothing any more; return it.

        Raises:
            NotFound: there is no such key.
        """
        with self._lock:
            key = self._existing(name)
            self._opened().remove(name)
            self._keys.pop(name, None)
            self._used.pop(name, None)
        return key

    def flush(self) -> None:
        """Write when keys were used last, if one was since that was written."""
        with self._lock:
            if self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            with suppress(OSError, StoreUnavailable):  # a full disk keeps nobody out
                self._opened().used(self._used)
                self._used = {}

    def _opened(self) -> Keys:
        """Return where the keys are kept.

        Raises:
            Unavailable: that is not known yet.
        """
        if self._kept is None:
            raise Unavailable
        return self._kept

    def _read(self, *, fresh: bool = False) -> dict[str, NamedKey]:
        """Return the keys as they are, or were a moment ago: another engine may have changed them.

        Raises:
            StoreUnavailable: the database does not answer; those who waited for who asked it do not ask again.
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
    """Take the keys of a file into the database, once: the file gets another name. Those of a name there is stay there.

    Raises:
        SettingError: it cannot be read.
    """
    if not path.exists():
        return
    left = [key.name for key in KeyFile(path).all() if not keys.add(key)]
    taken = path.with_suffix(TAKEN)
    path.replace(taken)
    logger.info("the keys of %s are in the database now, and the file is %s", path, taken.name)
    if left:
        logger.warning("keys of these names were in the database already, and those of the file are not: %s", left)


def _no_key(name: str) -> NotFound:
    return NotFound(f"There is no key {name!r}.")


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token in hex."""
    return sha256(token.encode(errors="replace")).hexdigest()


def _new_token() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(32)


def _later(grace: timedelta) -> str:
    """Return when a grace ends, by the time by which things expire."""
    return shown((clock.own.expiry() + grace).timestamp())


def _read(path: Path) -> Iterable[NamedKey]:
    if not path.exists():
        return []
    return [NamedKey(**{**key, "tags": tuple(key["tags"])}) for key in json.loads(path.read_text("utf-8"))["keys"]]


def _write(path: Path, keys: Iterable[NamedKey]) -> None:
    """Write the file whole or not at all, for its owner alone. It is on the disk afterwards."""
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps({"keys": [asdict(key) for key in keys]}, indent=1), "utf-8")
    sync(new)
    new.replace(path)
    sync(path.parent)
