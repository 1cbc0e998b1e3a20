"""Each room of `src` stays within its number of lines of code."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.house.lines import by_room, code_lines

BUDGET = tomllib.loads((Path(__file__).parent / "budget.toml").read_text())["lines"]


def test_no_room_has_more_lines_of_code_than_its_budget():
    rooms = by_room()
    assert rooms.keys() == BUDGET.keys(), "tests/house/budget.toml does not list the rooms of src"
    over = [f"{room}: {lines:,} of {BUDGET[room]:,}" for room, lines in rooms.items() if lines > BUDGET[room]]
    assert not over, f"too many lines of code: {'; '.join(over)}. Delete some, or say in budget.toml why it needs more."


def test_blank_lines_comments_and_docstrings_are_free():
    assert (
        code_lines(
            '"""Of a module."""\n\n# why\nLIMIT = 3\n"""A limit."""\n\ndef f():\n    """Of f."""\n    return """\n\n"""\n'
        )
        == 5
    )
