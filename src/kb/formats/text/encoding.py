"""Decodes bytes of any encoding to text that can be stored and sent."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Final
from unicodedata import category

from kb.api.errors import Unreadable
from kb.formats.text.terminal import without_terminal_signs

NOT_TEXT: Final = "this looks like binary data of an unknown type"

NULS: Final = 100
"""UTF-8 text may contain fewer than one NUL per this number of characters."""
TELLS_LITTLE: Final = 3
"""The number of non-ASCII bytes up to which a guess is not reliable."""

SAMPLE: Final = 65_536

# UTF-32 comes before UTF-16, because its little-endian mark begins with UTF-16's.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# In practice, these declared encodings mean their superset: https://encoding.spec.whatwg.org/#names-and-labels
_SUPERSETS: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
}
_CHARACTER_SETS: Final = re.compile(r"cp\d|iso8859|iso2022|euc|big5|gb|koi8|mac|shift|tis")
_ASCII: Final = bytes(range(128))
_NEWLINE: Final = re.compile(r"\r\n?")
_BESIDE: Final = re.compile(rb"[\x80-\xff]{2}")
_FOREIGN: Final = re.compile(r"[^\W\d_\0-\u024f]")
_FOREIGN_BESIDE_LATIN: Final = re.compile(rf"(?<=[A-Za-z]){_FOREIGN.pattern}|{_FOREIGN.pattern}(?=[A-Za-z])")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def clean(text: str) -> str:
    r"""Return `text` with `\n` for newlines and without characters that SQLite or JSON cannot store."""
    return _UNSTORABLE.sub("\ufffd", _NEWLINE.sub("\n", text))


def one_line(text: str) -> str:
    """Return `text` with each run of white space replaced by one space."""
    return " ".join(text.split())


@lru_cache(maxsize=1)  # detecting the type and reading the file decode the same bytes
def decode(data: bytes, declared: str | None = None) -> str:
    """Return the text of `data`, in the encoding detected or `declared` in the file.

    It has normalised newlines, and no signs that only control a terminal.

    Raises:
        Unreadable: the bytes are not text.
    """
    encoding = _encoding(data, declared)
    text = without_terminal_signs(data.decode(encoding, "replace"))
    are_few = encoding.startswith("utf-8") and text.count("\0") * NULS < len(text)
    if ("\0" in text and not are_few) or _is_garbled(text):
        raise Unreadable(NOT_TEXT)
    return clean(text)


def as_utf8(data: bytes) -> bytes:
    """Return UTF-16 or UTF-32 text as UTF-8, for code that searches for ASCII, and any other data unchanged."""
    is_marked = any(data.startswith(mark) for mark, encoding in _MARKS if encoding != "utf-8-sig")
    if not is_marked and b"\0" not in data[:2]:
        return data
    try:
        return decode(data).encode()
    except Unreadable:
        return data


def _encoding(data: bytes, declared: str | None) -> str:
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    if marked:
        return marked
    if b"\0" in data:
        return "utf-8" if _decodes(data, "utf-8") and not _is_garbled(data.decode()) else _utf16_order(data)
    if b"\x1b$" in data and _decodes(data, "iso2022_jp"):
        return "iso2022_jp"
    if _decodes(data, "utf-8") or _is_damaged_utf8(data):
        return "utf-8"
    return _declared_encoding(data, declared) or _guessed_encoding(data)


def _utf16_order(data: bytes) -> str:
    whole = data[: len(data) // 2 * 2]
    orders = [order for order in ("utf-16-le", "utf-16-be") if _decodes(whole, order)]
    score, order = max(((_legibility(whole.decode(order)), order) for order in orders), default=((0, 0), ""))
    if score == (0, 0):
        raise Unreadable(NOT_TEXT)
    return order


def _legibility(text: str) -> tuple[int, int]:
    # White space first: in the wrong byte order, common Chinese characters turn into ASCII letters.
    return text.count(" ") + text.count("\n"), len(text.encode("ascii", "ignore"))


def _is_damaged_utf8(data: bytes) -> bool:
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    ascii_characters = len(data) - len(data.translate(None, delete=_ASCII))
    good = len(text) - ascii_characters - bad
    return good >= 10 * bad


def _declared_encoding(data: bytes, declared: str | None) -> str | None:
    try:
        name = codecs.lookup(declared or "").name
    except (LookupError, ValueError):
        return None
    encoding = _SUPERSETS.get(name, name)
    usable = _CHARACTER_SETS.match(encoding) and _decodes(b"<a1>", encoding, "<a1>") and _decodes(data, encoding)
    return encoding if usable else None


def _guessed_encoding(data: bytes) -> str:
    from chardet import EncodingEra, detect

    # Lines of plain ASCII carry no information, and would fill the detector's window.
    telling = b"\n".join(line for line in data.split(b"\n") if not line.isascii())
    guess = detect(telling, encoding_era=EncodingEra.MODERN_WEB, prefer_superset=True, compat_names=False)
    guessed: str = guess["encoding"] or ""
    if _decodes(data, "cp1252") and (_tells_little(telling) or _mixes_scripts(telling, guessed)):
        return "cp1252"
    if not guessed:
        raise Unreadable(NOT_TEXT)
    return guessed


def _tells_little(data: bytes) -> bool:
    """Return whether there are only a few isolated non-ASCII bytes, so that a guess is not reliable."""
    return len(data.translate(None, delete=_ASCII)) <= TELLS_LITTLE and not _BESIDE.search(data)


def _mixes_scripts(data: bytes, encoding: str) -> bool:
    """Return whether most foreign letters are next to Latin ones, which nobody writes: they are also Latin."""
    sample = data[:SAMPLE]
    text = sample.decode(encoding or "ascii", "replace")
    foreign = _FOREIGN.findall(text)
    return len(text) == len(sample) and 2 * len(_FOREIGN_BESIDE_LATIN.findall(text)) > len(foreign)


def _decodes(data: bytes, encoding: str, expected: str | None = None) -> bool:
    try:
        text = data.decode(encoding)
    except (UnicodeError, LookupError):
        return False
    return expected in (None, text)


def _is_garbled(text: str) -> bool:
    sample = text[:: max(1, len(text) // 8192)]
    return sum(map(_is_unprintable, sample)) * 20 > len(sample)


def _is_unprintable(character: str) -> bool:
    if character == "\ufffd":
        return True
    return category(character) in {"Cc", "Cn", "Cs"} and character not in "\t\n\v\f\r\x1b\x85"
