"""Reading files that may not answer: one on a disk that is away, or that is still being fetched, blocks for ever."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

BLOCKED_SECONDS: Final = 30.0
"""After so long without an answer a file is left alone."""


class TimedReader:
    """Makes calls in a thread of its own, and gives up on one that takes too long."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self.is_stuck = False
        # A thread that blocks in the system cannot be ended: the program must not wait for it.
        threading.Thread(target=self._run, name="kb-reader", daemon=True).start()

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return what a function returns.

        Raises:
            OSError: it did not return in time.
        """
        future: Future[T] = Future()
        self._calls.put((future, function, arguments))
        try:
            return future.result(BLOCKED_SECONDS)
        except TimeoutError:
            if future.done():  # the system's own word, as of a server that does not answer
                return future.result()
            self.is_stuck = True
            reason = f"it gave no answer for {BLOCKED_SECONDS:g} seconds; is its disk there?"
            raise OSError(errno.ETIMEDOUT, reason) from None

    def end(self) -> None:
        """Let the thread end."""
        self._calls.put(None)

    def _run(self) -> None:
        while call := self._calls.get():
            future, function, arguments = call
            try:
                future.set_result(function(*arguments))
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                future.set_exception(error)


_idle: list[TimedReader] = []


@contextmanager
def reader() -> Iterator[TimedReader]:
    """A reader; another one may have it afterwards, unless it is stuck."""
    try:
        mine = _idle.pop()
    except IndexError:
        mine = TimedReader()
    try:
        yield mine
    finally:
        if not mine.is_stuck:
            _idle.append(mine)


_silent: set[str] = set()
"""Folders in which something gave no answer: what is beside it would not either."""


def forget_silent() -> None:
    """Ask everywhere again, as a new round does."""
    _silent.clear()


@contextmanager
def listening(path: str | Path, own: TimedReader | None = None) -> Iterator[TimedReader]:
    """A reader for what is at a path; if it gets stuck, nothing else in that folder is asked any more.

    Args:
        path: the path.
        own: a reader to use, instead of any.

    Raises:
        OSError: something beside it gave no answer.
    """
    folder = os.path.dirname(path)  # noqa: PTH120 - many thousand paths
    if folder in _silent:
        raise OSError(errno.ETIMEDOUT, "a file beside it gave no answer")
    with nullcontext(own) if own else reader() as patient:
        try:
            yield patient
        finally:
            if patient.is_stuck:
                _silent.add(folder)


def ask(path: str | Path, function: Callable[..., T], *arguments: object) -> T:
    """Return what a function returns that looks at a path.

    Raises:
        OSError: it did not return in time, or something beside it did not before.
    """
    with listening(path) as patient:
        return patient.call(function, *arguments)


def ask_folder(folder: Path, function: Callable[[Path], T]) -> T:
    """Return what a function returns that looks into a folder. Raises as `ask`."""
    return ask(folder / "all", function, folder)


def open_file(path: str) -> int:
    """Return a descriptor for reading a file; what is no file any more, such as a pipe, is not waited for."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
