"""Estimate the number of tokens of a text."""

import re
from typing import Final

LONG_WORD: Final = 9
"""Words with more letters than this are more than one token."""

TOKENS_PER_LETTER: Final = 0.47
"""Tokens per further letter."""

CLASSES: Final = {
    "glued": (r"(?<=[A-Za-z0-9])[A-Za-z]+", 0.0, 0.53),
    "upper": (r"[A-Z]{2,}(?![a-z])", 1.05, 0.02),
    "word": (r"[A-Z]?[a-z]{2,}", 0.98, 0.0),
    "letter": (r"[A-Za-z]", 0.76, 0.0),
    "digits": (r"[0-9]{1,3}", 1.55, 0.0),
    "newlines": (r"\s*\n\s*", 0.83, 0.0),
    "spaces": (r"[ \t]{2,}", 0.4, 0.0),
    "punctuation": (r"[!-/:-@\[-`{-~]+", 0.8, 0.08),
    "accented": (r"[\u0080-\u024f\u1e00-\u1eff]", 0.7, 0.0),
    "greek_cyrillic": (r"[\u0370-\u052f]+", 0.0, 0.3),
    "near_east": (r"[\u0530-\u07ff]+", 0.0, 0.44),
    "indic": (r"[\u0900-\u0dff]+", 0.0, 0.33),
    "thai": (r"[\u0e00-\u0eff]+", 0.0, 0.36),
    "signs": (r"[\u2000-\u22ff\u2500-\u25ff]+", 0.0, 0.5),
    "kana": (r"[\u3000-\u30ff]+", 0.0, 0.87),
    "ideographs": (r"[\u4e00-\u9fff]+", 0.0, 0.78),
    "hangul": (r"[\uac00-\ud7af]+", 0.0, 0.76),
    "fullwidth": (r"[\uff00-\uffef]+", 0.0, 0.9),
    "other": (r"[^\x00-\x7f]+", 0.0, 2.3),
    "control": (r"[\x00-\x08\x0b-\x1f\x7f]", 1.0, 0.0),
}
"""The kinds of pieces of a text, with tokens per piece and per character, fitted to o200k_base."""

PIECE: Final = re.compile("|".join(f"(?P<{name}>{pattern})" for name, (pattern, _, _) in CLASSES.items()))
COSTS: Final = {name: (cost, character) for name, (_, cost, character) in CLASSES.items()}


def estimate_tokens(text: str) -> float:
    """Return the estimated number of tokens of a text, within about 10%."""
    tokens = 0.0
    for piece in PIECE.finditer(text):
        kind = piece.lastgroup or ""
        cost, character = COSTS[kind]
        size = piece.end() - piece.start()
        tokens += cost + size * character
        if kind == "word" and size > LONG_WORD:
            tokens += (size - LONG_WORD) * TOKENS_PER_LETTER
    return tokens
