"""A change of a note: tags, title, and the edit of its text, whose old passage may be written a little differently."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final
from unicodedata import category, normalize

from kb.api.errors import Invalid
from kb.api.stream_safe import CONTROLS, IGNORED, SIGN
from kb.markdown.front_matter import front_matter, with_date
from kb.store.rows import Document, optional_fields

NEAREST: Final = 3
"""How many of the most similar lines an error shows."""

MAX_LINE: Final = 120

MAX_PLACES: Final = 5
"""How many line numbers an error shows for a passage that occurs several times."""

QUOTES: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032\u2039\u203a\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u301d\u301e", '"'),
}
DASHES: Final = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
UNSEEN: Final = re.compile(f"[{IGNORED}{CONTROLS}]")
"""Invisible characters, such as soft hyphens and zero-width spaces."""

BLANKS_AND_DASHES: Final = re.compile(r"[^\S\n]+(?=\n)|(?<=[^\S\n])[^\S\n]+|(?<=-)-+")
"""Parts that folding removes: blanks at line ends, and repeated blanks or dashes after the first."""


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of a text: replace it with `text`, replace `old` with `new`, or add to its start or end."""

    text: str | None = None
    old: str | None = None
    new: str | None = None
    append: str | None = None
    prepend: str | None = None
    date: str | None = None

    @property
    def rests_on_text(self) -> bool:
        """Whether the result depends on the old text."""
        return self.text is None

    def is_in(self, text: str) -> bool:
        """Return whether a text has all words of this change of a part, and not the words that it replaces."""
        if self == Edit() or not self.rests_on_text:
            return False
        new = adopt_line_ends(text, self.new or "")
        rest = text.replace(new, "") if new else text
        is_replaced = self.old is None or (new in text and self.old not in rest)
        added = (adopt_line_ends(text, part) for part in (self.append, self.prepend, self.date) if part)
        return is_replaced and all(part in text for part in added)

    def apply(self, before: str) -> str:
        """Return the changed text; `prepend` goes after the front matter.

        Raises:
            Invalid: `old` does not occur exactly once.
        """
        after = before if self.text is None else self.text
        if self.old is not None:
            after = replace_once(after, self.old, self.new or "")
        if self.append is not None:
            end = "\n" if after.endswith("\n") and not self.append.endswith("\n") else ""
            after = joined(after, adopt_line_ends(after, self.append + end))
        if self.prepend is not None:
            start = front_matter(after).length
            matter, after = after[:start], joined(adopt_line_ends(after, self.prepend), after[start:])
            after = joined(matter, after) if matter else after
        return after if self.date is None else with_date(after, self.date)


NO_EDIT: Final = Edit()

NO_TITLE: Final = ""
"""Takes the title that somebody gave a note away, so that it comes from the text again."""


@dataclass(frozen=True, slots=True)
class NoteChange:
    """The changes to a note; its `content_hash` must be one of `if_match`.

    `optional` are the new values of optional fields; None takes a value away.
    With `inline_tags`, the note also gets the #tags that only its new text has.
    `once` refuses an edit that its author has just made. A change with an `idempotency_key` is made once;
    `request_hash` is the hash of the whole call.
    """

    edit: Edit = NO_EDIT
    title: str | None = None
    tags_add: Sequence[str] = ()
    tags_remove: Sequence[str] = ()
    if_match: Collection[str] | None = None
    inline_tags: bool = False
    once: bool = False
    idempotency_key: str | None = None
    request_hash: str | None = None
    optional: Mapping[str, Any] = field(default_factory=dict)

    def makes(self, note: Document, former: str) -> bool:
        """Return whether the change makes a note from its earlier text."""
        try:
            text = self.edit.apply(former)
        except Invalid:
            return False
        removed = set(self.tags_remove).difference(self.tags_add)
        has_tags = set(self.tags_add) <= set(note.tags) and removed.isdisjoint(note.tags)
        has_fields = self.title in (None, note.title) and self.optional.items() <= optional_fields(note).items()
        return has_tags and has_fields and sha256(text.encode()).hexdigest() == note.content_hash


def replace_once(text: str, old: str, new: str) -> str:
    """Return the text with `old` replaced by `new`.

    If `old` does not occur exactly, it may differ in quotes, dashes, blanks, line ends and code points.

    Raises:
        Invalid: `old` does not occur exactly once; the message names the lines, or `extra` the most similar ones.
    """
    places = [(position, position + len(old)) for position in starts(text, old)] or find_passage(text, old)
    if not places:
        raise Invalid("old: the note does not contain this text.", extra={"nearest_lines": nearest_lines(text, old)})
    if len(places) > 1:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start, _ in places[:MAX_PLACES])
        more = ", …" if len(places) > MAX_PLACES else ""
        raise Invalid(
            f"old: the note contains this text {len(places)} times (lines {lines}{more}). Include more text around the"
            " place you mean."
        )
    [(start, end)] = places
    if text[start] == "\n" and text[start - 1 : start] == "\r":  # a line end of two characters
        start -= 1
    return text[:start] + adopt_line_ends(text, new) + text[end:]


def adopt_line_ends(text: str, new: str) -> str:
    """Return a passage with the line ends of a text, if the text uses only one kind."""
    has_only_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return re.sub("\r?\n", "\r\n", new) if has_only_crlf else new


def starts(text: str, part: str) -> list[int]:
    """Return the positions of a text in another one, overlapping ones included."""
    positions = [text.find(part)]
    while positions[-1] >= 0:
        positions.append(text.find(part, positions[-1] + 1))
    return positions[:-1]


def joined(first: str, second: str) -> str:
    """Return both texts, each on lines of its own."""
    return first + second if first.endswith("\n") or second.startswith("\n") else f"{first}\n{second}"


def nearest_lines(text: str, part: str) -> list[str]:
    """Return the lines that share the most words with a text, most similar first."""
    words = set(_words(part))
    lines = dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())
    alike = {line: len(words.intersection(_words(line))) / (len(words) + len(line) / 100) for line in lines}
    nearest = sorted(alike, key=lambda line: alike[line], reverse=True)[:NEAREST]
    return [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…" for line in nearest]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def find_passage(text: str, passage: str) -> list[tuple[int, int]]:
    """Return the start and end of each passage that reads like the requested one; the end is exclusive.

    The passage may contain the sign that answers show in place of invisible characters.
    """
    folded, places = fold(text)
    return _find(folded, places, passage) or (
        _find(folded, places, passage.replace(SIGN, "")) if SIGN in passage else []
    )


def _find(folded: str, places: list[int], passage: str) -> list[tuple[int, int]]:
    sought = fold(passage)[0]
    bare = sought.rstrip(" ")
    if not bare.strip(f" \n{SIGN}"):
        return []
    # A blank at the end matches a blank or the end of a line, where blanks are invisible.
    ends_in_blank = "(?: |(?=\n)|\\Z)" if bare != sought else ""
    letters = "".join(f"[{SIGN}\n]?" if letter == SIGN else re.escape(letter) for letter in bare)
    pattern = re.compile(letters + ends_in_blank)
    spans: list[tuple[int, int]] = []
    match = pattern.search(folded)
    while match:
        at, end = match.span()
        if end > at and is_whole(places, at) and is_whole(places, end):
            spans.append((places[at], places[end - 1] + 1))
        match = pattern.search(folded, at + 1)
    return spans


def fold(text: str) -> tuple[str, list[int]]:
    """Return a text in plain characters, and the position of each of them in the original."""
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if (character == "\r" and text[place + 1 : place + 2] == "\n") or UNSEEN.match(character):
            continue
        for part in normalize("NFD", plain(character)):
            characters.append(part)
            places.append(place)
    folded = "".join(characters)
    mask = bytearray(b"\1") * len(folded)
    for run in BLANKS_AND_DASHES.finditer(folded):
        mask[run.start() : run.end()] = bytes(len(run[0]))
    left = [index for index, is_kept in enumerate(mask) if is_kept]
    return "".join(folded[index] for index in left), [places[index] for index in left]


def plain(character: str) -> str:
    """Return a character as on a keyboard."""
    if character in "\r\u2028\u2029\x85":
        return "\n"
    if category(character) == "Zs" or character == "\t":
        return " "
    return QUOTES.get(character) or DASHES.get(character, character)


def is_whole(places: list[int], at: int) -> bool:
    """Return whether a whole character begins at this position, not a part of one."""
    return at in (0, len(places)) or places[at] != places[at - 1]
