"""What the engine and its parser say to each other over pipes: frames, each its length and then its bytes."""

from __future__ import annotations

import json
import os
import shutil
import struct
from typing import Any, BinaryIO, Final

from kb.formats.extracted import Attachment, Extracted, Section

_LENGTH: Final = struct.Struct(">Q")


class OverLimit(Exception):
    """A frame is longer than whoever reads it allows."""


def send(pipe: BinaryIO, message: dict[str, Any], *blobs: bytes) -> None:
    """Write a message and the bytes that go with it."""
    for frame in (json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"), *blobs):
        pipe.write(_LENGTH.pack(len(frame)))
        pipe.write(frame)
    pipe.flush()


def send_file(pipe: BinaryIO, file: BinaryIO) -> None:
    """Write what a file holds as one frame."""
    pipe.write(_LENGTH.pack(os.fstat(file.fileno()).st_size))
    shutil.copyfileobj(file, pipe)
    pipe.flush()


def receive(pipe: BinaryIO, limit: int | None = None) -> dict[str, Any]:
    """Read a message.

    Raises:
        EOFError: the other side is gone.
        OverLimit: the message has more than `limit` bytes.
    """
    message: dict[str, Any] = json.loads(receive_bytes(pipe, limit))
    return message


def receive_bytes(pipe: BinaryIO, limit: int | None = None) -> bytes:
    """Read the bytes of one frame. Raises what `receive` does."""
    (length,) = _LENGTH.unpack(_read_exactly(pipe, _LENGTH.size))
    if limit is not None and length > limit:
        raise OverLimit
    return _read_exactly(pipe, length)


def pack(doc_type: str, extracted: Extracted) -> dict[str, Any]:
    """Return a document as a message; the attachments' bytes follow it."""
    sections = [[each.start, each.end, each.heading, each.page] for each in extracted.sections]
    names = [attachment.filename for attachment in extracted.attachments]
    return {
        "doc_type": doc_type,
        "title": extracted.title,
        "text": extracted.text,
        "sections": sections,
        "attachments": names,
        "tags": extracted.tags,
        "date": extracted.date,
        "aliases": extracted.aliases,
    }


def unpack(message: dict[str, Any], blobs: list[bytes]) -> tuple[str, Extracted]:
    """Return the type and the content of a message's document."""
    sections = tuple(Section(start, end, tuple(heading), page) for start, end, heading, page in message["sections"])
    attachments = tuple(map(Attachment, message["attachments"], blobs))
    tags, aliases = tuple(message["tags"]), tuple(message["aliases"])
    return message["doc_type"], Extracted(
        message["title"], message["text"], sections, attachments, tags, message["date"], aliases
    )


def _read_exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data
