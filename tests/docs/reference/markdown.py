"""Pieces of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without its empty columns; nothing if it has no row."""
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    lines = [row(each) for each in zip(*columns, strict=True)]
    return "\n".join([lines[0], row(["---"] * len(columns)), *lines[1:]]) if lines else ""


def row(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def block(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.strip()}\n```"


def code(text: object) -> str:
    """Return a text as inline code; nothing for an empty text."""
    return f"`{text}`" if text not in (None, "") else ""


def page(*parts: str) -> str:
    """Return the parts that are not empty, with an empty line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"
