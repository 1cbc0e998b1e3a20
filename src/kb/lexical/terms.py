"""Which tokens may stand in some chunk."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

MOST_ADDED = 10_000
"""How many new tokens are kept apart from the others, as objects."""


class TermSet:
    """Tells of most tokens that stand nowhere that they do not, without looking in the database.

    A token takes eight bytes: its hash. It stays when its last chunk is deleted, and of another one the hash may be the
    same: whether one that may be there is, only the database knows. One writer and one reader of the database at a
    time; any number of those who ask.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._state = np.empty(0, np.int64), set[int]()
        self.since: int | None = None
        """The snapshot from which on every token is there; None while the database was not read."""

    def add(self, tokens: Iterable[str]) -> None:
        """Add those of chunks that are written."""
        new = _hashes({*tokens})
        with self._changing:
            hashes, added = self._state
            added.update(new[~_among(new, hashes)].tolist())
            if len(added) > MOST_ADDED:
                self._state = np.union1d(hashes, np.fromiter(added, np.int64)), set()

    def fill(self, blocks: Iterable[Sequence[str]], number: int) -> None:
        """Add those that the database has at a snapshot."""
        read = np.concatenate([np.empty(0, np.int64), *map(_hashes, blocks)])
        with self._changing:
            hashes, added = self._state
            self._state = np.union1d(hashes, read), added
        self.since = number

    def possible(self, tokens: Sequence[str], number: int) -> Sequence[str]:
        """Return those of the tokens that may stand in a chunk of a snapshot."""
        since = self.since
        if since is None or number < since:
            return tokens
        hashes, added = self._state
        found = _among(_hashes(tokens), hashes).tolist()
        return [token for token, is_there in zip(tokens, found, strict=True) if is_there or hash(token) in added]


def _hashes(tokens: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, tokens), np.int64, len(tokens))


def _among(some: NDArray[np.int64], hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some are among the hashes, which ascend."""
    if not hashes.size:
        return np.zeros(some.size, np.bool_)
    found: NDArray[np.bool_] = hashes[np.minimum(np.searchsorted(hashes, some), hashes.size - 1)] == some
    return found
