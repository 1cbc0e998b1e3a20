"""The agents' keys (requirement G-4)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kb.api.errors import SettingError
from kb.asgi.bearer import Keys
from kb.settings import key_text, listed

if TYPE_CHECKING:
    from pathlib import Path

    from kb.asgi.bearer import Identify

logger = logging.getLogger(__name__)


def key_verifier(keys: str | None, file: Path | None) -> Identify | None:
    """Return what identifies the keys; None if there are none: the gateway is open then.

    Raises:
        SettingError: a setting that should bring a key brings none.
    """
    given = listed(keys or "")
    if keys is not None and not given:
        raise SettingError("KB_MCP_API_KEY: holds no key, only commas")
    fixed = Keys(given)
    if file is None:
        return fixed.identify if given else None
    changing = KeyFile(file)
    return lambda token: fixed.identify(token) or changing.identify(token)


class KeyFile:
    """Keys in a file, one a line, beside empty ones and comments. A change takes effect with the next request.

    Raises:
        SettingError: it cannot be read, or holds no key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise SettingError(f"KB_MCP_API_KEY_FILE: {error}") from None

    def identify(self, token: str) -> str | None:
        """Return the name of the key that `token` is; while the file cannot be read, of those that it held before."""
        try:
            if self._state() != self._read_in:
                self._read()
        except (OSError, ValueError) as error:
            logger.warning("KB_MCP_API_KEY_FILE: %s; the keys from before stay", error)
        return self._keys.identify(token)

    def _read(self) -> None:
        state = self._state()
        lines = map(str.strip, self._path.read_text().splitlines())
        secrets = [line for line in lines if line and not line.startswith("#")]
        if not secrets:
            raise ValueError(f"{self._path} holds no key")
        self._keys, self._read_in = Keys(map(key_text, secrets)), state

    def _state(self) -> tuple[int, ...]:
        """Return what differs when the file was changed, also by another with the same time in its place."""
        found = self._path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino
