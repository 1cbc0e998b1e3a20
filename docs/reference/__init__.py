"""The pages that are made from the program when the docs are built: `http.py` here makes `http.md`, and so on."""

from __future__ import annotations

from pathlib import Path

from reference import clients, commands, errors, http, metrics, settings, tools

DOCS = Path(__file__).parents[1]
MADE = (settings, clients, commands, errors, http, metrics, tools)


def write_pages(docs: Path = DOCS) -> None:
    """Write each page beside the module that makes it; one that did not change keeps its time."""
    for module in MADE:
        page = docs / f"{module.__name__.replace('.', '/')}.md"
        text = module.page()
        if not page.exists() or page.read_text() != text:
            page.write_text(text)
