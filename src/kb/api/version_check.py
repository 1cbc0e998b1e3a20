"""Compatible versions of engine and client, and the messages if they are not compatible (requirement S-9).

An engine sends its version in the header `Kb-Version` of each response, a client in `User-Agent`.
"""

import re
from typing import Final

from kb import __version__

MIN_ENGINE_VERSION: Final = "3.0.0"
MIN_CLIENT_VERSION: Final = "3.0.0"
HEADER: Final = "Kb-Version"
USER_AGENT: Final = f"kb/{__version__}"


def parts(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; a version without numbers sorts first."""
    return tuple(map(int, re.findall(r"\d{1,9}", version)[:3])) or (0,)


def engine_mismatch(version: str) -> str | None:
    """Return the reason why this program cannot work with an engine of this version; None if it can."""
    if parts(version) < parts(MIN_ENGINE_VERSION):
        return f"The engine has version {version}, but kb needs {MIN_ENGINE_VERSION} or later. Upgrade the engine."
    if parts(version)[0] > parts(__version__)[0]:
        return f"The engine has version {version}, which is too new for kb {__version__}. Upgrade kb."
    return None


def client_mismatch(user_agent: str) -> str | None:
    """Return the reason why this engine refuses a client; None if it accepts it, or if the client is not kb."""
    client = re.match(r"kb/([\w.]+)", user_agent)
    if client and parts(client[1]) < parts(MIN_CLIENT_VERSION):
        return f"This is kb {client[1]}, but the engine {__version__} needs {MIN_CLIENT_VERSION} or later. Upgrade kb."
    return None
