"""This very program, and the server's settings that are set now: what others need to start it alike."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

NOT_FOR_SERVER: Final = {"KB_ENGINE_URL", "KB_MCP_URL", "KB_PROFILE"}
PATHS: Final = ("_DIR", "_FILE")
"""How the names of settings end that are paths."""


def program() -> str:
    """Return the path of this very kb."""
    beside = Path(sys.executable).with_name("kb")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())


def own_settings() -> dict[str, str]:
    """Return the settings of the server that are set now; a path counts from anywhere."""
    return {
        name: str(Path(value).expanduser().absolute()) if name.endswith(PATHS) else value
        for name, value in sorted(os.environ.items())
        if value and name.startswith("KB_") and name not in NOT_FOR_SERVER
    }
