"""The process that parses files, `python -m kb.parser.process`. If it hangs, crashes or fills its memory, kb continues.

It reads requests and files from standard input and answers on standard output (see `kb.parser.protocol`). It knows
nothing of the engine, can open only its own modules, and ends when the engine does.
"""

import mimetypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any, BinaryIO, Final

from kb.api.errors import Unreadable
from kb.formats.extract import extract, reader
from kb.formats.installed_types import FORMATS
from kb.formats.readers.pdf_picture import count_pages, draw_page, picture_to_read
from kb.formats.text.external_types import Opaque
from kb.formats.text.extracted import Picture, attached_room
from kb.parser.drop_privileges import confine, end_with, limit
from kb.parser.protocol import MAX_PICTURES, pack, receive, receive_bytes, send

Reply = tuple[dict[str, Any], list[bytes]]

SMALLEST_PICTURE: Final = 1024
"""In bytes; smaller pictures are icons."""

_OPEN_FILES: Final = 64
_ERROR_BYTES: Final = 1 << 16
"""The maximum size of a file that it writes, such as its standard error."""


def main() -> None:
    """Serve requests until standard input ends."""
    engine, address_space, seconds, makes_thumbnails = map(int, sys.argv[1:])
    end_with(engine)
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a parser must not mix with the replies
    _load_readers()
    if makes_thumbnails:
        import_module("kb.formats.readers.thumbnail").load()
    limit(address_space, core=0, cpu=seconds, fsize=_ERROR_BYTES, nofile=_OPEN_FILES, nproc=0)
    send(replies, {"confined": confine()})
    try:
        while True:
            _answer(receive(requests), requests, replies)
    except (EOFError, BrokenPipeError):
        sys.exit()


def _load_readers() -> None:
    """Import the modules for reading files, and the data that they load, because the confined process cannot."""
    for doc_type in FORMATS:
        with suppress(Unreadable):  # the files of this type have it as their reason
            reader(doc_type)
    for name in ("chardet", "puremagic"):
        import_module(name)
    mimetypes.init()


def _answer(request: dict[str, Any], requests: BinaryIO, replies: BinaryIO) -> None:
    try:
        data = receive_bytes(requests)
        message, blobs = _drawn(data, request) if "page" in request else _read(data, request)
    except Opaque as error:
        send(replies, {"unreadable": error.detail, "kind": error.kind, "pages": error.pages})
    except Unreadable as error:
        send(replies, {"unreadable": error.detail})
    except MemoryError:
        send(replies, {"out_of": "memory"})
    else:
        send(replies, message, *blobs)


def _read(data: bytes, request: dict[str, Any]) -> Reply:
    doc_type, extracted = extract(data, request["filename"], pictures=request["pictures"])
    if len(extracted.text) > request["max_chars"]:
        return {"out_of": "output"}, []
    blobs = [attachment.data for attachment in extracted.attachments]
    pictures = list(_pictures(extracted.pictures, attached_room(len(data)) - sum(map(len, blobs))))
    extracted = replace(extracted, pictures=tuple(picture for picture, _ in pictures))
    return pack(doc_type, extracted), [*blobs, *(blob for _, blob in pictures)]


def _pictures(pictures: Sequence[Picture], room: int) -> Iterator[tuple[Picture, bytes]]:
    """Yield the readable pictures that are larger than an icon and that fit into `room` bytes, with their bytes."""
    for picture in pictures[:MAX_PICTURES]:
        with suppress(Unreadable, MemoryError):  # the text does not need the picture
            data = picture.read()
            if SMALLEST_PICTURE <= len(data) <= room:
                room -= len(data)
                yield picture, data


def _drawn(data: bytes, request: dict[str, Any]) -> Reply:
    if "small" in request:
        answer = import_module("kb.formats.readers.thumbnail").thumbnail(data)
    elif not request["page"]:
        answer = str(count_pages(data)).encode()
    elif "passage" in request:
        answer = draw_page(data, request["page"], request["passage"], request["place"], request["words"])
    else:
        answer = picture_to_read(data, request["page"])
    return {"drawn": True}, [answer]


if __name__ == "__main__":
    main()
