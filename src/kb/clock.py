"""kb's own clock, which is not affected by a wrong clock of the machine. It sets all dates and expiry times.

While running, it records the machine's time, along with the monotonic clock and the boot id. From these it detects a
jump, after which the machine's time is impossible. Nothing expires until the machine's clock has stayed there for a
day, or `kb doctor --accept-clock` confirms it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final
from uuid import uuid4

from pydantic import Field, TypeAdapter

logger = logging.getLogger(__name__)

REMEDY: Final = "if it is right, run 'kb doctor --accept-clock'"

STEP_SECONDS: Final = 3600.0
"""The largest change of a clock that is accepted while the machine runs, because time servers and people set it."""

BOOT_SECONDS: Final = 600.0
"""The time after a boot in which a time server may set the clock of a machine that has no clock of its own."""

EARLIEST: Final = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
"""A machine with an earlier date has no clock, and kb ignores its time: kb did not exist then."""

OFF_SECONDS: Final = 36 * 3600.0
"""A machine that was off for longer keeps everything for one more day."""

PAUSED_SECONDS: Final = 31 * 86_400.0
"""The largest jump of a running machine's clock after a pause, as of a virtual machine.

For a larger jump, or any jump back, dates come from kb's own clock in the meantime. A machine that was off may have
been off for years, so dates come from its clock, and only expiry waits for a day.
"""

STAY_SECONDS: Final = 86_400.0
"""The time for which a clock that jumped must be steady until it is accepted."""

NOTE_SECONDS: Final = 30.0
"""How often the time is recorded."""

TICK: Final = 0.001
MARK: Final = "clock.json"
ACCEPTED: Final = "clock-accepted"
"""A file in the data folder: the machine's time that another process has confirmed."""


Seconds = Annotated[float, Field(allow_inf_nan=False, ge=-1e12, le=1e12)]


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The machine's time in seconds, the time since its boot, and the boot id."""

    at: Seconds
    uptime: Seconds
    boot: str

    def gap(self, now: ClockReading) -> float:
        """Return how far the machine's time is from the expected time at `now`."""
        passed = now.uptime - self.uptime if now.boot == self.boot else 0.0
        return now.at - self.at - passed

    def explains(self, now: ClockReading) -> bool:
        """Return whether the machine's time is possible after this reading."""
        is_new_boot = now.boot != self.boot or self.uptime < BOOT_SECONDS
        most = OFF_SECONDS if is_new_boot else STEP_SECONDS
        return -STEP_SECONDS <= self.gap(now) <= most


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump of the machine's clock that is not accepted yet.

    Args:
        moved: the size of the jump in seconds.
        since: when it was detected, by the machine's clock after the jump.
        seen: the last reading.
        own: kb's own time at that reading.
        is_dated_by_machine: whether dates still come from the machine's clock.
    """

    moved: Seconds
    since: Seconds
    seen: ClockReading
    own: Seconds
    is_dated_by_machine: bool

    @property
    def until(self) -> float:
        """When it will be accepted, by the machine's clock."""
        return self.since + STAY_SECONDS


@dataclass(frozen=True, slots=True)
class _Noted:
    mark: ClockReading
    jump: Jump | None
    last: Seconds


_NOTES: Final = TypeAdapter(_Noted)
_MARKS: Final = TypeAdapter(ClockReading)


class Clock:
    """The time for kb's dates and expiry. Thread-safe.

    Args:
        read: returns the machine's current time.
    """

    def __init__(self, read: Callable[[], ClockReading] | None = None) -> None:
        self._read = read or read_machine
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._noted_at = float("-inf")
        self._mark: ClockReading | None = None
        self._jump: Jump | None = None
        self._last = 0.0

    def keep_in(self, folder: Path) -> None:
        """Continue from the record in a data folder, and record the time there from now on."""
        with self._lock:
            self._folder = folder
            self._mark, self._jump, self._last = _load(folder / MARK)
            self._mark = self._mark or _left(folder)
            self._noted_at = float("-inf")
            self._observe()

    def forget(self) -> None:
        """Record the time, leave the data folder, and follow the machine's clock from now on."""
        with self._lock:
            self._note()
            self._folder, self._mark, self._jump, self._last = None, None, None, 0.0

    def now(self) -> datetime:
        """Return kb's own time, later than any returned before."""
        with self._lock:
            own = max(self._observe(), self._last + TICK)
            self._last = own
        return _datetime(own)

    def expiry(self) -> datetime:
        """Return the time for expiry, which is not affected by a clock that jumped."""
        with self._lock:
            own = self._observe()
            at = min(own, self._jump.own) if self._jump else own
        return _datetime(at)

    def look(self) -> Jump | None:
        """Check the machine's clock; return any jump that isn't accepted yet. Nothing expires until it is."""
        with self._lock:
            self._observe()
            return self._jump

    def _observe(self) -> float:
        """Return kb's own time."""
        now, mark = self._read(), self._mark
        if self._is_accepted(now):
            self._believe(now)
        elif mark is None or mark.at < EARLIEST or mark.explains(now):
            self._come_back(now)
        else:
            self._follow(mark, now)
        if now.uptime - self._noted_at >= NOTE_SECONDS or self._noted_at > now.uptime:
            self._note()
            self._noted_at = now.uptime
        return now.at if self._jump is None or self._jump.is_dated_by_machine else self._jump.own

    def _come_back(self, now: ClockReading) -> None:
        """Follow the machine's clock, which is correct."""
        if self._jump:
            logger.warning("the machine's clock is right again: old versions and deleted documents expire as usual")
            self._leave(self._jump)
        self._mark, self._jump = now, None

    def _leave(self, jump: Jump) -> None:
        """Keep times from a wrong clock from delaying kb's own time."""
        if jump.is_dated_by_machine:
            self._last = 0.0
        if self._folder:
            (self._folder / ACCEPTED).unlink(missing_ok=True)

    def _follow(self, mark: ClockReading, now: ClockReading) -> None:
        """Track the clock that jumped; accept it when it has stayed there long enough."""
        jump = self._jump
        if jump is None or not jump.seen.explains(now):
            if jump:
                self._leave(jump)
            moved, is_same = mark.gap(now), now.boot == mark.boot
            own = max(self._last, mark.at + (now.uptime - mark.uptime if is_same else 0.0))
            self._jump = jump = Jump(moved, now.at, now, own, moved > 0 and (not is_same or moved <= PAUSED_SECONDS))
            self._noted_at = float("-inf")
            logger.warning("%s", describe(jump))
        elif now.at >= jump.until:
            logger.warning(
                "the machine's clock has been steady for a day: old versions and deleted documents expire by it"
            )
            self._believe(now)
        else:
            passed = now.uptime - jump.seen.uptime if now.boot == jump.seen.boot else max(now.at - jump.seen.at, 0.0)
            self._jump = replace(jump, seen=now, own=jump.own + passed)

    def _believe(self, now: ClockReading) -> None:
        self._mark, self._jump, self._last = now, None, 0.0
        self._noted_at = float("-inf")

    def _is_accepted(self, now: ClockReading) -> bool:
        """Return whether another process has confirmed the clock, and acknowledge that."""
        is_ahead = self._last > now.at + TICK
        if self._folder is None or not (self._jump or is_ahead):
            return False
        said = _accepted(self._folder / ACCEPTED)
        if said is None or not said.explains(now):
            return False
        with suppress(OSError):
            (self._folder / ACCEPTED).unlink()
            return True
        return False

    def _note(self) -> None:
        if self._folder is None or self._mark is None:
            return
        noted = _NOTES.dump_json(_Noted(self._mark, self._jump, self._last))
        part = self._folder / f"{MARK}.part"
        with suppress(OSError):  # a full disk: the next record may succeed
            part.write_bytes(noted)
            part.replace(self._folder / MARK)


def accept(folder: Path, now: ClockReading | None = None) -> None:
    """Confirm to the engine of a data folder that the machine's present time is correct."""
    (folder / ACCEPTED).touch(mode=0o600)
    (folder / ACCEPTED).write_bytes(_MARKS.dump_json(now or read_machine()))


def _accepted(path: Path) -> ClockReading | None:
    """Return the machine's time that a person has confirmed, if any."""
    try:
        return _MARKS.validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def describe(jump: Jump) -> str:
    """Return a message about a jump, with the remedy."""
    return f"{event(jump)}. {REMEDY[0].upper()}{REMEDY[1:]}"


def event(jump: Jump) -> str:
    """Return a message about a jump."""
    until = _datetime(jump.until)
    way = "later" if jump.moved > 0 else "earlier"
    return (
        f"the machine's clock is {_length(abs(jump.moved))} {way} than expected: nothing expires until"
        f" {until:%Y-%m-%d %H:%M} UTC by that clock"
    )


def shown(at: float) -> str:
    """Return a time in seconds in the format of the API."""
    return _datetime(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _datetime(at: float) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0.0), _LAST_YEAR), UTC)


def _length(seconds: float) -> str:
    days = seconds / 86_400
    return f"{days:,.0f} days" if days >= 2 else f"{seconds / 3600:.0f} hours"


LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
_LAST_YEAR: Final = LAST.timestamp()


def _left(folder: Path) -> ClockReading | None:
    """Return the last modification of a database from an earlier kb, which recorded no time."""
    with suppress(OSError, ValueError):
        return ClockReading(max(path.stat().st_mtime for path in folder.glob("kb.db*")), 0.0, "")
    return None


def _load(path: Path) -> tuple[ClockReading | None, Jump | None, float]:
    """Return the recorded values; none if they cannot be read."""
    try:
        noted = _NOTES.validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None, None, 0.0
    return noted.mark, noted.jump, noted.last


def read_machine() -> ClockReading:
    """Return the machine's current time."""
    return ClockReading(time.time(), uptime(), boot_id())


def uptime() -> float:
    """Return a monotonic time that includes sleep, if the machine has such a clock."""
    if sys.platform == "win32":
        return time.monotonic()
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None and sys.platform == "darwin":  # there `time.monotonic` stops in sleep, and this clock does not
        boottime = time.CLOCK_MONOTONIC
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


_UNKNOWN_BOOT: Final = f"process {uuid4()}"
"""Without a boot id each process has its own, because the time between two processes is unknown."""


def boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return _UNKNOWN_BOOT


own: Final = Clock()
"""The clock of this process."""


def own_time() -> float:
    """Return kb's own time in seconds, in the format of `time.time`."""
    return own.now().timestamp()
