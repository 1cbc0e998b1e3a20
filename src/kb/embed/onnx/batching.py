"""Batches of texts of like length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kb.embed.onnx.providers import Device


def batches(lengths: Sequence[int], device: Device) -> Iterator[list[int]]:
    """Split texts of these lengths into batches of their indexes, the shortest first, like with like."""
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padded = length * (len(batch) + 1)
        full = len(batch) == device.max_rows or padded > device.batch_tokens
        if batch and (full or padded - tokens - length > device.padding):
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += length
    if batch:
        yield batch
