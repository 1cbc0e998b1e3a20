"""A code of each vector, so that searches over many vectors are fast.

Codes come from `chunks_vec`, the source of truth, and are written in the same transaction. Each has a checksum:
kb treats codes that are truncated or changed on disk as missing and rebuilds them (`vector_keeper.py`).
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.index.vectors.quantize import Quantizer
from kb.index.vectors.shared_rows import Rows, checksums
from kb.store.row_mapping import listed_ids
from kb.store.sqlite.statements import statements

BLOCK = 65_536
CHECKSUM = 8
# The id of the mean, for its checksum.
MEAN = np.zeros(1, np.int64)


def chunk_ids(connection: apsw.Connection) -> NDArray[np.int64]:
    """Return the ids of all chunks, ascending."""
    return np.sort(listed_ids(connection.execute(statements("vectors")["select_chunk_ids"]).get))


def read_quantizer(connection: apsw.Connection, dimensions: int) -> Quantizer | None:
    """Return the quantizer of the codes; None if it is missing or damaged."""
    try:
        blob = connection.execute(statements("vectors")["select_mean"]).get
    except apsw.CorruptError:
        return None
    mean = unpacked_mean(blob, dimensions)
    return None if mean is None else Quantizer(mean)


def unpacked_mean(blob: bytes | None, dimensions: int) -> NDArray[np.float32] | None:
    """Return the mean of the vectors from its packed form; None if it is missing or damaged."""
    if blob is None or len(blob) != 4 * dimensions + CHECKSUM:
        return None
    vectors, intact = unpack(MEAN, blob, dimensions)
    mean: NDArray[np.float32] = vectors[0]
    return mean if intact.all() else None


def begin_codes(connection: apsw.Connection, quantizer: Quantizer) -> None:
    """Delete all codes and record this quantizer for new ones."""
    drop_codes(connection)
    [mean] = pack(MEAN, quantizer.mean[None])
    connection.execute(statements("vectors")["insert_mean"], (mean,))


def forget_quantizer(connection: apsw.Connection) -> None:
    """Make the existing codes obsolete."""
    connection.execute(statements("vectors")["delete_mean"])


def drop_some_codes(connection: apsw.Connection, limit: int) -> bool:
    """Delete up to `limit` obsolete codes; return whether any were deleted."""
    before = connection.total_changes()
    connection.execute(statements("vectors")["delete_some_codes"], (limit,))
    return connection.total_changes() > before


def has_codes(connection: apsw.Connection) -> bool:
    """Return whether the database has readable codes, even obsolete ones."""
    with suppress(apsw.CorruptError):
        return bool(connection.execute(statements("vectors")["has_codes"]).get)
    return False


def drop_codes(connection: apsw.Connection) -> None:
    """Delete the quantizer and all codes."""
    for name in ("delete_mean", "delete_codes"):
        connection.execute(statements("vectors")[name])


def write_codes(
    connection: apsw.Connection, quantizer: Quantizer, ids: NDArray[np.int64], vectors: NDArray[np.float32]
) -> None:
    """Write codes for chunks; the chunks must exist."""
    codes = (code.tobytes() for code in quantizer.encode(ids, vectors))
    connection.executemany(statements("vectors")["insert_code"], zip(ids.tolist(), codes, strict=True))


def read_codes(connection: apsw.Connection, quantizer: Quantizer) -> Rows:
    """Return a row for each chunk, with room to grow; rows without an intact code are dead."""
    ids, width = chunk_ids(connection), quantizer.width
    rows = Rows(ids, np.empty((ids.size, width), np.uint64, "F"), np.zeros(ids.size, np.bool_)).with_room()
    with suppress(apsw.CorruptError):  # unreadable codes count as missing
        for block, codes in _blocks(connection, width):
            _fill(rows, quantizer, block, codes)
    return rows


def _blocks(connection: apsw.Connection, width: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
    """Yield codes of the right length, by ascending id."""
    last = -1
    while True:
        keys: Any
        blob: Any
        [(keys, blob)] = connection.execute(statements("vectors")["select_codes"], (last, 8 * width, BLOCK))
        if keys is None:
            return
        block = listed_ids(keys)
        yield block, np.frombuffer(blob, np.uint64).reshape(-1, width)
        last = int(block[-1])


def existing(connection: apsw.Connection, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the ids that belong to a chunk."""
    listed = connection.execute(statements("vectors")["select_existing"], (apsw.carray(ids),)).get
    return np.isin(ids, listed_ids(listed))


def _fill(rows: Rows, quantizer: Quantizer, ids: NDArray[np.int64], codes: NDArray[np.uint64]) -> None:
    places, present = rows.find(ids)
    present &= quantizer.intact(ids, codes)
    rows.data[places[present]] = codes[present]
    rows.alive[places[present]] = True


def pack(ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> Iterable[bytes]:
    """Return the vectors of chunks as bytes, each with its checksum."""
    sums = checksums(ids, np.ascontiguousarray(vectors))
    return (vector.tobytes() + checksum.tobytes() for vector, checksum in zip(vectors, sums, strict=True))


def unpack(ids: NDArray[np.int64], blob: bytes, dimensions: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the vectors from concatenated packed vectors, and a mask of the intact ones."""
    words = np.frombuffer(blob, np.uint32).reshape(-1, dimensions + CHECKSUM // 4)
    vectors, sums = np.ascontiguousarray(words[:, :dimensions]), np.ascontiguousarray(words[:, dimensions:])
    intact: NDArray[np.bool_] = checksums(ids, vectors) == sums.view(np.uint64).ravel()
    return vectors.view(np.float32), intact
