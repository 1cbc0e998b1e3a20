"""A stop that cannot wait: what a thread does can only be waited for, and who stops a service kills it at last."""

from __future__ import annotations

import logging
import os
import threading
from types import FrameType
from typing import Final

from kb_cli.runtime.exit_codes import INTERRUPTED

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 4.0
"""How long a stop may take."""


def end_in_time(code: int) -> None:
    """End the process with `code` if it has not ended by itself in time; what it had not committed is not there."""
    timer = threading.Timer(STOP_SECONDS, _end, [code])
    timer.daemon = True
    timer.start()


def interrupt_start(number: int, frame: FrameType | None) -> None:
    """Handle a signal that stops the program while it starts."""
    end_in_time(INTERRUPTED)
    raise KeyboardInterrupt


def _end(code: int) -> None:
    if code == 0:
        logger.warning("what was under way took more than %s seconds to stop: it was cut off", STOP_SECONDS)
    os._exit(code)
