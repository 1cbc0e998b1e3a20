"""Which tests prove each requirement. `python -m tests.docs.requirements` writes it into docs/requirements.md."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "requirements.md"
ROW = re.compile(r"(?m)^\| (?P<number>[A-Z]-\d+) \| (?P<text>.*) \| (?P<tests>.*) \|$")
MARK = re.compile(r'requirement\("([A-Z]-\d+)"\)')


def proofs():
    """The test modules that are marked with each requirement, as the page writes them."""
    modules = defaultdict(set)
    for module in TESTS.rglob("test_*.py"):
        for number in MARK.findall(module.read_text()):
            modules[number].add(f"`{module.relative_to(TESTS).with_suffix('').as_posix()}`")
    return {number: ", ".join(sorted(names)) for number, names in modules.items()}


def rows():
    """What the page says: the tests of each requirement."""
    return {row["number"]: row["tests"] for row in ROW.finditer(PAGE.read_text())}


if __name__ == "__main__":
    found = proofs()
    page = ROW.sub(lambda row: f"| {row['number']} | {row['text']} | {found[row['number']]} |", PAGE.read_text())
    PAGE.write_text(page)
