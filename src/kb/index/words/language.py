"""The language of a text, guessed from its letters."""

from __future__ import annotations

import re
import threading
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Any, Final

CODES = """
    af ar az be bg bn ca cs cy da de el en es et eu fa fi fr ga gu he hi hr hu hy id is it ja ka kk km kn ko
    la lo lt lv mk ml mn mr my ne nl nn no pa pl pt ro ru si sk sl sq sr sv sw ta te th tl tr uk ur uz vi zh
    zxx
"""
GUESSED: Final = frozenset(CODES.split())
"""The possible languages; rare ones make guesses less certain. `zxx` is text without a language, such as code."""

ONE: Final = {"nn": "no", "zxx": ""}
"""Both kinds of Norwegian count as one, because their stems do."""

SURE, AGREED = 0.6, 2 / 3
"""The minimum probability of a guess, and the minimum share of a text, which may be in several languages."""

LETTERS = 15
"""The minimum number of letters: a shorter text may be in many languages."""

CHUNKS, CHARACTERS = 6, 600
"""The number of chunks of a document that are read, and of characters in each."""

PIECES, SHORTEST_PIECE = 12, 80
"""The number of pieces that are checked for a single language, and their minimum number of characters."""

SPACELESS: Final = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""Letters of languages without spaces between words."""

UNWRITTEN: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^<>]*>"
    rf"|[^\s{SPACELESS}]*[\d_/\\{{}}=<>|@][^\s{SPACELESS}]*",
    re.DOTALL,
)
"""Code, addresses, markup, names and numbers, which have no language."""

LETTER: Final = re.compile(r"[^\W\d_]")
KANA, HAN = re.compile("[\u3041-\u3096\u30a1-\u30fa]"), re.compile("[\u4e00-\u9fff]")
LEAST_KANA: Final = 0.1
"""The least share of kana among kana and Chinese characters in Japanese; other languages of such letters have none."""

_loading = threading.Lock()


def guessed(texts: Sequence[str]) -> str | None:
    """Return the ISO 639-1 code of the language of a document's texts; None if it is unclear or mixed."""
    step = max(1, -(-len(texts) // CHUNKS))
    text = " ".join(" ".join(UNWRITTEN.sub(" ", text[: 2 * CHARACTERS])[:CHARACTERS].split()) for text in texts[::step])
    if sum(1 for _ in islice(LETTER.finditer(text), LETTERS)) < LETTERS:
        return None
    language = _most_likely(text)
    if language is None or len(text) < 2 * SHORTEST_PIECE:
        return language
    counts = Counter(filter(None, map(_most_likely, _pieces(text))))
    return language if counts[language] >= AGREED * counts.total() else None


def _pieces(text: str) -> Iterator[str]:
    size = max(SHORTEST_PIECE, -(-len(text) // PIECES))
    return (text[start : start + size] for start in range(0, len(text), size))


def _most_likely(text: str) -> str | None:
    """Return the language of a text; None if the guess is too uncertain."""
    if _is_japanese(text):
        return "ja"
    likely = Counter[str]()
    for language, probability in islice(_identifier().rank(text), 3):
        likely[ONE.get(language, language)] += probability
    [(language, probability)] = likely.most_common(1)
    return language or None if probability >= SURE else None


def _is_japanese(text: str) -> bool:
    kana, han = (len(letters.findall(text)) for letters in (KANA, HAN))
    is_east_asian = 2 * (kana + han) > len(LETTER.findall(text))
    return is_east_asian and kana > LEAST_KANA * (kana + han)


def _identifier() -> Any:  # noqa: ANN401 - py3langid declares no types
    with _loading:
        return _load()


@cache
def _load() -> Any:  # noqa: ANN401 - py3langid declares no types
    """Return the classifier, in a third of the memory that all its languages would take. Loading takes 0.5 seconds."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    every = LanguageIdentifier.from_model_file(MODEL_FILE)
    every.set_languages(GUESSED)
    numbers, steps = (every.nb_ptc, every.nb_pc, every.nb_classes), _mapped(every.tk_nextmove)
    return LanguageIdentifier(*numbers, steps, every.tk_output, norm_probs=True, tk_row=every.tk_row)


def _mapped(steps: array[int]) -> Any:  # noqa: ANN401 - an array, or a view that is read as one
    """Return the same numbers in a temporary file, of which texts use few pages; in memory if the disk is full."""
    try:
        with TemporaryFile() as file:
            steps.tofile(file)
            file.flush()
            form: Any = steps.typecode
            return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ)).cast(form)
    except OSError:
        return steps
