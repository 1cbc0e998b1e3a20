"""The pages in docs/reference, made from the program: `http.py` here makes `http.md`, and so on."""

from __future__ import annotations

from pathlib import Path

from tests.docs.reference import clients, commands, errors, faults, http, metrics, settings, tools

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
MADE = (settings, clients, commands, errors, faults, http, metrics, tools)


def write_pages(folder: Path = FOLDER) -> None:
    """Write all pages into a folder."""
    folder.mkdir(exist_ok=True)
    for module in MADE:
        (folder / f"{module.__name__.rpartition('.')[2]}.md").write_text(module.page(), "utf-8")
