"""Limit the duration of a stop: a thread cannot be interrupted, and a service manager eventually kills the process."""

import logging
import os
import threading
from types import FrameType
from typing import Final

from kb_cli.runtime.exit_codes import INTERRUPTED

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 4.0
"""The maximum duration of a stop."""


def end_in_time(code: int) -> None:
    """Exit the process with `code` if it has not exited in time; uncommitted work is lost."""
    timer = threading.Timer(STOP_SECONDS, _end, [code])
    timer.daemon = True
    timer.start()


def interrupt_start(number: int, frame: FrameType | None) -> None:
    """Handle a signal that stops the program during its start."""
    end_in_time(INTERRUPTED)
    raise KeyboardInterrupt


def _end(code: int) -> None:
    if code == 0:
        logger.warning("kb did not stop within %s seconds and was ended; unfinished requests are lost", STOP_SECONDS)
    os._exit(code)
