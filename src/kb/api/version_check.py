"""Which engines and clients understand each other, and what to do if they do not (requirement S-9).

An engine says its version in the header `Kb-Version` of each answer, a client in `User-Agent`.
"""

from __future__ import annotations

import re
from typing import Final

from kb import __version__

MIN_ENGINE_VERSION: Final = "3.0.0"
MIN_CLIENT_VERSION: Final = "3.0.0"
HEADER: Final = "Kb-Version"
USER_AGENT: Final = f"kb/{__version__}"


def parts(version: str) -> tuple[int, ...]:
    """Return the version's numbers; words come before all of them."""
    return tuple(map(int, re.findall(r"\d{1,9}", version)[:3])) or (0,)


def engine_mismatch(version: str) -> str | None:
    """Why this program cannot work with an engine of that version; None if it can."""
    if parts(version) < parts(MIN_ENGINE_VERSION):
        return f"The engine is {version}, and this kb needs {MIN_ENGINE_VERSION} or later: upgrade the engine."
    if parts(version)[0] > parts(__version__)[0]:
        return f"The engine is {version}, which is newer than this kb {__version__} understands: upgrade kb."
    return None


def client_mismatch(user_agent: str) -> str | None:
    """Why this engine does not serve that client; None if it does, or if it is none of ours."""
    client = re.match(r"kb/([\w.]+)", user_agent)
    if client and parts(client[1]) < parts(MIN_CLIENT_VERSION):
        return f"This is kb {client[1]}, and the engine {__version__} needs {MIN_CLIENT_VERSION} or later: upgrade kb."
    return None
