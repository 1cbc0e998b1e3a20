"""Tags as a tree: a slash separates levels, so `projects/kiln` is below `projects`."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from kb.api.limits import MAX_TAG_CHARS, MAX_TAGS

SEPARATOR = "/"
_BETWEEN: Final = re.compile(r"[,\n]")
_NEXT_SIGN: Final = re.compile(r"\s+(?=#)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def stem(tag: str) -> str:
    """Return a tag without final slashes: `home/` means `home`."""
    return tag.rstrip(SEPARATOR) or tag


def is_in_branch(tag: str, branch: str) -> bool:
    """Return whether a tag is `branch` or below it. Case counts."""
    return tag in (branch, stem(branch)) or tag.startswith(stem(branch) + SEPARATOR)


def is_in_any(tags: Iterable[str], branches: Collection[str]) -> bool:
    return any(is_in_branch(tag, branch) for tag in tags for branch in branches)


def tags_above(tag: str) -> Iterator[str]:
    """Yield the tags that a tag is below, the highest first."""
    above = dict.fromkeys(
        tag[:index].rstrip(SEPARATOR) for index, character in enumerate(tag) if character == SEPARATOR
    )
    return (other for other in above if other and other != tag)


def renamed(tag: str, old: str, new: str) -> str:
    """Return the new name of a tag in the branch `old`, which is renamed to `new`."""
    below = tag.removeprefix(stem(old)).removeprefix(SEPARATOR)
    return f"{new}{SEPARATOR}{below}" if below else new


def split_tags(text: str) -> list[str]:
    """Return the tags of a field, separated by commas or line ends, or written as #words: `#roof #attic`."""
    parts = (part.strip() for part in _BETWEEN.split(text))
    words = (_NEXT_SIGN.split(part) if part.startswith("#") else [part] for part in parts)
    return [word for each in words for word in each if word]


def clean_tag(word: str) -> str:
    """Return a word as a tag: without the # in front of it and slashes around it; empty if nothing is left."""
    return " ".join(word.split()).lstrip("#").strip().strip(SEPARATOR).strip()


def meant_tag(tag: str, known: Collection[str]) -> str:
    """Return a tag as it is if it or one below it is known; otherwise as `clean_tag` writes it.

    Tags of earlier versions can begin with # or end with a slash.
    """
    is_known = any(other == tag or other.startswith(tag + SEPARATOR) for other in known)
    return tag if is_known else clean_tag(tag) or tag


def clean_tags(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words as tags, each once, and only valid ones."""
    known = (tag for tag in map(clean_tag, words) if tag and len(tag) <= MAX_TAG_CHARS and not _CONTROL.search(tag))
    return tuple(dict.fromkeys(known))[:MAX_TAGS]
