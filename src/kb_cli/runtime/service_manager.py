"""Messages for systemd (`sd_notify(3)`): kb is ready, is stopping, and is not stuck."""

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

READY, STOPPING, WATCHDOG = "READY=1", "STOPPING=1", "WATCHDOG=1"


def notify(state: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send a state to the service manager, if there is one; it may be gone."""
    if sys.platform != "win32" and (address := environment.get("NOTIFY_SOCKET")):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)


class Watchdog:
    """Notifies systemd twice in each of its intervals that kb works.

    Args:
        environment: `WATCHDOG_USEC` is the interval in microseconds; without it, nothing is sent.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, environment: Mapping[str, str] = os.environ, clock: Callable[[], float] = time.monotonic
    ) -> None:
        interval = environment.get("WATCHDOG_USEC", "")
        self._pause = int(interval) / 2e6 if interval.isdigit() else float("inf")
        self._environment = environment
        self._clock = clock
        self._due = 0.0 if interval.isdigit() else float("inf")

    def tick(self) -> None:
        """Send the message, if it is due."""
        if self._clock() >= self._due:
            self._due = self._clock() + self._pause
            notify(WATCHDOG, self._environment)
