"""Read files that may not respond: a file on a missing disk, or one still being downloaded, blocks forever."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

BLOCKED_SECONDS: Final = 30.0
"""After this time without a response, kb skips a file."""


class TimedReader:
    """Makes calls in a thread of its own and gives up on a call that takes too long."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self.is_stuck = False
        # A thread that blocks in a system call cannot be stopped, so the program must not wait for it.
        threading.Thread(target=self._run, name="kb-reader", daemon=True).start()

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function.

        Raises:
            OSError: it did not return in time.
        """
        future: Future[T] = Future()
        self._calls.put((future, function, arguments))
        try:
            return future.result(BLOCKED_SECONDS)
        except TimeoutError:
            if future.done():  # the system's own error, such as a server timeout
                return future.result()
            self.is_stuck = True
            reason = f"it did not respond for {BLOCKED_SECONDS:g} seconds; is its disk connected?"
            raise OSError(errno.ETIMEDOUT, reason) from None

    def end(self) -> None:
        self._calls.put(None)

    def _run(self) -> None:
        while call := self._calls.get():
            future, function, arguments = call
            _fulfil(future, partial(function, *arguments))


class Latest:
    """The result of a function that may block for ever, such as one that looks at a network disk that is gone.

    Args:
        seconds: the longest time to wait. While a call is late, nobody waits for it, and none is started.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._call: Future[Any] = Future()
        self._call.set_result(None)
        self._is_late = False

    def of(self, function: Callable[[], T]) -> T:
        """Return what the function returns now.

        Raises:
            OSError: it did not return in time, or an earlier call has not returned yet.
        """
        with self._lock:
            if self._call.done():
                self._call, self._is_late = Future(), False
                threading.Thread(target=_fulfil, args=(self._call, function), name="kb-look", daemon=True).start()
            call, patience = self._call, 0 if self._is_late else self._seconds
        try:
            result: T = call.result(patience)
        except TimeoutError:
            self._is_late = not call.done()
            raise OSError(errno.ETIMEDOUT, "its disk does not respond; is it connected?") from None
        return result


def _fulfil(future: Future[T], function: Callable[[], T]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # noqa: BLE001 - raised in the calling thread
        future.set_exception(error)


_idle: list[TimedReader] = []


@contextmanager
def reader() -> Iterator[TimedReader]:
    """Yield a reader; it is reused afterwards unless it is stuck."""
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
"""Folders with an unresponsive file: their other files would not respond either."""


def forget_silent() -> None:
    """Try all folders again, in a new round."""
    _silent.clear()


@contextmanager
def listening(path: str | Path, own: TimedReader | None = None) -> Iterator[TimedReader]:
    """Yield a reader for a path; if it gets stuck, later calls in the same folder fail at once.

    Args:
        own: a reader to use instead of a shared one.

    Raises:
        OSError: another file in the same folder did not respond.
    """
    folder = os.path.dirname(path)  # noqa: PTH120 - many thousand paths
    if folder in _silent:
        raise OSError(errno.ETIMEDOUT, "another file in its folder did not respond")
    with nullcontext(own) if own else reader() as patient:
        try:
            yield patient
        finally:
            if patient.is_stuck:
                _silent.add(folder)


def ask(path: str | Path, function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function that reads a path.

    Raises:
        OSError: it did not return in time, or another file in the folder did not respond before.
    """
    with listening(path) as patient:
        return patient.call(function, *arguments)


def ask_folder(folder: Path, function: Callable[[Path], T]) -> T:
    """Return the result of a function that reads a folder. Raises the same errors as `ask`."""
    return ask(folder / "all", function, folder)


def open_file(path: str) -> int:
    """Return a descriptor for reading a file. If the path has become a pipe or the like, the timeout applies."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
