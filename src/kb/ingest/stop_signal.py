"""How work that takes long learns that the engine stops."""

from __future__ import annotations

import threading

from kb.api.errors import Stopped


class StopSignal:
    """Whether the engine was told to stop. Whoever works for long checks it again and again."""

    def __init__(self) -> None:
        self._requested = threading.Event()

    def request(self) -> None:
        """Have all work end at its next check."""
        self._requested.set()

    @property
    def is_requested(self) -> bool:
        """Whether `request` was called."""
        return self._requested.is_set()

    def check(self) -> None:
        """Go on, unless the engine stops.

        Raises:
            Stopped: it does.
        """
        if self.is_requested:
            raise Stopped
