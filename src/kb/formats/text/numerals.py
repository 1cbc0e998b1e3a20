# ruff: noqa: RUF001 - digits and letters of other scripts
"""Numbers as documents write them: in letters, Roman, in words, in the digits and the letters of other scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

_MOST: Final = 32_767
"""Word does not count further."""

_LONGEST: Final = 60

_ROMAN: Final = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_ONES: Final = (
    *("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS: Final = dict(
    zip(
        ("one", "two", "three", "five", "eight", "nine", "twelve"),
        ("first", "second", "third", "fifth", "eighth", "ninth", "twelfth"),
        strict=True,
    )
)
_LATIN: Final = "abcdefghijklmnopqrstuvwxyz"
_CHINESE: Final = "〇一二三四五六七八九"
_CHINESE_UNITS: Final = ((1000, "千"), (100, "百"), (10, "十"))


def letters(number: int, alphabet: str = _LATIN) -> str:
    """Return a number in Word's letters: aa and bb follow z."""
    rounds, place = divmod(number - 1, len(alphabet))
    return alphabet[place] * (rounds + 1)


def base_letters(number: int) -> str:
    """Return a number in OpenDocument's and HTML's letters: aa and ab follow z."""
    digits = ""
    while number > 0:
        number, place = divmod(number - 1, len(_LATIN))
        digits = _LATIN[place] + digits
    return digits


def roman(number: int) -> str:
    numeral = ""
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        numeral += sign * count
    return numeral


def ordinal(number: int) -> str:
    """Return a number as 1st, 2nd, 3rd."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def cardinal_words(number: int) -> str:
    """Return a number in words: twenty-one."""
    if number < len(_ONES):
        return _ONES[number]
    for value, name in ((1000, "thousand"), (100, "hundred")):
        if number >= value:
            most, rest = divmod(number, value)
            return f"{cardinal_words(most)} {name} {cardinal_words(rest)}".strip()
    return "-".join(filter(None, (_TENS[number // 10], _ONES[number % 10])))


def ordinal_words(number: int) -> str:
    """Return a number in words: twenty-first."""
    words = cardinal_words(number)
    start = max(words.rfind(" "), words.rfind("-")) + 1
    last = words[start:]
    return words[:start] + (_ORDINALS.get(last) or f"{last.removesuffix('y') + 'ie' * last.endswith('y')}th")


def chinese(number: int) -> str:
    """Return a number in Chinese and Japanese numerals: 二十一."""
    numeral, rest = "", number
    for value, unit in ((10_000, "万"), *_CHINESE_UNITS):
        count, rest = divmod(rest, value)
        is_plain_ten = value == 10 and count == 1 and not numeral
        has_gap = numeral and not count and rest and not numeral.endswith("〇")
        if count:
            numeral += ("" if is_plain_ten else chinese(count)) + unit
        elif has_gap:
            numeral += "〇"
    return numeral + (_CHINESE[rest] if rest or not number else "")


def _counted(signs: Sequence[str], number: int) -> str:
    return signs[number - 1] if 0 < number <= len(signs) else str(number)


def _translated(digits: str, number: int) -> str:
    return "".join(digits[int(digit)] for digit in str(number))


_ALPHABETS: Final = {
    "chicago": "*†‡§",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ",
    "aiueoFullWidth": "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    "ganada": "가나다라마바사아자차카타파하",
    "chosung": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "arabicAbjad": "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ",
    "hebrew2": "אבגדהוזחטיכלמנסעפצקרשת",
    "thaiLetters": "กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ",
}
_SIGNS: Final = {
    "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedCircleChinese": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedFullstop": "⒈⒉⒊⒋⒌⒍⒎⒏⒐⒑⒒⒓⒔⒕⒖⒗⒘⒙⒚⒛",
    "decimalEnclosedParen": "⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⑾⑿⒀⒁⒂⒃⒄⒅⒆⒇",
    "ideographEnclosedCircle": "㊀㊁㊂㊃㊄㊅㊆㊇㊈㊉",
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
}
_DIGITS: Final = {
    **dict.fromkeys(("decimalFullWidth", "decimalFullWidth2"), "０１２３４５６７８９"),
    **dict.fromkeys(("ideographDigital", "japaneseDigitalTenThousand", "taiwaneseDigital"), _CHINESE),
    "koreanDigital": "영일이삼사오육칠팔구",
    "hindiNumbers": "०१२३४५६७८९",
    "thaiNumbers": "๐๑๒๓๔๕๖๗๘๙",
}
_CHINESE_WAYS: Final = (
    *("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting"),
    "taiwaneseCountingThousand",
)
FORMATS: Final[Mapping[str, Callable[[int], str]]] = {
    "decimal": str,
    "decimalZero": lambda number: f"{number:02}",
    "lowerRoman": roman,
    "upperRoman": lambda number: roman(number).upper(),
    "lowerLetter": letters,
    "upperLetter": lambda number: letters(number).upper(),
    "baseLetter": base_letters,
    "upperBaseLetter": lambda number: base_letters(number).upper(),
    "ordinal": ordinal,
    "cardinalText": lambda number: cardinal_words(number).capitalize(),
    "ordinalText": lambda number: ordinal_words(number).capitalize(),
    "hex": lambda number: f"{number:X}",
    "numberInDash": lambda number: f"- {number} -",
    **{way: partial(letters, alphabet=signs) for way, signs in _ALPHABETS.items()},
    **{way: partial(_counted, signs) for way, signs in _SIGNS.items()},
    **{way: partial(_translated, digits) for way, digits in _DIGITS.items()},
    **dict.fromkeys(_CHINESE_WAYS, chinese),
}
"""The ways to write a number by their names in Office Open XML, and two from OpenDocument; others use digits."""


def written(number: int, way: str) -> str:
    """Return a number in one of the ways in `FORMATS`, or in digits if that would be too long."""
    if not 0 < number <= _MOST:
        return str(number)
    numeral = FORMATS.get(way, str)(number)
    return numeral if len(numeral) <= _LONGEST else str(number)
