"""A limit on the processor time of a request, so that none can hold a core."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time

from kb.api.errors import TooLong

_own = threading.local()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Limit the processor time that this thread takes for the block, as far as the block asks `check` or SQLite."""
    _own.until = thread_time() + seconds
    try:
        yield
    finally:
        del _own.until


def is_over() -> bool:
    """Return whether the time of this thread's block is over."""
    return hasattr(_own, "until") and thread_time() > _own.until


def check() -> None:
    """Go on, or raise `TooLong`."""
    if is_over():
        raise TooLong
