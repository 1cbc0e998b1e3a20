"""The blocks of shell and Python in README and docs, to be run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
MADE = ROOT / "docs" / "reference"
WRITTEN = [page for page in PAGES if page.parent != MADE]
BLOCK = re.compile(r"(?ms)^```(?P<language>\w*)(?P<reason>[^\n]*)\n(?P<text>.*?)^```$")
RUN = ("sh", "python")


@dataclass(frozen=True)
class Block:
    """A block of code, and why it does not run here, if it does not."""

    page: Path
    line: int
    language: str
    reason: str
    text: str

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page):
    text = page.read_text()
    for found in BLOCK.finditer(text):
        if found["reason"].startswith("{"):  # a directive, no code
            continue
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["language"], found["reason"].strip(), found["text"])


def to_run(page):
    return [block for block in blocks(page) if block.language in RUN and not block.reason]


def prose(page):
    """The text of a page without its blocks."""
    return BLOCK.sub("", page.read_text())
