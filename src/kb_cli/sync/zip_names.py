"""The names in an archive whose maker did not say how they are encoded: one guess for all of them."""

from __future__ import annotations

import re
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from unicodedata import category, name

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterable, Sequence

AS_STORED: Final = "cp437"
"""What the format says names are in that are not marked as UTF-8."""

_IS_UTF8: Final = 0x800
_UNICODE_PATH: Final = 0x7075

CODE_PAGES: Final = (
    *("cp437", "cp850", "cp852", "cp866", "cp737", "cp857", "cp862", "cp775", "cp1252", "cp1250", "cp1251", "cp1253"),
    *("gbk", "cp932", "cp949", "cp950"),
)
"""What Windows and the programs before it write names in; where two fit alike, the first is meant."""

_RUN: Final = re.compile(r"[^\W\d_]+")
_COMMON: Final = frozenset(
    "的一是不了在人有我他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用"
    "发天如然作方成者多日都三小军二无同主经公此已工使情明性知全与实文件报告会议记录说明图片新建资料项目计划总结合同表格"
    "通知简历照片目录附录船库信"
    "這為來個們國時會後過對裡發經報議記錄說圖資計劃總結約單據檔案書電話號測試業務學習備份倉庫應當問題"
    "다이는을의가에고서사지로기하도인자대한리시보과정수해어부전제일나주그상동공원신장안요구아성비영경국회의록문계획견적"
    "の会議録報告書資料写真新規年月日一覧表見積請求画像編集案内設計仕様作業予定確認版旧東京都市区町村"
)
_RARE: Final = "\U00020000"
"""From here on are characters that no one writes; four bytes in another code page may look like one."""

_EVERYDAY_LATIN: Final = frozenset("äöüßéèáàíóúñçåøæãâêôÄÖÜÉ")
_SELDOM_LATIN: Final = frozenset("ÿïðþÐÞÝõÕ")
_LONGEST_RUN: Final = 4
"""How many letters with marks may stand beside each other in a word, as in Polish."""

_IN_NAMES: Final = "№’“”。、・ー（）【】《》"  # noqa: RUF001 - as they are written there
_MIXED: Final = -3.0
_ODD: Final = -3.0


def names_of(entries: Sequence[zipfile.ZipInfo], code_page: str | None) -> tuple[list[str], str | None]:
    """Return what the entries are called, and the code page that was guessed, if one had to be.

    Args:
        entries: those of one archive.
        code_page: what names are in that do not say it themselves; guessed where it is not given.
    """
    raw = [None if entry.flag_bits & _IS_UTF8 else _raw(entry) for entry in entries]
    stated = [None if each is None else _stated(entry, each) for entry, each in zip(entries, raw, strict=True)]
    unknown = [each for each, name_ in zip(raw, stated, strict=True) if each and not name_ and not each.isascii()]
    page = code_page or (guess(unknown) if unknown else AS_STORED)
    names = [
        entry.filename if each is None else name_ or each.decode(page, "replace")
        for entry, each, name_ in zip(entries, raw, stated, strict=True)
    ]
    return names, page if unknown and not code_page and page != AS_STORED else None


def guess(names: Sequence[bytes]) -> str:
    """Return the code page in which these names are the most like words."""
    try:
        is_utf8 = all(max(each.decode()) < _RARE for each in names)
    except UnicodeDecodeError:
        is_utf8 = False
    if is_utf8:
        return "utf-8"
    scores = {page: _score(names, page) for page in CODE_PAGES}
    return max(CODE_PAGES, key=lambda page: scores[page])


def _raw(entry: zipfile.ZipInfo) -> bytes:
    return entry.orig_filename.encode(AS_STORED, "replace")


def _stated(entry: zipfile.ZipInfo, raw: bytes) -> str | None:
    """Return the name in the Unicode Path field, which holds for the name that it was made for."""
    at, extra = 0, entry.extra
    while at + 4 <= len(extra):
        kind, size = (int.from_bytes(extra[place : place + 2], "little") for place in (at, at + 2))
        field = extra[at + 4 : at + 4 + size]
        at += 4 + size
        is_of_name = field[:1] == b"\1" and int.from_bytes(field[1:5], "little") == zlib.crc32(raw)
        if kind == _UNICODE_PATH and is_of_name:
            return field[5:].decode("utf-8", "replace")
    return None


def _score(names: Iterable[bytes], page: str) -> float:
    """Return how much names look like words in a code page, by character beyond ASCII."""
    total, count = 0.0, 0
    for raw in names:
        try:
            text = raw.decode(page)
        except UnicodeDecodeError:
            return float("-inf")
        count += sum(not each.isascii() for each in text)
        total += sum(_worth(each) for each in text if not each.isascii() and not each.isalpha())
        total += sum(_worth_of_word(word) for word in _RUN.findall(text) if not word.isascii())
    return total / max(count, 1)


def _worth(character: str) -> float:
    """Return what a sign beyond ASCII is worth: no one names a file by a line of a frame, or half of a fraction."""
    kind = category(character)
    return 0.0 if kind in ("Pd", "Mn", "Mc", "Lm") or character in _IN_NAMES else _ODD


def _worth_of_word(word: str) -> float:
    """Return what a run of letters is worth: those of one script, and small ones after the first."""
    scripts = {_script(each) for each in word}
    worth = sum(map(_worth_of_letter, word)) + _MIXED * (len(_joined(scripts)) - 1)
    shouts = sum(before.islower() and each.isupper() for before, each in pairwise(word))
    runs = [len(run) for run in re.findall(r"[\u00c0-\u024f]{3,}", word)]
    return worth + _ODD * (shouts + sum(run for run in runs if run > _LONGEST_RUN)) - sum(runs)


def _joined(scripts: set[str]) -> set[str]:
    """Return scripts, those as one that people write beside each other."""
    japanese = {"HIRAGANA", "KATAKANA", "CJK"}
    return (scripts - japanese) | {"CJK"} if scripts & japanese else scripts


def _worth_of_letter(letter: str) -> float:
    if letter.isascii():
        return 0.0
    if letter in _COMMON:
        return 2.0
    if letter in _EVERYDAY_LATIN:
        return 1.5
    if letter in _SELDOM_LATIN:
        return 0.5
    match _script(letter):
        case "CJK":
            return 0.5 if _is_everyday(letter) else -1.0
        case "HALFWIDTH" | "MODIFIER" | "FEMININE" | "MASCULINE" | "MICRO" | "OTHER":
            return _ODD
        case _:
            return 1.0


def _is_everyday(letter: str) -> bool:
    """Return whether a Chinese character is one of the everyday ones of some standard."""
    for page, last in (("gb2312", 0xD7), ("big5", 0xC6), ("shift_jis", 0x97)):
        try:
            encoded = letter.encode(page)
        except UnicodeEncodeError:
            continue
        if len(encoded) == 2 and encoded[0] <= last:
            return True
    return False


def _script(letter: str) -> str:
    return "LATIN" if letter.isascii() else name(letter, "OTHER").split()[0].split("-")[0]
