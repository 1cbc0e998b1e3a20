"""The agents' keys (requirement G-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import SettingError
from kb.asgi.keys import identify_by
from kb.settings import listed

if TYPE_CHECKING:
    from pathlib import Path

    from kb.asgi.keys import Identify


def key_verifier(keys: str | None, file: Path | None) -> Identify | None:
    """Return what identifies the keys; None if there are none: the gateway is open then.

    Raises:
        SettingError: a setting that should bring a key brings none.
    """
    given = listed(keys or "")
    if keys is not None and not given:
        raise SettingError("KB_MCP_API_KEY: holds no key, only commas")
    return identify_by(given, file, "KB_MCP_API_KEY")
