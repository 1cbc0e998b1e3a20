"""Faults of a folder, in words: since when, how many files wait, and the remedy."""

import errno
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kb.clock import shown

logger = logging.getLogger(__name__)

RIGHTS: Final = "Allow kb's account to read and write there."
REMEDIES: Final = {
    "read-only": RIGHTS,
    os.strerror(errno.EACCES): RIGHTS,
    os.strerror(errno.EPERM): RIGHTS,
    os.strerror(errno.EROFS): "Mount the disk writable.",
    os.strerror(errno.EIO): "Check the disk.",
}
SAFE: Final = "Nothing is lost: {}, and kb tries again."
NOTES: Final = "the database has the notes"
FILES: Final = "the files stay where they are"


@dataclass
class Troubles:
    """Remembers since when each fault exists, and logs its beginning and its end.

    Args:
        name: the folder.
        safe: where everything is.
        now: the time of the machine.
    """

    name: str
    safe: str = NOTES
    now: Callable[[], float] = time.time
    _since: dict[str, float] = field(default_factory=dict)

    def described(self, faults: Mapping[str, int], waiting: int) -> list[str]:
        """Return a text for each fault.

        Args:
            faults: the number of files that each fault concerns; 0 for a fault of the whole folder.
            waiting: the number of notes that are not written yet.
        """
        for fault in faults.keys() - self._since.keys():
            logger.warning("%s cannot be kept in sync: %s", self.name, fault)
        if self._since.keys() - faults.keys():
            logger.info("a fault of %s has ended", self.name)
        self._since = {fault: self._since.get(fault, self.now()) for fault in faults}
        return [self._text(fault, number, waiting) for fault, number in sorted(faults.items())]

    def _text(self, fault: str, number: int, waiting: int) -> str:
        concerned = f"{number:,} file{'' if number == 1 else 's'}: " if number else ""
        late = f"{waiting:,} note{' waits' if waiting == 1 else 's wait'} to be written." if waiting else ""
        remedy = next((remedy for part, remedy in REMEDIES.items() if part in fault), "")
        since = shown(self._since[fault])[:16].replace("T", " ")
        end = "" if fault.endswith((".", "?")) else "."
        return " ".join(
            filter(None, [f"Since {since} UTC, {concerned}{fault}{end}", remedy, late, SAFE.format(self.safe)])
        )
