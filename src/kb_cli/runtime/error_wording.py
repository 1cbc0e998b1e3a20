"""Rephrase the engine's errors in terms of the typed command."""

import re
import sys
from collections.abc import Sequence
from typing import Final

from kb_cli.runtime.output import format_time

OPTIONS: Final = {
    "doc_type": ("--type",),
    "limit": ("-n",),
    "new": ("--new", "--rename"),
    "old": ("--old", "--rename"),
    "source_path": ("--source-path", "--path"),
    "source_prefix": ("--under", "--as"),
    "tag": ("--tags",),
    "tag_any": ("--any",),
    "tag_not": ("--not",),
    "top": ("-n", "--top"),
}
"""Options of other names that may have set a field of a request."""

FIELD: Final = re.compile(r"(\w+)(?:\.\d+)?: ")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
IN_BIN: Final = re.compile(r"Document (\d{1,20}) (has been in the bin since [^;\n]{1,40}); it can be restored\.")


def rephrase(detail: str, typed: Sequence[str] = sys.argv) -> str:
    """Return an error with options as typed, local times, and the command that helps."""
    field = FIELD.match(detail)
    option = find_option(field[1], typed) if field else None
    if field and option:
        detail = f"{option}: {detail[field.end() :]}"
    detail = TIME.sub(lambda time: format_time(time[0]) or "", detail)
    return IN_BIN.sub(r"Document \1 \2. To restore it: kb restore \1", detail)


def find_option(field: str, typed: Sequence[str]) -> str | None:
    """Return the option that set a field of a request; None if missing or ambiguous."""
    names = OPTIONS.get(field, (f"--{field.replace('_', '-')}",))
    options = [option for option in names if is_typed(option, typed)]
    return options[0] if len(options) == 1 and options[0].startswith("-") else None


def is_typed(option: str, typed: Sequence[str]) -> bool:
    """Return whether an option is among the words of a command, with its value in the same word or in the next."""
    is_long = option.startswith("--")
    return any(word.partition("=")[0] == option if is_long else word.startswith(option) for word in typed)
