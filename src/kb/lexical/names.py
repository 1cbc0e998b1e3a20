"""What documents are called: their title, their file without its ending, and the folders they are in."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from kb.lexical.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LONGEST: Final = 200
"""How many characters of a word, or of a whole name, are kept."""

MOST: Final = 64
"""How many words of a document's names are kept."""

WORD: Final = re.compile(r"[^\W_]+")
IS_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
ENDING: Final = re.compile(r"\.[^\W_]{1,8}$")


def stem_of(path: str) -> str:
    """Return the name of a file without its folders and its ending."""
    name = path.rstrip("/").replace("\\", "/").rpartition("/")[2].rpartition("#")[2]
    return ENDING.sub("", name) or name


def names_of(title: str, source_path: str, filename: str) -> list[str]:
    """Return what a document is called, each once."""
    return list(dict.fromkeys(filter(None, (stem_of(source_path), stem_of(filename), title))))


def folders_of(source_path: str) -> list[str]:
    """Return the names of the folders of a path."""
    return list(PurePosixPath(IS_URL.sub("", source_path.replace("\\", "/"))).parts[:-1])


def ending_of(path: str) -> str:
    """Return the ending of a file's name, without its dot; an empty text if it has none."""
    found = ENDING.search(path)
    return found[0][1:] if found else ""


def tokens_of(tokens: Callable[[str], Sequence[str]], title: str, source_path: str, filename: str) -> list[str]:
    """Return by which words a document's names are found, each name also as a whole."""
    names = names_of(title, source_path, filename)
    words = [word for name in (*names, *folders_of(source_path)) for word in telling(tokens, name)]
    wholes = [whole for name in names if (whole := key_of(telling(tokens, name)))]
    return list(dict.fromkeys(each[:LONGEST] for each in (*wholes, *words)))[:MOST]


def telling(tokens: Callable[[str], Sequence[str]], name: str) -> list[str]:
    """Return the words of a name, without those that say nothing unless there are no others."""
    words = WORD.findall(name)
    said = [word for word in words if word.lower() not in STOP_WORDS] or words
    return list(tokens(" ".join(said)))


def key_of(words: Iterable[str]) -> str:
    """Return a name as a whole, as one of the words by which it is found; no word has a blank."""
    return f" {' '.join(words)}"[:LONGEST]
