"""Background work for the duration of a block."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class BackgroundThread(ABC):
    """A thread that starts with a block, and is stopped and joined at its end."""

    def __init__(self, name: str) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Work until `_stopping` is set."""
