"""What the engine says of a request, in the words of the command that was typed."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from kb_cli.runtime.output import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

TAGS: Final = ("--tags", "--tags-add", "--tags-remove", "--add", "--remove", "--any", "--not", "--thread")
OPTIONS: Final = {
    "as_of": ("--as-of",),
    "doc_type": ("--type",),
    "limit": ("-n",),
    "replaces": ("--replaces",),
    "since": ("--since",),
    "source": ("--source",),
    "source_path": ("--source-path", "--path"),
    "source_prefix": ("--under",),
    "tag": TAGS,
    "tag_any": ("--any",),
    "tag_not": ("--not",),
    "tags": TAGS,
    "thread": ("--thread",),
    "title": ("--title",),
    "top": ("-n", "--top"),
    "why": ("--why",),
}
"""The options that may have given a field of a request."""

FIELD: Final = re.compile(r"(\w+)(?:\.\d+)?: ")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
IN_BIN: Final = re.compile(r"Document (\d+) (.*in the bin since .*); it can be restored\.")


def in_own_words(detail: str, typed: Sequence[str] = sys.argv) -> str:
    """Return what the engine says: options as they were typed, times of the clock here, and the command that helps."""
    field = FIELD.match(detail)
    option = next((each for each in OPTIONS.get(field[1], ()) if is_typed(each, typed)), None) if field else None
    if field and option:
        detail = f"{option}: {detail[field.end() :]}"
    detail = TIME.sub(lambda time: format_time(time[0]) or "", detail)
    return IN_BIN.sub(r"Document \1 \2; 'kb restore \1' brings it back.", detail)


def is_typed(option: str, typed: Sequence[str]) -> bool:
    """Return whether an option is among the words of a command, with its value in the same word or in the next."""
    is_long = option.startswith("--")
    return any(word.partition("=")[0] == option if is_long else word.startswith(option) for word in typed)
