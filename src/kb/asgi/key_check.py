"""Keys, from settings and from files, compared in constant time (requirements G-4, R-5)."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from kb.api.errors import SettingError
from kb.api.rights import Caller
from kb.running_engine import FIRST_KEY, data_folder
from kb.settings import EngineKey, keys_in, reveal

Identify = Callable[[str], Awaitable[Caller | None]]
"""Returns the caller for a key; None if the key is wrong."""

logger = logging.getLogger(__name__)

SHORT: Final = 16
"""A key of fewer characters can be guessed."""


class AccessChanges:
    """Counts the changes of keys and grants in this process, after which a gateway must ask its engine again."""

    def __init__(self) -> None:
        self.count = 0


access_changes: Final = AccessChanges()


class KeyCheck:
    """Secrets, kept as SHA-256 digests; their equal lengths make the comparison's time independent of the input."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._digests = {_name(secret): sha256(secret.encode()).digest() for secret in secrets}

    def of_digest(self, digest: bytes) -> str | None:
        """Return the name of the key with this SHA-256, which does not reveal the key; None if there is none."""
        # All of them are compared, so that the time does not reveal which one matched.
        matching = [name for name, known in self._digests.items() if hmac.compare_digest(digest, known)]
        return matching[0] if matching else None


class SecretFile:
    """Keys in a file, one per line; it may contain comments and empty lines. Changes apply from the next request.

    Args:
        path: the path of the file.
        variable: the variable that sets the path.

    Raises:
        SettingError: the file cannot be read or contains no key.
    """

    def __init__(self, path: Path, variable: str) -> None:
        self._path = path
        self._variable = variable
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise SettingError(f"{variable}: {error}") from None

    def identify(self, token: str) -> str | None:
        """Return the name of the key that `token` is."""
        return self.of_digest(sha256(token.encode(errors="replace")).digest())

    def of_digest(self, digest: bytes) -> str | None:
        """Return the name of the key with this SHA-256. While the file is unreadable, the keys read earlier apply."""
        self._refresh()
        return self._keys.of_digest(digest)

    def first(self) -> str:
        """Return the first key, for a client that must send one."""
        self._refresh()
        return self._first

    def _refresh(self) -> None:
        try:
            if self._state() != self._read_in:
                self._read()
        except (OSError, ValueError) as error:
            logger.warning("%s: %s. The keys read earlier stay valid", self._variable, error)

    def _read(self) -> None:
        state = self._state()
        secrets = keys_in(self._path)
        warn_of_short(secrets, self._variable)
        self._keys, self._first, self._read_in = KeyCheck(secrets), secrets[0], state

    def _state(self) -> tuple[int, ...]:
        """Return values that differ after any change of the file, even after a replacement with the same time."""
        stat = self._path.stat()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


class FirstKey:
    """The key that the page *Keys* makes in the data folder. It is required from the moment the file exists.

    Args:
        path: the file, which may be missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: SecretFile | None = None
        self._is_made = False
        self._fault = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Return the first key of the data folder in `environment`."""
        return cls(data_folder(environment) / FIRST_KEY)

    def is_made(self) -> bool:
        """Return whether the file exists, or did: a lost file opens nothing."""
        self._is_made = self._is_made or self._path.exists()
        return self._is_made

    async def __call__(self, token: str) -> Caller | None:
        """Return the caller for this key; None if it is wrong, or the file contains no key."""
        name = file.identify(token) if (file := self._opened()) else None
        return Caller(name) if name else None

    def of_digest(self, digest: bytes) -> str | None:
        """Return the name of this key if it has this SHA-256."""
        return file.of_digest(digest) if (file := self._opened()) else None

    def first(self) -> str | None:
        """Return the key, for a client that must send it; None until it is made."""
        return file.first() if (file := self._opened()) else None

    def _opened(self) -> SecretFile | None:
        if self._file is None and self.is_made():
            try:
                self._file = SecretFile(self._path, "the first key")
            except SettingError as error:
                if error.detail != self._fault:
                    logger.error("%s. kb rejects all requests until the file contains a key", error.detail)
                self._fault = error.detail
        return self._file


class SettingsKeys:
    """The keys in a setting and in the file of another setting; identifies callers.

    Args:
        fixed: the keys in the setting itself.
        file: the file with more keys.
    """

    def __init__(self, fixed: KeyCheck, file: SecretFile | None) -> None:
        self._sources: list[KeyCheck | SecretFile] = [fixed, *([file] if file else [])]

    async def __call__(self, token: str) -> Caller | None:
        """Return the caller for a key; None if it is wrong."""
        name = self.of_digest(sha256(token.encode(errors="replace")).digest())
        return Caller(name) if name else None

    def of_digest(self, digest: bytes) -> str | None:
        """Return the name of the key with this SHA-256; None if there is none."""
        return next(filter(None, (source.of_digest(digest) for source in self._sources)), None)


def identify_by(secrets: Sequence[str], file: Path | None, variable: str) -> SettingsKeys | None:
    """Return the keys of two settings; None if no keys are set.

    Args:
        secrets: the keys in the setting itself.
        file: the file with more keys.
        variable: the name of the setting; the file's setting has the same name followed by `_FILE`.

    Raises:
        SettingError: the file cannot be read or contains no key.
    """
    warn_of_short(secrets, variable)
    if file is None and not secrets:
        return None
    return SettingsKeys(KeyCheck(secrets), SecretFile(file, f"{variable}_FILE") if file else None)


def identify_engine_key(settings: EngineKey) -> SettingsKeys | None:
    """Return the keys of the HTTP API; None if no keys are set.

    Raises:
        SettingError: the file cannot be read or contains no key.
    """
    key = reveal(settings.api_key)
    return identify_by([key] if key else [], settings.api_key_file, "KB_API_KEY")


def warn_of_short(secrets: Iterable[str], variable: str) -> None:
    """Log a warning if a key is too short."""
    if any(len(secret) < SHORT for secret in secrets):
        logger.warning(
            "%s: a key of fewer than %s characters can be guessed. Make one with `openssl rand -hex 32`",
            variable,
            SHORT,
        )


def _name(secret: str) -> str:
    return sha256(b"name of " + secret.encode()).hexdigest()[:8]
