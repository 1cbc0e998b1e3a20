"""The types of documents. The types of files are the engine's formats (`kb.formats.registry`)."""

from __future__ import annotations

from typing import Final

UNREADABLE: Final = {
    "a picture": ("bmp", "gif", "heic", "ico", "jpeg", "jpg", "png", "psd", "tif", "tiff", "webp"),
    "a sound recording": ("aac", "flac", "m4a", "mp3", "ogg", "opus", "wav", "wma"),
    "a film": ("avi", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "webm", "wmv"),
    "a program": ("dll", "exe", "so"),
    "an archive": ("7z", "bz2", "gz", "rar", "tar", "xz", "zip", "zst"),
}
"""Files without readable text: the suffixes of each kind."""

_TYPES: Final = """
    code csv docx eml enex epub html ics image json markdown mbox mht msg note notebook odp ods odt pdf pptx rtf text
    tnef vcf xls xlsx xml
"""
DOC_TYPES: Final = tuple(_TYPES.split())
