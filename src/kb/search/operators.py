"""The operators of a query: tag:x, #x, path:x, type:pdf, after:2026-03, before:2026, by:ada, -word and "a phrase".

docs/query.md has the grammar. One rule holds for everything else, such as foo:bar, 12:30 or after:noon: it is words.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime
from itertools import chain, takewhile
from typing import Final, Literal, NamedTuple

from kb.api.date_parsing import moment
from kb.api.errors import Invalid
from kb.api.file_types import types_called
from kb.api.limits import MAX_NAME, MAX_PATH
from kb.api.search_wording import KEYS
from kb.api.stream_safe import composed
from kb.api.tag_tree import clean_tags, split_tags, tags_above
from kb.index.words.function_words import STOP_WORDS
from kb.index.words.segmentation import RUN
from kb.markdown.tags import tag_at
from kb.store.rows import Filter

Kind = Literal["tag", "path", "type", "after", "before", "by", "words"]

MAX_OPERATORS: Final = 32
"""The maximum number of operators in a query, not counting phrases and excluded words."""

MIN_EXCLUDED: Final = 3
"""The minimum length of an excluded word; a shorter one is more likely an option of a command."""

QUOTED: Final = (
    r"(?:[\"\uff02“”„][^\"\uff02“”„]+[\"\uff02“”]"
    r"|«[^«»]+»|»(?!\s)[^«»]+(?<!\s)[«»]"
    r"|\u2039[^\u2039\u203a]+\u203a|\u203a(?!\s)[^\u2039\u203a]+(?<!\s)[\u2039\u203a]"
    r"|「[^「」]+」|『[^『』]+』)"
)
"""A phrase in the quotation marks of any language; other marks may be in it. `Home » News » Today` has none."""

PHRASE: Final = re.compile(
    rf"(?:(?<!\w)|(?=[「『]))(?P<lacking>-?)(?P<phrase>{QUOTED})(?:(?!\w)|(?<=[」』]))"  # Japanese has no spaces
)
OPERATOR: Final = re.compile(
    r"(?<!\S)(?P<sign>-?)(?:(?P<kind>" + "|".join(KEYS) + ")[:\uff1a]"
    rf"(?:(?P<quoted>{QUOTED}|'[^']+')|(?P<bare>(?![«»\u2039\u203a「」『』])[^\s\"“”„]++))|\#(?P<hash>[^\s,;.!?)]++))"
    r"[,;.!?)]*+(?!\S)",
    re.IGNORECASE,
)
EITHER: Final = re.compile(f"{PHRASE.pattern}|{OPERATOR.pattern}", re.IGNORECASE)
"""A phrase or an operator: within a phrase, operators are words."""

UNSEEN: Final = dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF))
"""Breaks and directions that come along with pasted words. Joiners stay: Persian and emoji are spelled with them."""

CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class Operator(NamedTuple):
    """An operator that kb understood: `typed` is its text in the query, and `excluded` whether results lack it."""

    operator: Kind
    value: str
    excluded: bool
    typed: str


class Narrowed(NamedTuple):
    """A query without its operators."""

    text: str
    operators: list[Operator]

    def values(self, kind: Kind, *, excluded: bool = False) -> tuple[str, ...]:
        return tuple(each.value for each in self.operators if (each.operator, each.excluded) == (kind, excluded))

    def within(self, where: Filter) -> Filter:
        """Return a filter that also has the conditions of the operators."""
        if not self.operators:
            return where
        return replace(
            where,
            tags=(*where.tags, *self.values("tag")),
            tag_not=(*where.tag_not, *self.values("tag", excluded=True)),
            source_parts=(*where.source_parts, *self.values("path")),
            source_parts_not=self.values("path", excluded=True),
            authors=self.values("by"),
            authors_not=self.values("by", excluded=True),
            doc_types=self.values("type"),
            doc_types_not=self.values("type", excluded=True),
            after=max(filter(None, (where.after, *map(_begin, self.values("after")))), key=datetime.date, default=None),
            before=min(
                filter(None, (where.before, *map(_begin, self.values("before")))), key=datetime.date, default=None
            ),
        )


def as_read(text: str) -> str:
    """Return a query in NFC without characters that nobody sees."""
    return text if text.isascii() else composed(text).translate(UNSEEN)


def within_quotes(match: re.Match[str]) -> str:
    """Return the phrase of a match of `PHRASE`. A star in quotes means nothing, nor do the spaces of « French »."""
    return match["phrase"][1:-1].strip("* \xa0\u202f\u3000")


def narrowed(text: str, types: Collection[str], tags_in_use: Callable[[], Iterable[str]]) -> Narrowed:
    """Return a query with its operators apart.

    Args:
        text: the query.
        types: the known types of documents.
        tags_in_use: returns the tags of documents; called only if the query names tags.

    Raises:
        Invalid: the query has more operators than `MAX_OPERATORS`.
    """
    text = as_read(text)
    if not OPERATOR.search(text):
        return Narrowed(text, [])
    operators, known = list[Operator](), dict[str, str]()

    def without(match: re.Match[str]) -> str:
        if not (match["kind"] or match["hash"]):
            return match[0]
        found = list(_read(match, types))
        if found and found[0].operator == "tag":
            if not known:
                known.update(_branches(tags_in_use()))
            found = [each._replace(value=known.get(each.value) or _folded(each.value, known)) for each in found]
            if match["hash"] and not match["sign"] and found[0].value not in known:
                return match[0]
        operators.extend(found)
        return " " if found else match[0]

    rest = EITHER.sub(without, text)
    if len(operators) > MAX_OPERATORS:
        raise Invalid(f"query: at most {MAX_OPERATORS} operators are allowed; this query has {len(operators)}.")
    return Narrowed(" ".join(rest.split()), operators) if operators else Narrowed(text, [])


def _read(match: re.Match[str], types: Collection[str]) -> Iterator[Operator]:
    """Yield the operators in a match: several if a value lists several; none if the value is invalid."""
    kind, excluded = (match["kind"] or "tag").lower(), bool(match["sign"])
    bare = (match["bare"] or "").rstrip(",;!?" if kind == "path" else ",;!?.)")
    value = " ".join(match["quoted"][1:-1].split() if match["quoted"] else bare.split())
    if match["hash"]:
        word = f"#{match['hash']}"
        if word == f"#{tag_at(word, 0)}":
            yield Operator("tag", word[1:], excluded, match[0])
    elif kind == "tag":
        yield from (Operator("tag", tag, excluded, match[0]) for tag in clean_tags(split_tags(value)))
    elif kind == "path" and (value := value.strip("*")) and len(value) <= MAX_PATH and not CONTROL.search(value):
        yield Operator("path", value, excluded, match[0])
    elif kind == "by" and value and len(value) <= MAX_NAME and not CONTROL.search(value):
        yield Operator("by", value, excluded, match[0])
    elif kind == "type":
        called = [types_called(name, types) for name in value.split(",")]
        if all(called):
            yield from (Operator("type", each, excluded, match[0]) for each in chain.from_iterable(called))
    elif day := _day(value, kind):
        # Not on or after a day means before it.
        since = (kind == "after") != excluded
        yield Operator("after" if since else "before", day, excluded=False, typed=match[0])


def _day(value: str, kind: str) -> str | None:
    """Return the day of a written date in ISO 8601; None if it is not a date."""
    try:
        instant = moment(value, kind) if kind in ("after", "before") else None
    except Invalid:
        return None
    return instant and instant[: len("2026-01-31")]


def _begin(day: str) -> datetime:
    return datetime.fromisoformat(f"{date.fromisoformat(day)}T00:00:00+00:00")


def _branches(tags: Iterable[str]) -> dict[str, str]:
    """Return tags and the tags above them, each under its own name."""
    return {branch: branch for tag in tags for branch in (tag, *tags_above(tag))}


def _folded(tag: str, known: Iterable[str]) -> str:
    """Return the known tag that differs only in case; otherwise the tag unchanged."""
    return next((other for other in known if other.casefold() == tag.casefold()), tag)


def excluded_words(text: str, lacking: Collection[str]) -> list[Operator]:
    """Return the words and phrases that a query excludes, as operators."""
    if not lacking:
        return []
    phrases = {within_quotes(match): match[0] for match in PHRASE.finditer(text) if match["lacking"]}
    return [Operator("words", each, excluded=True, typed=phrases.get(each, f"-{each}")) for each in lacking]


def as_typed(text: str, words: Iterable[str]) -> str:
    """Return a query with these words in quotes, so that they are not corrected."""
    either = "|".join(map(re.escape, words))
    pattern = re.compile(rf"{EITHER.pattern}|(?<![\w-])(?P<word>{either})(?![\w-])", re.IGNORECASE)
    return pattern.sub(lambda match: f'"{match[0]}"' if match["word"] else match[0], text)


def exclusions(text: str) -> list[str]:
    """Return the words that no result may contain: each begins with a dash, and only such words follow it.

    Within a sentence or a command a dash has another meaning, as it does before a name or a stop word.
    """
    behind = takewhile(is_exclusion, reversed(text.split()))
    return [word[1:] for word in behind][::-1]


def is_exclusion(word: str) -> bool:
    """Whether this is a dash followed by a lower-case word of letters that is not a stop word."""
    letters = word[1:]
    if RUN.fullmatch(letters):
        return word.startswith("-")
    return (
        word.startswith("-")
        and len(letters) >= MIN_EXCLUDED
        and letters == letters.lower()
        and letters not in STOP_WORDS
        and all(unicodedata.category(letter)[0] in "LM" and not letter.isnumeric() for letter in letters)
        and letters[0].isalpha()
    )
