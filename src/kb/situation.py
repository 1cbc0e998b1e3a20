"""The facts about the running engine, for `kb.attention` and for its metrics."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kb import clock
from kb.api.status_models import Attention
from kb.attention import Facts, attention, free_space
from kb.backup.record import BackupRecord
from kb.documents.disk_use import DiskUse
from kb.documents.watched_folders import state_of, watched
from kb.folders.timed_reads import Latest
from kb.gauges import Signals
from kb.live_settings import LiveSettings
from kb.notes_folder.folders import KeptFolders
from kb.store.default_space import DEFAULT_SPACE
from kb.store.protocol import Store, Transaction
from kb.store.rows import Counts

LOOK_SECONDS: Final = 2
"""How long kb waits for the disks of its folders, because somebody waits for the answer."""


class Situation:
    """Collects the facts.

    Args:
        live: the settings in use.
        store: the store.
        record: the results of backups.
        kept_folders: the folders that the engine keeps in step.
        sizes: the sizes of folders, by the name of their metric.
        refused: returns the number of refused requests of each queue.
    """

    def __init__(
        self,
        live: LiveSettings,
        store: Store,
        record: BackupRecord,
        kept_folders: KeptFolders,
        sizes: dict[str, DiskUse],
        refused: Callable[[], Mapping[str, int]],
    ) -> None:
        self._live = live
        self._store = store
        self._record = record
        self._kept_folders = kept_folders
        self._sizes = sizes
        self._refused = refused
        self._places = Latest(LOOK_SECONDS)

    def attention(self, tx: Transaction, counts: Counts) -> list[Attention]:
        """Return what needs attention."""
        return attention(self.facts(tx, counts))

    def facts(self, tx: Transaction, counts: Counts) -> Facts:
        """Return the facts of this moment; `counts` are about the whole store."""
        settings, jump = self._live.settings, clock.own.look()
        folders = dict(folders_in_trouble(tx)) | dict(self._kept_folders.troubles())
        try:
            backups, free = self._places.of(lambda: (self._record.facts(settings), free_space(settings)))
        except OSError as error:
            backups, free = None, {}
            folders["one of kb's folders (KB_DATA_DIR, KB_BACKUP_DIR or KB_NOTES_DIR)"] = str(error.strerror)
        return Facts(
            backups=backups,
            free=free,
            queue_age=counts.queue_age,
            folders=folders,
            settings=self._live.faults,
            clock=clock.event(jump) if jump else None,
            foreign=counts.foreign,
            languages=counts.languages if tx.space == DEFAULT_SPACE else {},
        )

    def signals(self, tx: Transaction, counts: Counts) -> Signals:
        """Return the signals of this moment."""
        sizes = {name: use.size() for name, use in self._sizes.items()}
        return Signals(self.facts(tx, counts), sizes, dict(self._refused()))


def folders_in_trouble(tx: Transaction) -> Iterator[tuple[str, str]]:
    """Yield the watched folders that no program keeps in step, by name, with the reason."""
    for folder, record in watched(tx):
        state = state_of(record)
        if state == "failing":
            yield folder.prefix, str(record.error)
        elif state == "stopped":
            last = (record.seen_at or "")[:16].replace("T", " ")
            yield folder.prefix, f"the program on {folder.host} that watches it has not been seen since {last} UTC"
