"""What to say when nothing was found: most often a word is misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kb_cli.runtime.options import Filters


HOW_TO_ADD: Final = "'kb add FOLDER' brings files in, and 'kb addnote' a note"
EMPTY: Final = f"no document is here yet; {HOW_TO_ADD}"


def explain_nothing(filters: Filters) -> str:
    """Return why no document passes the filters, as far as that can be known; nothing if it cannot."""
    from kb_cli.runtime.call import call
    from kb_cli.runtime.completion import fetch_tags
    from kb_cli.runtime.options import split_tags

    wanted = split_tags([*(filters.tags or []), *(filters.any_tag or [])])
    tags = fetch_tags() if wanted else []
    for tag in wanted:
        if tag not in tags:
            return f"no document has the tag {tag!r}{nearest(tag, tags)}"
    if filters.lang:
        there = call(lambda client: client.status())["languages"]
        if filters.lang.lower() not in there:
            return (
                f"no document is in the language {filters.lang!r}; there are {counted(there) or 'none that are known'}"
            )
    if any(vars(filters).values()):
        return "no document passes these filters"
    return "" if call(lambda client: client.count_documents()) else EMPTY


def counted(numbers: Mapping[str, int]) -> str:
    """Return names, each with its number."""
    return ", ".join(f"{name} ({number})" for name, number in numbers.items())


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the word that may be meant, as the end of a sentence; nothing if none is near."""
    from difflib import get_close_matches

    there = list(words)
    folded = [each for each in there if each.casefold() == word.casefold()]
    matches = folded or get_close_matches(word, there, n=1)
    return f"; there is {matches[0]!r}" if matches else ""
