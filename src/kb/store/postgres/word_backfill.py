"""Index the words of the documents of an older kb again."""

from kb.store.link_backfill import DOCUMENTS, Backfill
from kb.store.postgres.store import PostgresStore


class WordBackfill(Backfill):
    """Indexes the words again.

    Args:
        store: the store, which must stay open while the thread runs.
    """

    def __init__(self, store: PostgresStore) -> None:
        super().__init__("kb-words", "indexing the words of the documents")
        self._store = store

    def is_complete(self) -> bool:
        with self._store.read() as tx:
            return tx.full_text.backfilled is None

    def step(self) -> bool:
        with self._store.write() as tx:
            return tx.documents.index_older(DOCUMENTS)
