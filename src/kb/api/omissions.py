"""The content of a file that its reader did not read: counted by kind, and in words."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple


class OmittedKind(NamedTuple):
    """The singular and the plural of a kind."""

    one: str
    several: str


KINDS: Final = {
    "charts": OmittedKind("chart", "charts"),
    "columns": OmittedKind("column", "columns"),
    "comments": OmittedKind("comment", "comments"),
    "encrypted": OmittedKind("encrypted passage", "encrypted passages"),
    "files": OmittedKind("file inside", "files inside"),
    "formulas": OmittedKind("cell without a computed value", "cells without a computed value"),
    "front_matter": OmittedKind("front matter that is not valid YAML", "blocks of invalid front matter"),
    "objects": OmittedKind("embedded object", "embedded objects"),
    "pages": OmittedKind("page that is a picture", "pages that are pictures"),
    "parts": OmittedKind("part that is damaged or missing", "parts that are damaged or missing"),
    "pictures": OmittedKind("picture", "pictures"),
    "sheets": OmittedKind("sheet", "sheets"),
    "slides": OmittedKind("slide", "slides"),
}
"""The kinds by their names in the API. A reader reports no others."""


def phrase(omitted: Mapping[str, int]) -> str:
    """Return the omitted content in words, such as: 2 files inside, 14 cells without a computed value."""
    return ", ".join(_counted(kind, count) for kind, count in omitted.items())


def together(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of several counts, with the kinds in order of appearance."""
    total = Counter[str]()
    for kind in counts:
        total.update(kind)
    return {kind: count for kind, count in total.items() if count > 0}


def _counted(kind: str, count: int) -> str:
    words = KINDS.get(kind, OmittedKind(kind, kind))  # an export of a newer kb may have other kinds
    return f"{count:,} {words.one if count == 1 else words.several}"
