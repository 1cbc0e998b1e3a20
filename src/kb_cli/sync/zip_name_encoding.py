"""Guess the encoding of file names in an archive that does not declare it: one guess for all names."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import zipfile

AS_STORED: Final = "cp437"
"""The encoding that the format prescribes for names without the UTF-8 flag."""

_IS_UTF8: Final = 0x800
_UNICODE_PATH: Final = 0x7075

CODE_PAGES: Final = (
    *("cp437", "cp850", "cp852", "cp866", "cp737", "cp857", "cp862", "cp775", "cp1252", "cp1250", "cp1251", "cp1253"),
    *("gbk", "cp932", "cp949", "cp950"),
)
"""The code pages in which Windows and DOS programs write names."""

_AS_WINDOWS: Final = {"gb18030": "gbk", "big5hkscs": "cp950"}
"""The Windows subsets of encodings that the library detects."""

_WESTERN: Final = ("cp437", "cp850", "cp1252")
"""Code pages for western European names; if two fit equally well, the first wins."""

_EVERYDAY: Final = frozenset("äöüßéèáàíóúñçåøæãâêôëïîûìòùõÄÖÜÉÅØÆÑÇ–’…")
_UNLIKELY: Final = re.compile(r"[^\0-\x7f]{3,}|[a-zß-ÿ][À-Þ]")
"""Three accented letters in a row, or a capital within a word: unlikely in western European names."""

_RARE: Final = "\U00020000"
"""Characters from here on are never used in names; four bytes in another code page may look like one."""


def entry_names(entries: Sequence[zipfile.ZipInfo], code_page: str | None) -> tuple[list[str], str | None]:
    """Return the names of the entries, and the code page if one was guessed.

    Args:
        entries: the entries of one archive.
        code_page: the encoding of names without a declared one; guessed if omitted.
    """
    raw = [
        None if entry.flag_bits & _IS_UTF8 else entry.orig_filename.encode(AS_STORED, "replace") for entry in entries
    ]
    stated = [
        None if name_bytes is None else _stated(entry, name_bytes)
        for entry, name_bytes in zip(entries, raw, strict=True)
    ]
    unknown = [
        name_bytes
        for name_bytes, name_ in zip(raw, stated, strict=True)
        if name_bytes and not name_ and not name_bytes.isascii()
    ]
    page = code_page or (guess(unknown) if unknown else AS_STORED)
    names = [
        entry.filename if name_bytes is None else name_ or name_bytes.decode(page, "replace")
        for entry, name_bytes, name_ in zip(entries, raw, stated, strict=True)
    ]
    return names, page if unknown and not code_page and page != AS_STORED else None


def guess(names: Sequence[bytes]) -> str:
    """Return the code page in which these names look most like words."""
    try:
        is_utf8 = all(max(name.decode()) < _RARE for name in names)
    except UnicodeDecodeError:
        is_utf8 = False
    if is_utf8:
        return "utf-8"
    if page := next((page for page in _WESTERN if _is_western(names, page)), None):
        return page
    from chardet import EncodingEra, detect

    detected = detect(b"\n".join(names), encoding_era=EncodingEra.ALL, compat_names=False, include_encodings=CODE_PAGES)
    page = detected["encoding"] or AS_STORED
    return _AS_WINDOWS.get(page, page)


def _is_western(names: Iterable[bytes], page: str) -> bool:
    """Return whether names decoded with a code page look like western European words."""
    try:
        texts = [name.decode(page) for name in names]
    except UnicodeDecodeError:
        return False
    marks = {character for text in texts for character in text if not character.isascii()}
    return marks <= _EVERYDAY and not any(map(_UNLIKELY.search, texts))


def _stated(entry: zipfile.ZipInfo, raw: bytes) -> str | None:
    """Return the name from the Unicode Path field, if its checksum matches the stored name."""
    at, extra = 0, entry.extra
    while at + 4 <= len(extra):
        kind, size = (int.from_bytes(extra[place : place + 2], "little") for place in (at, at + 2))
        field = extra[at + 4 : at + 4 + size]
        at += 4 + size
        is_of_name = field[:1] == b"\1" and int.from_bytes(field[1:5], "little") == zlib.crc32(raw)
        if kind == _UNICODE_PATH and is_of_name:
            return field[5:].decode("utf-8", "replace")
    return None
