"""Keys, from settings and from files, compared in constant time (requirements G-4, R-5)."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from kb.api.errors import SettingError
from kb.api.rights import Caller
from kb.settings import EngineKey, key_text, reveal

Identify = Callable[[str], Awaitable[Caller | None]]
"""Answers whose key a token is; None if it is none."""

logger = logging.getLogger(__name__)

SHORT: Final = 16
"""A key of fewer characters can be found by trying."""


class KeyCheck:
    """Secrets, kept as their SHA-256 digests; equal lengths make the comparison's time independent of the input."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._digests = {_name(secret): sha256(secret.encode()).digest() for secret in secrets}

    def identify(self, token: str) -> str | None:
        """Return the name of the key that `token` is, which does not tell the key; None if it is none of them."""
        digest = sha256(token.encode(errors="replace")).digest()
        # All of them are compared, so that the time does not tell which one it was.
        matching = [name for name, known in self._digests.items() if hmac.compare_digest(digest, known)]
        return matching[0] if matching else None


class SecretFile:
    """Keys in a file, one a line, beside empty ones and comments. A change takes effect with the next request.

    Args:
        path: of the file.
        variable: names it.

    Raises:
        SettingError: it cannot be read, or holds no key.
    """

    def __init__(self, path: Path, variable: str) -> None:
        self._path = path
        self._variable = variable
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise SettingError(f"{variable}: {error}") from None

    def identify(self, token: str) -> str | None:
        """Return the name of the key that `token` is; while the file cannot be read, of those that it held before."""
        self._refresh()
        return self._keys.identify(token)

    def first(self) -> str:
        """Return the first key, for who sends one."""
        self._refresh()
        return self._first

    def _refresh(self) -> None:
        try:
            if self._state() != self._read_in:
                self._read()
        except (OSError, ValueError) as error:
            logger.warning("%s: %s; the keys from before stay", self._variable, error)

    def _read(self) -> None:
        state = self._state()
        lines = map(str.strip, self._path.read_text().splitlines())
        secrets = [key_text(line) for line in lines if line and not line.startswith("#")]
        if not secrets:
            raise ValueError(f"{self._path} holds no key")
        warn_of_short(secrets, self._variable)
        self._keys, self._first, self._read_in = KeyCheck(secrets), secrets[0], state

    def _state(self) -> tuple[int, ...]:
        """Return what differs when the file was changed, also by another with the same time in its place."""
        stat = self._path.stat()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


def identify_by(secrets: Sequence[str], file: Path | None, variable: str) -> Identify | None:
    """Return what identifies keys; None if there are none.

    Args:
        secrets: that stand in the setting itself.
        file: where more of them stand.
        variable: names the setting; the file's is named so with `_FILE` behind.

    Raises:
        SettingError: the file cannot be read, or holds no key.
    """
    warn_of_short(secrets, variable)
    fixed = KeyCheck(secrets)
    if file is None and not secrets:
        return None
    changing = SecretFile(file, f"{variable}_FILE") if file else None

    async def identify(token: str) -> Caller | None:
        name = fixed.identify(token) or (changing.identify(token) if changing else None)
        return Caller(name) if name else None

    return identify


def identify_engine_key(settings: EngineKey) -> Identify | None:
    """Return what identifies the keys of the HTTP API; None if there are none.

    Raises:
        SettingError: the file cannot be read, or holds no key.
    """
    key = reveal(settings.api_key)
    return identify_by([key] if key else [], settings.api_key_file, "KB_API_KEY")


def warn_of_short(secrets: Iterable[str], variable: str) -> None:
    """Say in the log that a key is too short."""
    if any(len(secret) < SHORT for secret in secrets):
        logger.warning(
            "%s: a key of fewer than %s characters can be guessed; `openssl rand -hex 32` makes one", variable, SHORT
        )


def _name(secret: str) -> str:
    return sha256(b"name of " + secret.encode()).hexdigest()[:8]
