"""Lines of code by room: without blank lines, comments and docstrings. `python -m tests.house.lines` prints them.

A room is a package of `src`, or in `kb` a package one level below. Modules directly in `kb` form a room of their own.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Return the number of lines of a module that have code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    used = {line for token in tokens if token.type not in LAYOUT for line in range(token.start[0], token.end[0] + 1)}
    return len(used - _docstrings(ast.parse(text)))


def by_room(src: Path = ROOT / "src") -> dict[str, int]:
    """Return the lines of code of each room."""
    rooms = Counter[str]()
    for path in src.rglob("*.py"):
        package, *inner = path.relative_to(src).parts
        if package == "kb":
            package = f"kb/{inner[0]}" if len(inner) > 1 else "kb/*.py"
        rooms[package] += code_lines(path.read_text())
    return dict(rooms)


def _docstrings(tree: ast.Module) -> set[int]:
    """Return the lines of texts that stand on their own: docstrings, also those of constants."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


if __name__ == "__main__":
    rooms = by_room()
    for room, lines in sorted(rooms.items(), key=lambda item: -item[1]):
        print(f"{lines:7,} {room}")
    print(f"{sum(rooms.values()):7,} all")
