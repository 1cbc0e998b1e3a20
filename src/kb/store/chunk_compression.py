"""The chunks of an earlier version as bytes."""

import json
import zlib
from collections.abc import Sequence
from typing import Any, Final

from kb.store.rows import Chunk, ChunkPosition

LEVEL: Final = 4
"""zlib's default of 6 takes three times as long for 5% fewer bytes."""


def compressed(chunks: Sequence[Chunk]) -> bytes:
    """Return chunks as bytes; chunks under the same headings share one copy of these."""
    sections = list(dict.fromkeys((chunk.header, chunk.place.heading) for chunk in chunks))
    numbers = {section: number for number, section in enumerate(sections)}
    rows = [
        [chunk.id, numbers[chunk.header, chunk.place.heading], *_numbers(chunk.place), chunk.text] for chunk in chunks
    ]
    return zlib.compress(json.dumps([sections, rows], ensure_ascii=False, separators=(",", ":")).encode(), LEVEL)


def decompressed(blob: bytes) -> list[Chunk]:
    """Return the chunks from the bytes that `compressed` returned."""
    content: list[Any] = json.loads(zlib.decompress(blob))
    sections, rows = content
    chunks = []
    for index, (chunk_id, section, line_start, line_end, char_start, char_end, page, text) in enumerate(rows):
        header, heading = sections[section]
        place = ChunkPosition(line_start, line_end, char_start, char_end, tuple(heading), page)
        chunks.append(Chunk(chunk_id, index, header, text, place))
    return chunks


def _numbers(place: ChunkPosition) -> tuple[int | None, ...]:
    return place.line_start, place.line_end, place.char_start, place.char_end, place.page
