"""A text is changed in place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kb.api.errors import Invalid
from kb.documents.passage import find_passage
from kb.formats.readers.front_matter import front_matter

NEAREST: Final = 3
"""How many lines are named that look most like what was not found."""

MAX_LINE: Final = 120

MAX_PLACES: Final = 5
"""So many lines are named of a passage that stands there several times."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What to do with a text: put `text` in its place, or `new` in the place of `old`, or add to its ends."""

    text: str | None = None
    old: str | None = None
    new: str | None = None
    append: str | None = None
    prepend: str | None = None

    @property
    def rests_on_text(self) -> bool:
        """Whether the result depends on the text before."""
        return self.text is None

    def apply(self, before: str) -> str:
        """Return the changed text; what is put before it comes after its front matter.

        Raises:
            Invalid: `old` does not stand in it exactly once.
        """
        after = before if self.text is None else self.text
        if self.old is not None:
            after = replace_once(after, self.old, self.new or "")
        if self.append is not None:
            after = joined(after, self.append)
        if self.prepend is not None:
            start = front_matter(after).length
            matter, after = after[:start], joined(self.prepend, after[start:])
            after = joined(matter, after) if matter else after
        return after


def replace_once(text: str, old: str, new: str) -> str:
    """Return the text with `new` in the place of `old`.

    Where `old` does not stand there as it is, it may differ in quotes, dashes, blanks, line ends and code points.

    Raises:
        Invalid: `old` does not stand there exactly once; the message has the lines, or `extra` the nearest ones.
    """
    places = [(found, found + len(old)) for found in starts(text, old)] or find_passage(text, old)
    if not places:
        raise Invalid("old: it does not stand in the note.", extra={"nearest_lines": nearest_lines(text, old)})
    if len(places) > 1:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start, _ in places[:MAX_PLACES])
        more = ", …" if len(places) > MAX_PLACES else ""
        raise Invalid(
            f"old: it stands in the note {len(places)} times (lines {lines}{more}); give more of what is around the one"
            " you mean."
        )
    [(start, end)] = places
    if text[start] == "\n" and text[start - 1 : start] == "\r":  # one line end
        start -= 1
    return text[:start] + with_line_ends_of(text, new) + text[end:]


def with_line_ends_of(text: str, new: str) -> str:
    """Return a passage with the line ends that a text has, if that has but one kind."""
    has_only_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return re.sub("\r?\n", "\r\n", new) if has_only_crlf else new


def starts(text: str, wanted: str) -> list[int]:
    """Return where a text stands in another one, also where it overlaps itself."""
    found = [text.find(wanted)]
    while found[-1] >= 0:
        found.append(text.find(wanted, found[-1] + 1))
    return found[:-1]


def joined(first: str, second: str) -> str:
    """Return both, on lines of their own."""
    return first + second if first.endswith("\n") or second.startswith("\n") else f"{first}\n{second}"


def nearest_lines(text: str, wanted: str) -> list[str]:
    """Return the lines that share most words with a text, the most alike first."""
    words = set(_words(wanted))
    lines = dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())
    alike = {line: len(words.intersection(_words(line))) / (len(words) + len(line) / 100) for line in lines}
    nearest = sorted(alike, key=lambda line: alike[line], reverse=True)[:NEAREST]
    return [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…" for line in nearest]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
