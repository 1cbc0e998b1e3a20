"""Pieces of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing if it has no row."""
    lines = [row(each) for each in rows]
    return "\n".join([row(head), row(["---"] * len(head)), *lines]) if lines else ""


def row(cells: Iterable[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def block(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.strip()}\n```"


def code(text: object) -> str:
    """A word of code; nothing for nothing."""
    return f"`{text}`" if text not in (None, "") else ""


def page(*parts: str) -> str:
    """The parts that are not empty, with a line between them."""
    return "\n\n".join(filter(None, parts)) + "\n"
