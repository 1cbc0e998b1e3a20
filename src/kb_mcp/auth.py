"""The agents' keys (requirement G-4)."""

from __future__ import annotations

import logging
from hashlib import sha256
from typing import TYPE_CHECKING

from fastmcp.server.auth import AccessToken, TokenVerifier

from kb.asgi.bearer import Key
from kb.contract.errors import SettingError
from kb.contract.settings import listed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

logger = logging.getLogger(__name__)


def verifier(keys: str | None, file: Path | None) -> TokenVerifier | None:
    """Who checks tokens; None if there are no keys to check against: the gateway is open then.

    Raises:
        SettingError: a setting that should bring a key brings none.
    """
    if keys is None and file is None:
        return None
    given = listed(keys or "")
    if keys is not None and not given:
        raise SettingError("KB_MCP_API_KEY: holds no key, only commas")
    return KeyVerifier(given, KeyFile(file) if file else None)


class KeyFile:
    """Keys in a file, one a line. A change of the file takes effect with the next request.

    Raises:
        SettingError: it cannot be read, or holds no key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise SettingError(f"KB_MCP_API_KEY_FILE: {error}") from None

    def keys(self) -> dict[str, Key]:
        """The keys by name; while the file cannot be read, those that it held before."""
        try:
            if self._path.stat().st_mtime_ns != self._changed:
                self._read()
        except (OSError, ValueError) as error:
            logger.warning("KB_MCP_API_KEY_FILE: %s; the keys from before stay", error)
        return self._keys

    def _read(self) -> None:
        changed = self._path.stat().st_mtime_ns
        keys = _named(self._path.read_text().split())
        if not keys:
            raise ValueError(f"{self._path} holds no key")
        self._keys, self._changed = keys, changed


class KeyVerifier(TokenVerifier):
    """Knows the keys by their digests; those of the file may change while it runs."""

    def __init__(self, keys: Iterable[str], file: KeyFile | None = None) -> None:
        super().__init__()
        self._keys = _named(keys)
        self._file = file

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who sent the token; None if it is none of the keys. What it answers does not hold the token."""
        keys = self._keys | self._file.keys() if self._file else self._keys
        # All of them are compared, so that the time does not tell which one it was.
        matching = [name for name, key in keys.items() if key.matches(token)]
        return AccessToken(token="", client_id=matching[0], scopes=[]) if matching else None


def _named(keys: Iterable[str]) -> dict[str, Key]:
    return {sha256(b"name of " + key.encode()).hexdigest()[:8]: Key(key) for key in keys}
