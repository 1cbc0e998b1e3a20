"""The chunks that a transaction sees, each with a row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.index import compaction
from kb.index.words.bm25 import K1, B

MAX_ID = 2**31 - 1
"""The highest id of a chunk or a document that fits."""

SPARSE = 8
"""A table over all documents is worth its memory while the highest id is at most this many times the number of rows."""

MIN_CAPACITY = 1024
Key = tuple[str, ...]
"""A word in the index: one token, or several that follow each other."""


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A new chunk, with the tokens of its text and its header."""

    id: int
    document_id: int
    text: list[str]
    header: list[str]


@dataclass(frozen=True, eq=False)
class LexicalSnapshot:
    """The first `size` rows of three buffers that later snapshots may share. It is immutable and thread-safe.

    Args:
        number: the snapshot's number.
        epoch: the number of earlier renumberings of rows.
        size: the number of rows.
        id_buffer: chunk ids, ascending.
        document_buffer: their documents.
        length_buffer: their numbers of tokens.
        dead: the rows of deleted chunks, ascending.
        tokens: the number of tokens in chunks that are not deleted.
        numbers: the row of each row of the epoch before; negative for removed rows.
        frequencies: the number of chunks with each word counted so far.
    """

    number: int
    epoch: int
    size: int
    id_buffer: NDArray[np.int32]
    document_buffer: NDArray[np.int32]
    length_buffer: NDArray[np.int32]
    dead: NDArray[np.int32]
    tokens: int
    numbers: NDArray[np.int32] | None = None
    frequencies: dict[Key, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, number: int, ids: NDArray[np.int32], documents: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> LexicalSnapshot:
        """Return the snapshot of these chunks, by ascending id."""
        tokens = int(lengths.sum(dtype=np.int64))
        return cls(number, 0, ids.size, ids, documents, lengths, np.empty(0, np.int32), tokens)

    @property
    def ids(self) -> NDArray[np.int32]:
        return self.id_buffer[: self.size]

    @property
    def documents(self) -> NDArray[np.int32]:
        return self.document_buffer[: self.size]

    @property
    def lengths(self) -> NDArray[np.int32]:
        return self.length_buffer[: self.size]

    @property
    def _buffers(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        return self.id_buffer, self.document_buffer, self.length_buffer

    @property
    def count(self) -> int:
        """The number of chunks."""
        return self.size - self.dead.size

    @property
    def mean_length(self) -> float:
        """The average number of tokens per chunk."""
        return self.tokens / self.count

    @cached_property
    def norms(self) -> NDArray[np.float32]:
        """The length term in BM25's denominator; infinite for a deleted chunk, whose score is therefore 0."""
        norms = np.multiply(self.lengths, K1 * B / self.mean_length, dtype=np.float32, casting="same_kind")
        norms += np.float32(K1 * (1 - B))
        norms[self.dead] = np.inf
        return norms

    def release(self) -> None:
        """Free values that can be computed again: few readers still use a snapshot that is not the newest."""
        self.__dict__.pop("norms", None)

    def rows_of(self, ids: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return the rows of the chunks that have one, and a mask of these chunks."""
        narrow_ids = ids.astype(np.int32)
        rows = np.searchsorted(self.ids, narrow_ids).astype(np.int32)
        present = rows < self.size
        present[present] = self.ids[rows[present]] == narrow_ids[present]
        return rows[present], present

    def alive(self, rows: NDArray[np.int32]) -> int:
        """Return the number of these ascending rows whose chunks are not deleted."""
        if not self.dead.size or not rows.size:
            return rows.size
        places = np.minimum(np.searchsorted(rows, self.dead), rows.size - 1)
        return rows.size - int(np.count_nonzero(rows[places] == self.dead))

    def admit(self, parts: Sequence[tuple[bool, NDArray[np.int64]]]) -> Admitted:
        """Return the chunks of the documents that are in every part that is True and in none that is False."""
        highest = int(self.documents.max(initial=0))
        if highest > SPARSE * self.size + MIN_CAPACITY:
            mask = np.ones(self.size, np.bool_)
            for is_wanted, documents in parts:
                mask &= np.isin(self.documents, documents, invert=not is_wanted)
        else:
            table = np.ones(highest + 1, np.bool_)
            for is_wanted, documents in parts:
                part = np.full(table.size, not is_wanted)
                part[documents[documents <= highest]] = is_wanted
                table &= part
            mask = table.take(self.documents)
        mask[self.dead] = False
        return Admitted(self, mask)

    def changed(self, number: int, removed: Collection[int]) -> LexicalSnapshot:
        """Return the next snapshot, without the removed chunks."""
        rows, _ = self.rows_of(np.fromiter(removed, np.int64))
        tokens = self.tokens - int(self.lengths[rows].sum(dtype=np.int64))
        dead = np.sort(np.concatenate([self.dead, rows])) if rows.size else self.dead
        return LexicalSnapshot(number, self.epoch, self.size, *self._buffers, dead, tokens, self.numbers)

    def with_chunks(self, added: Sequence[IndexedChunk]) -> LexicalSnapshot:
        """Return the snapshot plus chunks, by ascending id; the buffers change only after this snapshot's rows."""
        end = self.size + len(added)
        buffers = (
            self._buffers if end <= self.id_buffer.size else _with_room(self.ids, self.documents, self.lengths, end)
        )
        lengths = [len(chunk.text) + len(chunk.header) for chunk in added]
        columns = [chunk.id for chunk in added], [chunk.document_id for chunk in added], lengths
        for buffer, column in zip(buffers, columns, strict=True):
            buffer[self.size : end] = column
        return LexicalSnapshot(
            self.number, self.epoch, end, *buffers, self.dead, self.tokens + sum(lengths), self.numbers
        )

    def with_lengths(self, number: int, ids: NDArray[np.int64], lengths: NDArray[np.int32]) -> LexicalSnapshot:
        """Return the next snapshot, with new lengths for some chunks."""
        rows, present = self.rows_of(ids)
        buffer = self.length_buffer.copy()
        buffer[rows] = lengths[present]
        tokens = self.tokens + int(buffer[rows].sum(dtype=np.int64) - self.lengths[rows].sum(dtype=np.int64))
        return replace(self, number=number, length_buffer=buffer, tokens=tokens, frequencies={})

    @property
    def is_sparse(self) -> bool:
        """Whether enough chunks were deleted to renumber the rest."""
        return compaction.is_due(self.dead.size, self.size)

    def compacted(self) -> LexicalSnapshot:
        """Return the same snapshot without the rows of deleted chunks, as the first of the next epoch."""
        alive = np.ones(self.size, np.bool_)
        alive[self.dead] = False
        numbers = np.cumsum(alive, dtype=np.int32) - np.int32(1)
        numbers[self.dead] = -1
        buffers = _with_room(self.ids[alive], self.documents[alive], self.lengths[alive], self.count)
        none = np.empty(0, np.int32)
        return LexicalSnapshot(self.number, self.epoch + 1, self.count, *buffers, none, self.tokens, numbers)

    def at_epoch(self, epoch: int) -> LexicalSnapshot:
        """Return the same snapshot in another epoch, without a mapping from the rows of the epoch before."""
        return replace(self, epoch=epoch, numbers=None, frequencies={})


@dataclass(frozen=True, eq=False)
class Admitted:
    """The chunks that a filter admits: True in the `mask` over the snapshot's rows."""

    snapshot: LexicalSnapshot
    mask: NDArray[np.bool_]

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """Their rows, ascending."""
        return np.flatnonzero(self.mask).astype(np.int32)

    def among(self, ids: NDArray[np.int64]) -> NDArray[np.bool_] | NDArray[np.int64]:
        """Return the mask if it covers exactly these chunks; otherwise the admitted ids, ascending."""
        same = np.array_equal(self.snapshot.ids, ids)
        return self.mask if same else self.snapshot.ids[self.rows].astype(np.int64)


def group_key(keys: Sequence[Key]) -> Key:
    """Return the key of spellings that count as one word; no token contains a space."""
    return keys[0] if len(keys) == 1 else tuple(" ".join(key) for key in ((), *keys))


def _with_room(
    ids: NDArray[np.int32], documents: NDArray[np.int32], lengths: NDArray[np.int32], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return copies in buffers for `size` rows and a quarter more."""
    capacity = max(MIN_CAPACITY, size + size // 4)

    def copied(values: NDArray[np.int32]) -> NDArray[np.int32]:
        buffer = np.empty(capacity, np.int32)
        buffer[: values.size] = values
        return buffer

    return copied(ids), copied(documents), copied(lengths)
