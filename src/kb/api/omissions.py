"""What a reader found in a file but did not read, by kind: counted here, and said in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple


class OmittedKind(NamedTuple):
    """The words for one thing of a kind, and for several."""

    one: str
    several: str


KINDS: Final = {
    "charts": OmittedKind("chart", "charts"),
    "columns": OmittedKind("column", "columns"),
    "comments": OmittedKind("comment", "comments"),
    "encrypted": OmittedKind("encrypted passage", "encrypted passages"),
    "files": OmittedKind("file inside", "files inside"),
    "formulas": OmittedKind("cell without a computed value", "cells without a computed value"),
    "front_matter": OmittedKind("front matter that is not valid YAML", "front matters that are not valid YAML"),
    "objects": OmittedKind("embedded object", "embedded objects"),
    "pages": OmittedKind("page that is a picture", "pages that are pictures"),
    "parts": OmittedKind("part that is damaged or missing", "parts that are damaged or missing"),
    "sheets": OmittedKind("sheet", "sheets"),
    "slides": OmittedKind("slide", "slides"),
}
"""The kinds by the names that the API has for them. A reader reports no others."""


def phrase(omitted: Mapping[str, int]) -> str:
    """Return what was not read as people list it: 2 files inside, 14 cells without a computed value."""
    return ", ".join(_counted(kind, count) for kind, count in omitted.items())


def together(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return what was not read in several places, kinds in the order in which they came."""
    total = Counter[str]()
    for kind in counts:
        total.update(kind)
    return {kind: count for kind, count in total.items() if count > 0}


def _counted(kind: str, count: int) -> str:
    words = KINDS.get(kind, OmittedKind(kind, kind))  # an export of a newer kb may have more
    return f"{count:,} {words.one if count == 1 else words.several}"
