"""The file types with a reader, from all packages with an entry point in the group `kb.readers`.

An entry point leads to a list of `kb.api.file_types.Format`. If another package's list is broken, kb works without
it.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from kb.api import file_types
from kb.api.fields import NOTE
from kb.api.file_types import MARKUPS, Format

logger = logging.getLogger(__name__)

GROUP: Final = "kb.readers"
OWN: Final = "kb.api.file_types:FORMATS"
_DOC_TYPE: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_SUFFIX: Final = re.compile(r"\.[a-z0-9_+-]{1,20}")


def load(entries: Iterable[EntryPoint]) -> dict[str, Format]:
    """Return the file types of these entry points by the types of their documents, kb's own first."""
    formats: dict[str, Format] = {}
    for entry in sorted(entries, key=lambda entry: (entry.value != OWN, entry.name)):
        try:
            formats = _with(formats, entry)
        except (Exception, SystemExit) as error:
            if entry.value == OWN:
                raise
            reason = f"{type(error).__name__}: {error}"
            logger.warning("kb is running without the file types from %s (%s): %s", entry.name, entry.value, reason)
    if not formats:
        raise ImportError("kb is not installed completely: its own file types are missing. Install it again.")
    return formats


def _with(formats: dict[str, Format], entry: EntryPoint) -> dict[str, Format]:
    formats = dict(formats)
    with redirect_stdout(sys.stderr):  # the standard output of the parser is for its replies
        added = entry.load()
    for format_ in added:
        _check(format_, formats)
        formats[format_.doc_type] = format_
    return formats


def _check(format_: object, known: dict[str, Format]) -> None:
    """Refuse a format that does not follow the rules, or that another package reads already."""
    if not isinstance(format_, Format):
        raise TypeError(f"it lists {format_!r} instead of a kb.api.file_types.Format")
    if not isinstance(format_.reader, str) or not _DOC_TYPE.fullmatch(format_.doc_type):
        raise ValueError(f"the name of a type, {format_.doc_type!r}, or of its reader, {format_.reader!r}, is invalid")
    if format_.doc_type in known or format_.doc_type == NOTE:
        raise ValueError(f"there is already a type {format_.doc_type!r}")
    taken = {suffix: other.title for other in known.values() for suffix in other.suffixes}
    taken |= dict.fromkeys(MARKUPS, "a text")
    for suffix in format_.suffixes:
        if not _SUFFIX.fullmatch(suffix):
            raise ValueError(f"{suffix!r} is not a suffix such as '.pgn'")
        if suffix in taken:
            raise ValueError(f"files that end in {suffix} are already read as {taken[suffix]}")


FORMATS: Final = load(entry_points(group=GROUP))
DOC_TYPES: Final = frozenset({NOTE, *FORMATS})
ADDED: Final = {
    suffix: format_.doc_type
    for format_ in FORMATS.values()
    if format_ not in file_types.FORMATS
    for suffix in format_.suffixes
}
"""The types that other packages add, by file name suffix."""
