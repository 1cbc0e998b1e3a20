"""The sessions of visitors, which outlive a restart, in a file that opens none of them."""

from __future__ import annotations

import json
import logging
import secrets
import time
from dataclasses import asdict, dataclass
from hashlib import sha256, shake_256
from operator import xor
from pathlib import Path
from typing import Final

from kb.filesystem import write_private

logger = logging.getLogger(__name__)

FILE: Final = "web-sessions.json"
DAYS: Final = 30
MAX_SESSIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Session:
    """The session of a visitor, signed in with a key.

    Attributes:
        right: the right of the key: `read`, `write` or `admin`.
        seed: the base of its tokens; it stays the same when the id changes.
        since: when its id was made, in seconds.
        until: when it ends.
    """

    key: str
    right: str
    seed: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class _Sealed:
    """A session as kept: only the id of the session, which is in the browser, opens its key and its seed."""

    secret: str
    salt: str
    right: str
    since: float
    until: float


class SessionFile:
    """The sessions by the digests of their ids.

    Args:
        path: the file, which may be missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
            self._kept = {digest: _Sealed(**row) for digest, row in kept.items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            logger.warning("everyone has to sign in again: %s cannot be read: %s", path, error)
            self._kept = {}

    def session(self, visit_id: str) -> Session | None:
        sealed = self._kept.get(digest_of(visit_id))
        if sealed is None or sealed.until < time.time():
            return None
        seed, _, key = _padded(bytes.fromhex(sealed.secret), sealed.salt, visit_id).decode().partition(" ")
        return Session(key, sealed.right, seed, sealed.since, sealed.until)

    def add(self, visit_id: str, session: Session, instead_of: str = "") -> None:
        """Keep a session under an id, in place of another one."""
        salt = secrets.token_hex(16)
        secret = _padded(f"{session.seed} {session.key}".encode(), salt, visit_id).hex()
        others = {digest: row for digest, row in self._kept.items() if digest != digest_of(instead_of)}
        newest = list(others.items())[1 - MAX_SESSIONS :]
        own = _Sealed(secret, salt, session.right, session.since, session.until)
        self._keep({**dict(newest), digest_of(visit_id): own})

    def end(self, visit_id: str) -> None:
        if (digest := digest_of(visit_id)) in self._kept:
            self._keep({other: row for other, row in self._kept.items() if other != digest})

    def end_others(self, visit_id: str) -> int:
        """End all sessions except one; return their number."""
        ended = [digest for digest in self._kept if digest != digest_of(visit_id)]
        self._keep({digest: row for digest, row in self._kept.items() if digest not in ended})
        return len(ended)

    def __len__(self) -> int:
        return len(self._kept)

    def _keep(self, sessions: dict[str, _Sealed]) -> None:
        self._kept = {digest: row for digest, row in sessions.items() if row.until > time.time()}
        try:
            write_private(self._path, json.dumps({digest: asdict(row) for digest, row in self._kept.items()}))
        except OSError as error:  # a full disk keeps nobody out
            logger.warning("sessions end with this process: %s cannot be written: %s", self._path, error)


def digest_of(visit_id: str) -> str:
    return sha256(visit_id.encode()).hexdigest()


def _padded(content: bytes, salt: str, visit_id: str) -> bytes:
    """Return a text combined with a pad that only the id and the salt give; the same call undoes it."""
    pad = shake_256(f"kb-session {salt} {visit_id}".encode()).digest(len(content))
    return bytes(map(xor, content, pad))
