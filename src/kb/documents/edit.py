"""A text is changed in place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kb.api.errors import Invalid
from kb.formats.readers.front_matter import front_matter

NEAREST: Final = 3
"""How many lines are named that look most like what was not found."""

MAX_LINE: Final = 120


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

    Raises:
        Invalid: `old` does not stand there exactly once; the message has the count, or `extra` the nearest lines.
    """
    match occurrences(text, old):
        case 1:
            return text.replace(old, new)
        case 0:
            raise Invalid("old: it does not stand in the note.", extra={"nearest_lines": nearest_lines(text, old)})
        case count:
            raise Invalid(f"old: it stands in the note {count} times; give more of what is around the one you mean.")


def occurrences(text: str, wanted: str) -> int:
    """Return how often a text stands in another one: more than once, too, if it overlaps itself."""
    count = text.count(wanted)
    return 2 if count == 1 and text.find(wanted, text.find(wanted) + 1) >= 0 else count


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
