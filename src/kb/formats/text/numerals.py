# ruff: noqa: RUF001 - digits and letters of other scripts
"""Numbers as documents write them: in letters, Roman, in words, in the digits and the letters of other scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
_ORDINALS: Final = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_LATIN: Final = "abcdefghijklmnopqrstuvwxyz"
_RUSSIAN: Final = "абвгдежзиклмнопрстуфхцчшщыэюя"
_AIUEO: Final = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"
_IROHA: Final = "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセスン"
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
    """Return a number in lower-case Roman numerals."""
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


def _repeated(signs: str) -> Callable[[int], str]:
    return lambda number: letters(number, signs)


def _from(first: int, count: int, otherwise: Callable[[int], str] = str) -> Callable[[int], str]:
    """Return a function that counts in Unicode's own characters for the numbers from one to `count`."""
    return lambda number: chr(first + number - 1) if 0 < number <= count else otherwise(number)


def _digits(zero: str) -> Callable[[int], str]:
    table = {ord("0") + digit: ord(zero) + digit for digit in range(10)}
    return lambda number: str(number).translate(table)


def _listed(signs: str) -> Callable[[int], str]:
    return lambda number: signs[number - 1] if 0 < number <= len(signs) else str(number)


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
    "chicago": _repeated("*†‡§"),
    "numberInDash": lambda number: f"- {number} -",
    "decimalEnclosedCircle": _from(0x2460, 20),
    "decimalEnclosedCircleChinese": _from(0x2460, 20),
    "decimalEnclosedFullstop": _from(0x2488, 20),
    "decimalEnclosedParen": _from(0x2474, 20),
    "decimalFullWidth": _digits("０"),
    "decimalFullWidth2": _digits("０"),
    "russianLower": _repeated(_RUSSIAN),
    "russianUpper": _repeated(_RUSSIAN.upper()),
    "chineseCounting": chinese,
    "chineseCountingThousand": chinese,
    "japaneseCounting": chinese,
    "taiwaneseCounting": chinese,
    "taiwaneseCountingThousand": chinese,
    "ideographDigital": lambda number: "".join(_CHINESE[int(digit)] for digit in str(number)),
    "japaneseDigitalTenThousand": lambda number: "".join(_CHINESE[int(digit)] for digit in str(number)),
    "taiwaneseDigital": lambda number: "".join(_CHINESE[int(digit)] for digit in str(number)),
    "ideographEnclosedCircle": _from(0x3280, 10),
    "ideographTraditional": _listed("甲乙丙丁戊己庚辛壬癸"),
    "ideographZodiac": _listed("子丑寅卯辰巳午未申酉戌亥"),
    "aiueoFullWidth": _repeated(_AIUEO),
    "irohaFullWidth": _repeated(_IROHA),
    "ganada": _repeated("가나다라마바사아자차카타파하"),
    "chosung": _repeated("ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ"),
    "koreanDigital": lambda number: "".join("영일이삼사오육칠팔구"[int(digit)] for digit in str(number)),
    "arabicAlpha": _repeated("أبتثجحخدذرزسشصضطظعغفقكلمنهوي"),
    "arabicAbjad": _repeated("أبجدهوزحطيكلمنسعفصقرشتثخذضظغ"),
    "hebrew2": _repeated("אבגדהוזחטיכלמנסעפצקרשת"),
    "hindiNumbers": _digits("०"),
    "thaiNumbers": _digits("๐"),
    "thaiLetters": _repeated("กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ"),
}
"""The ways to write a number by their names in Office Open XML, and two from OpenDocument; others use digits."""


def written(number: int, way: str) -> str:
    """Return a number in one of the ways in `FORMATS`, or in digits if that would be too long."""
    if not 0 < number <= _MOST:
        return str(number)
    numeral = FORMATS.get(way, str)(number)
    return numeral if len(numeral) <= _LONGEST else str(number)
