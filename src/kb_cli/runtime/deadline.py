"""Limit the duration of a stop: a thread cannot be interrupted, and a service manager eventually kills the process."""

import logging
import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from kb_cli.runtime.exit_codes import INTERRUPTED

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 4.0
"""The maximum duration of a stop."""


def end_in_time(code: int, is_unfinished: Callable[[], bool] = lambda: False) -> None:
    """Exit the process with `code` if it has not exited in time; uncommitted work is lost.

    `is_unfinished` returns whether requests would be lost, for the message.
    """
    timer = threading.Timer(STOP_SECONDS, _end, [code, is_unfinished])
    timer.daemon = True
    timer.start()


def interrupt_start(number: int, frame: FrameType | None) -> None:
    """Handle a signal that stops the program during its start."""
    end_in_time(INTERRUPTED)
    raise KeyboardInterrupt


def _end(code: int, is_unfinished: Callable[[], bool]) -> None:
    if code == 0:
        lost = "; unfinished requests are lost" if is_unfinished() else ""
        logger.warning("kb did not stop within %s seconds and was ended%s", STOP_SECONDS, lost)
    os._exit(code)
