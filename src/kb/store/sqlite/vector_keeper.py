"""Make, delete and repair the codes of vectors in the background, depending on the number of vectors."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.coded_index import CodedIndex
from kb.index.vectors.quantize import Quantizer
from kb.store.sqlite.vector_codes import (
    begin_codes,
    chunk_ids,
    drop_some_codes,
    existing,
    forget_quantizer,
    read_codes,
    write_codes,
)
from kb.store.sqlite.vectors import Vectors

logger = logging.getLogger(__name__)

# Codes per transaction; other writers get their turn between two transactions.
BATCH = 2048

# The number of vectors from which the mean is computed.
SAMPLE = 8192

# The tolerance for the squared length of a unit vector.
UNIT = 2e-3


class Connected(Protocol):
    """A transaction."""

    connection: apsw.Connection


class Transactions(Protocol):
    """The store, which imports this module."""

    def read(self) -> AbstractContextManager[Connected]: ...

    def write(self) -> AbstractContextManager[Connected]: ...


class VectorKeeper:
    """A thread that makes codes for many vectors, deletes them if only a few vectors are left, and repairs them.

    Until it is done, searches compare every vector.
    """

    def __init__(self, store: Transactions, vectors: Vectors) -> None:
        self._store = store
        self._vectors = vectors
        self._pool = ThreadPoolExecutor(1, "kb-vectors")
        self._at_work = threading.Lock()
        self._closing = threading.Event()

    def notice(self) -> None:
        """Start the thread's work if codes must be made, deleted or repaired."""
        if self._is_needed() and self._at_work.acquire(blocking=False):
            self._pool.submit(self._work)

    def close(self) -> None:
        """Stop after the current batch; the work continues after the next start."""
        self._closing.set()
        self._pool.shutdown()

    def _is_needed(self) -> bool:
        vectors = self._vectors
        return not self._closing.is_set() and (vectors.must_drop_codes or vectors.must_be_coded or vectors.must_be_flat)

    def _work(self) -> None:
        try:
            while self._is_needed():
                self._keep()
        except apsw.CorruptError as error:
            self._vectors.give_up_codes(error)
        except Exception:  # the work ends; searches stay exact, and the next change starts it again
            logger.exception("could not compute the codes of the vectors")
        finally:
            self._at_work.release()

    def _keep(self) -> None:
        if self._vectors.must_drop_codes:
            self._drop()
        elif self._vectors.must_be_flat:
            self._flatten()
        else:
            self._code()

    def _flatten(self) -> None:
        with self._store.write() as tx:
            forget_quantizer(tx.connection)
            self._vectors.quantizer = None
            self._vectors.has_worthless_codes = True
            self._vectors.adopt(self._vectors.flat_index(tx.connection))

    def _drop(self) -> None:
        while not self._closing.is_set():
            with self._store.write() as tx:
                if self._vectors.quantizer or not drop_some_codes(tx.connection, BATCH):
                    self._vectors.has_worthless_codes = False
                    return

    def _code(self) -> None:
        quantizer = self._quantizer()
        if quantizer is None:
            return
        with self._store.read() as tx:
            rows = read_codes(tx.connection, quantizer)
        missing = rows.ids[~rows.alive]
        logger.info("computing the codes of %s vectors", missing.size)
        self._write(quantizer, missing)
        if not self._closing.is_set():
            with self._store.write() as tx:
                if self._vectors.quantizer is not quantizer:  # replaced since
                    return
                rows = read_codes(tx.connection, quantizer)
                if rows.alive.all():  # otherwise `_work` calls this again
                    self._vectors.adopt(CodedIndex.of(rows, quantizer))

    def _quantizer(self) -> Quantizer | None:
        """Return the quantizer of the codes, or make one; every new vector gets a code from then on.

        None if the era changed during the call.
        """
        if self._vectors.quantizer:
            return self._vectors.quantizer
        era = self._vectors.era
        with self._store.read() as tx:
            ids = chunk_ids(tx.connection)
            sample = ids[np.linspace(0, ids.size - 1, min(SAMPLE, ids.size)).astype(np.intp)]
            quantizer = Quantizer(mean(self._vectors.reader(tx.connection).vectors(sample)))
        try:
            with self._store.write() as tx:
                if self._vectors.era is not era:
                    return None
                begin_codes(tx.connection, quantizer)
                self._vectors.quantizer = quantizer  # before the next writer
        except BaseException:
            if self._vectors.era is era:
                self._vectors.quantizer = None
            raise
        return quantizer

    def _write(self, quantizer: Quantizer, ids: NDArray[np.int64]) -> None:
        for start in range(0, ids.size, BATCH):
            if self._closing.is_set():
                return
            batch = ids[start : start + BATCH]
            with self._store.read() as tx:
                vectors = self._vectors.reader(tx.connection).vectors(batch)
            with self._store.write() as tx:
                if self._vectors.quantizer is not quantizer:
                    return
                exist = existing(tx.connection, batch)
                missing = ~vectors.any(axis=1)  # they may have been made in the meantime
                vectors[missing] = self._vectors.reader(tx.connection).vectors(batch[missing])
                write_codes(tx.connection, quantizer, batch[exist], vectors[exist])


def mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the unit vectors; other vectors are damaged."""
    units = vectors[np.abs(np.vecdot(vectors, vectors) - 1) <= UNIT]
    return units.mean(0) if units.size else np.zeros(vectors.shape[1], np.float32)
