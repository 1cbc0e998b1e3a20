"""Files without a reader whose text an external program may extract: pictures, sound, scanned pages, old documents."""

from __future__ import annotations

import re
from typing import Final, Literal

from kb.api.errors import Unreadable

Kind = Literal["image", "audio", "video", "scan", "doc", "ppt", "wpd"]

SUFFIXES: Final[dict[str, frozenset[str]]] = {
    "image": frozenset((".avif", ".bmp", ".gif", ".heic", ".heif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")),
    "audio": frozenset((".aac", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".wma")),
    "video": frozenset((".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv", ".webm", ".wmv")),
    "scan": frozenset((".pdf",)),
    "doc": frozenset((".doc", ".dot")),
    "ppt": frozenset((".pot", ".pps", ".ppt")),
    "wpd": frozenset((".wp", ".wp5", ".wp6", ".wpd", ".wpt")),
}
"""The suffixes of such files by kind; the kind of a file depends on its content."""

_SIGNATURE: Final = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|BM|II[*+]\0|MM\0[*+]|RIFF....WEBP|\0\0..ftyp", re.DOTALL
)


def is_picture(data: bytes) -> bool:
    """Return whether a file begins like a picture, whatever its name.

    Tesseract treats any other file as a list of files to read.
    """
    return _SIGNATURE.match(data) is not None


class Opaque(Unreadable):
    """Only an extractor can read this kind of file.

    Args:
        detail: the reason why no reader can, for people.
        kind: the kind of file.
        pages: the number of pages; 0 if it has none.
    """

    def __init__(self, detail: str, kind: Kind, pages: int = 0) -> None:
        super().__init__(detail)
        self.kind = kind
        self.pages = pages
