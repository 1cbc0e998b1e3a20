"""Files whose text no reader gets out, but a program beside kb may: pictures, sound, scanned pages, old documents."""

from __future__ import annotations

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
"""How the names of such files end, by their kind; what one is, its content says."""


class Opaque(Unreadable):
    """The file is of a kind that only an extractor reads.

    Args:
        detail: why no reader does, for a person.
        kind: what it is.
        pages: how many pages it has, if it has any.
    """

    def __init__(self, detail: str, kind: Kind, pages: int = 0) -> None:
        super().__init__(detail)
        self.kind = kind
        self.pages = pages
