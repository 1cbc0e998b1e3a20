"""The keys that `kb keys` makes, in a file that holds their digests alone."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from kb.api.access import KEY_PREFIX, Caller, Limit
from kb.api.errors import Invalid, KeyExists, NotFound, SettingError
from kb.filesystem import sync

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from kb.api.access import Right

FILE: Final = "keys.json"
USED_SECONDS: Final = 60
"""How long after a use it is written when keys were used last: no request waits for that."""

OF_SETTINGS: Final = re.compile("[0-9a-f]{8}")
"""What the keys of the settings are called: no other key is called so."""


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key. Until `former_until` the one that it was before it was rotated is good, too."""

    name: str
    right: Right
    tags: tuple[str, ...]
    folder: str | None
    digest: str
    created_at: str
    used_at: str | None = None
    former_digest: str | None = None
    former_until: str | None = None

    @property
    def caller(self) -> Caller:
        """Who calls with this key."""
        limit = Limit(self.tags, self.folder) if self.tags or self.folder else None
        return Caller(self.name, self.right, limit, is_named=True)

    def opens(self, digest: str) -> bool:
        """Return whether a token with this digest is the key; both are compared, so that the time tells nothing."""
        is_former = hmac.compare_digest(digest, self.former_digest or "") and _now() < (self.former_until or "")
        return hmac.compare_digest(digest, self.digest) or is_former


class Keyring:
    """The keys of one engine, which alone writes the file.

    Args:
        path: of the file, which need not be there.

    Raises:
        SettingError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        try:
            self._keys = {key.name: key for key in _read(path)}
        except (OSError, ValueError, TypeError, KeyError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise SettingError(f"{path} holds the keys, and cannot be read: {why}") from None

    def every(self) -> list[NamedKey]:
        """Return the keys by their names."""
        return sorted(self._keys.values(), key=lambda key: key.name)

    def identify(self, digest: str) -> NamedKey | None:
        """Return the key that a token with this SHA-256 in hex is, which is used now; None if it is none of them."""
        matching = [key for key in self._keys.values() if key.opens(digest)]
        return self._used(matching[0].name, digest) if matching else None

    def named(self, name: str) -> NamedKey | None:
        """Return the key with a name."""
        return self._keys.get(name)

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
            if name in self._keys:
                raise KeyExists(f"There is a key {name!r} already: revoke it, or rotate it.")
            key = NamedKey(name, right, limit.tags, limit.folder, digest_of(token), _now())
            self._write({**self._keys, name: key})
        return key, token

    def rotate(self, name: str, grace: timedelta) -> tuple[NamedKey, str]:
        """Give a key a new text to send; the old one is good for a while yet. Return both.

        Raises:
            NotFound: there is no such key.
        """
        token = _new_token()
        with self._lock:
            before = self._existing(name)
            former = (before.digest, _now(grace)) if grace else (None, None)
            key = replace(before, digest=digest_of(token), former_digest=former[0], former_until=former[1])
            self._write({**self._keys, name: key})
        return key, token

    def revoke(self, name: str) -> NamedKey:
        """Have a key open nothing any more; return it.

        Raises:
            NotFound: there is no such key.
        """
        with self._lock:
            key = self._existing(name)
            self._write({other: kept for other, kept in self._keys.items() if other != name})
        return key

    def flush(self) -> None:
        """Write when keys were used last, if one was since that was written."""
        with self._lock:
            if self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            with suppress(OSError):  # a full disk keeps nobody out
                _write(self._path, self._keys.values())

    def _existing(self, name: str) -> NamedKey:
        if name not in self._keys:
            raise NotFound(f"There is no key {name!r}.")
        return self._keys[name]

    def _used(self, name: str, digest: str) -> NamedKey | None:
        with self._lock:
            key = self._keys.get(name)
            if key is None or not key.opens(digest):  # revoked or rotated meanwhile
                return None
            key = self._keys[name] = replace(key, used_at=_now())
            if self._timer is None:
                self._timer = threading.Timer(USED_SECONDS, self.flush)
                self._timer.daemon = True
                self._timer.start()
        return key

    def _write(self, keys: dict[str, NamedKey]) -> None:
        _write(self._path, keys.values())
        self._keys = keys


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token in hex."""
    return sha256(token.encode(errors="replace")).hexdigest()


def _new_token() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(32)


def _now(later: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) + later).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(path: Path) -> Iterable[NamedKey]:
    if not path.exists():
        return []
    return [NamedKey(**{**each, "tags": tuple(each["tags"])}) for each in json.loads(path.read_text("utf-8"))["keys"]]


def _write(path: Path, keys: Iterable[NamedKey]) -> None:
    """Write the file whole or not at all, for its owner alone. It is on the disk afterwards."""
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps({"keys": [asdict(key) for key in keys]}, indent=1), "utf-8")
    sync(new)
    new.replace(path)
    sync(path.parent)
