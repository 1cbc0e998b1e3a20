"""The sign of life of jobs that are worked on, whatever takes the time: a file, a model, or the disk.

Several engines may share a database. One that gives none for too long loses its jobs to the others.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kb.api.errors import KbError
from kb.threads import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.worker.lease import Lease

logger = logging.getLogger(__name__)

BEAT_SECONDS = 4.0
"""How often: an engine whose connection breaks is taken for gone if the last time was ten seconds ago."""

RETRY_SECONDS: Final = 1.0


class Heartbeat(BackgroundThread):
    """Renews leases as long as its block runs."""

    def __init__(self) -> None:
        super().__init__("kb-heartbeat")
        self._leases: set[Lease] = set()

    @contextmanager
    def of(self, lease: Lease) -> Iterator[None]:
        """Renew a lease during the block."""
        self._leases.add(lease)
        try:
            yield
        finally:
            self._leases.discard(lease)

    def _run(self) -> None:
        pause = BEAT_SECONDS
        while not self._stopping.wait(pause):
            went_well = [self._renew(lease) for lease in tuple(self._leases)]
            pause = BEAT_SECONDS if all(went_well) else RETRY_SECONDS

    def _renew(self, lease: Lease) -> bool:
        """Renew a lease; return whether that went well."""
        try:
            lease.renew()
        except KbError as error:
            logger.warning("jobs give no sign of life for the moment: %s", error.detail)
            return False
        except Exception:
            logger.exception("jobs give no sign of life for the moment")
            return False
        return True
