"""The running engine on this machine, which writes its address into the lock file of its data folder."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

LOCK: Final = "kb.lock"
FIRST_KEY: Final = "api.key"
"""The file in the data folder with the key that the page *Keys* makes if none is set."""

ENGINE_GONE: Final = "the engine does not answer"
"""What `/readyz` of a gateway says that cannot reach its engine."""

MAX_BYTES: Final = 4096
LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "::1")
CONNECT_SECONDS: Final = 1


class Running(NamedTuple):
    """An engine: its process, its address, and when it started (seconds since 1970)."""

    pid: int
    url: str
    since: float

    def __str__(self) -> str:
        return f"{self.url} (process {self.pid})"


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`$XDG_DATA_HOME/kb`, by default `~/.local/share/kb`; KB_DATA_DIR overrides both."""
    if chosen := environment.get("KB_DATA_DIR", "").strip():
        return Path(chosen).expanduser()
    return Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "kb"


def first_key(folder: Path) -> str | None:
    try:
        return (folder / FIRST_KEY).read_text().strip() or None
    except (OSError, ValueError):
        return None


def lock_path(folder: Path) -> Path:
    return folder / LOCK


def write_running(folder: Path, running: Running | None) -> None:
    """Record in a folder's lock file which engine uses it, if any, and at its port which folder; ignore errors."""
    import json  # delayed, so that the command line starts faster

    url = running.url if running else _last_address(folder)
    with suppress(OSError):  # a full disk; or Windows, where a locked file cannot be written
        lock_path(folder).write_text(json.dumps(running._asdict()) if running else "")
    with suppress(OSError, RuntimeError):
        record = _record(url)
        if record and running:
            record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            record.write_text(str(folder.absolute()))
        elif record:
            record.unlink(missing_ok=True)


def folder_of(url: str) -> Path | None:
    """Return the data folder of a running engine of this account on this machine; None for another one."""
    folder = recorded_folder(url)
    running = find_running(folder) if folder else None
    return folder if running and local_port(running.url) == local_port(url) else None


def recorded_folder(url: str) -> Path | None:
    """Return the data folder of the last engine of this account at the port of an address of this machine."""
    try:
        record = _record(url)
        return Path(record.read_text()) if record else None
    except (OSError, ValueError, RuntimeError):
        return None


def _record(url: str) -> Path | None:
    """Return the file with the data folder of the engine at a port of this machine."""
    base = os.environ.get("XDG_RUNTIME_DIR") or Path.home() / ".local" / "state"
    return Path(base, "kb", "engines", str(port)) if (port := local_port(url)) else None


def local_port(url: str) -> int | None:
    """Return the port of an address of this machine; None for another machine."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return parts.port if parts.hostname in LOCAL_NAMES else None


def _last_address(folder: Path) -> str:
    import json

    with suppress(OSError, ValueError, TypeError):
        return Running(**json.loads(lock_path(folder).read_bytes()[:MAX_BYTES])).url
    return ""


def find_running(folder: Path) -> Running | None:
    """Return the engine that uses a folder, if its process exists and listens, because process ids are reused."""
    import json

    try:
        with lock_path(folder).open("rb") as file:
            running = Running(**json.loads(file.read(MAX_BYTES)))
        return running if _is_alive(running.pid) and _listens(running.url) else None
    except (OSError, ValueError, TypeError):
        return None


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # where signal 0 would be Ctrl-C
        return True
    try:
        os.kill(pid, 0)
    except PermissionError:  # another account's
        return True
    except (OSError, OverflowError):
        return False
    return True


def _listens(url: str) -> bool:
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
