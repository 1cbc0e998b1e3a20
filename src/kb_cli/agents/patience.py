"""How long a hook waits for an engine that may be gone, may hang, or may be another program: a few seconds, once."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from kb.running_engine import data_folder

FIRST_SECONDS: Final = 2.5
LATER_SECONDS: Final = 0.3
"""How long the next hooks wait, and say nothing, until the engine answers or a session begins."""
MARK: Final = "hook.failed"
"""The file in the data folder that the last hook left whose engine did not answer."""


@contextmanager
def patience(*, is_new: bool) -> Iterator[None]:
    """Limit the time of the block, and remember whether it failed; with `is_new`, forget an earlier failure.

    Raises:
        Exception: what the block raised, if it is the first failure.
    """
    mark = data_folder() / MARK
    has_failed = mark.exists() and not is_new
    try:
        with limited(LATER_SECONDS if has_failed else FIRST_SECONDS):
            yield
    except Exception:
        with suppress(OSError):
            mark.touch()
        if not has_failed:
            raise
    else:
        with suppress(OSError):
            mark.unlink(missing_ok=True)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block after some seconds, wherever it waits; on Windows, do nothing."""

    def end(*_: Any) -> None:  # noqa: ANN401 - a number and a frame
        raise TimeoutError(f"the engine did not answer within {seconds} seconds")

    if sys.platform == "win32":
        yield
        return
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
