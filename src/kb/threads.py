"""Work that goes on in the background for as long as a block runs."""

from __future__ import annotations

import threading
from typing import Self


class BackgroundThread:
    """A thread that begins with a block; at the end of the block it is told to stop and waited for.

    Args:
        name: what it is called.
    """

    def __init__(self, name: str) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        """Work until `_stopping` is set."""
        raise NotImplementedError
