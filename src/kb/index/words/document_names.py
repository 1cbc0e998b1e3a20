"""The names of documents: their title, their file without its extension, and their folders."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final

from kb.index.words.function_words import STOP_WORDS

LONGEST: Final = 200
"""The number of characters kept of a word, or of a whole name."""

MOST: Final = 64
"""The number of words kept of a document's names."""

STOP_WORD: Final = re.compile(
    rf"(?<![^\W_]|['\u2019.])(?:{'|'.join(sorted(STOP_WORDS))})(?:['\u2019](?:s|t|re|ll|ve|d|m))?(?![^\W_]|['\u2019+#])",
    re.IGNORECASE,
)
WORD: Final = re.compile(r"[^\W_]+")
IS_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
ENDING: Final = re.compile(r"\.[^\W_]{1,8}$")


HEADING_MARK, ALIAS_MARK = " › ", ", "
"""The separators of headings, and of aliases, in the header of a passage."""

FILE_MARK: Final = "/"
"""Precedes a file name among the words that find a document; no word begins with it."""

WITHIN: Final = re.compile(r".*\.[^\W_]{1,8}#(?=.)|.*#(?=.)", re.DOTALL)
"""The prefix of the name of a file inside another file, such as an attachment."""


def file_name(path: str, *, is_part: bool = False) -> str:
    """Return the name of a file without its folders, or without the file that contains it."""
    path = path.rstrip("/").replace("\\", "/")
    return (WITHIN.sub("", path, count=1) if is_part else path).rpartition("/")[2]


def folded_name(source_path: str | None, title: str, is_part: bool) -> str:
    """Return the name of a document's file, or failing that, its title, in the form that a filter by name compares."""
    return folded(title if source_path is None else file_name(source_path, is_part=is_part))


def folded_names(source_path: str | None, filename: str | None, title: str, is_part: bool) -> list[str]:
    """Return the names that a filter by name compares.

    A file without a path has the name under which it was sent, and its title; other documents have one name.
    """
    sent = [folded(file_name(filename))] if filename and source_path is None else []
    return list(dict.fromkeys([*sent, folded_name(source_path, title, is_part)]))


def folded(name: str) -> str:
    """Return a name, or a pattern of names, case-folded and composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


ORDERED: Final = 240
"""The characters of a title or path that count in a list from A to Z."""


def alphabetic(text: str) -> str:
    """Return a text's place in a list from A to Z, where letters with and without marks are together."""
    letters = unicodedata.normalize("NFD", text[:ORDERED].casefold())
    return letters if letters.isascii() else "".join(each for each in letters if not unicodedata.combining(each))


def file_stem(path: str, *, is_part: bool = False) -> str:
    """Return the name of a file without its extension."""
    name = file_name(path, is_part=is_part)
    return ENDING.sub("", name) or name


def with_aliases(title: str, aliases: Iterable[str]) -> str:
    """Return a title as in the header of passages, with any aliases and authors."""
    said = ALIAS_MARK.join(aliases)
    return f"{title} ({said})" if said else title


def parse_aliases(title: str, header: str) -> list[str]:
    """Return the aliases and authors of a document, which follow its title in the header of its passages."""
    before, behind = f"{title} (", ")"
    first = header.partition(HEADING_MARK)[0]
    if not (title and first.startswith(before) and first.endswith(behind)):
        return []
    return first[len(before) : -len(behind)].split(ALIAS_MARK)


def folder_names(source_path: str) -> list[str]:
    return list(PurePosixPath(IS_URL.sub("", source_path.replace("\\", "/"))).parts[:-1])


def file_ending(path: str) -> str:
    """Return a file extension without its dot; an empty text if the name has none."""
    match = ENDING.search(path)
    return match[0][1:] if match else ""


def tokens_of_names(tokens: Callable[[str], Sequence[str]], names: Sequence[str], source_path: str) -> list[str]:
    """Return the words that find a document by its names, and each name as a whole."""
    words = [word for name in (*names, *folder_names(source_path)) for word in telling(tokens, name)]
    wholes = [whole for name in names if (whole := whole_name(telling(tokens, name)))]
    return list(dict.fromkeys(token[:LONGEST] for token in (*wholes, *words)))[:MOST]


def telling(tokens: Callable[[str], Sequence[str]], name: str) -> list[str]:
    """Return the words of a name without stop words, or all words if the name has no others."""
    if not name:
        return []
    name = unicodedata.normalize("NFC", name)
    if STOP_WORDS.isdisjoint(WORD.findall(name.casefold())):  # many times as fast as the pattern
        return list(tokens(name))
    return list(tokens(STOP_WORD.sub(" ", name)) or tokens(name))


def whole_name(words: Iterable[str]) -> str:
    """Return a name as a single token, which no word equals because it contains spaces."""
    return f" {' '.join(words)}"[:LONGEST]
