"""The help of every command."""

from __future__ import annotations

from typing import Any

import typer

from kb_cli.main import COMMANDS, app
from kb_cli.runtime.convert import build_command
from tests.docs.reference import markdown

WIDTH = 88
INTRO = "The output of `kb --help` and `kb COMMAND --help`."


def page() -> str:
    """Return the help of kb, then that of each command."""
    program: Any = build_command(app)
    commands = (f"## kb {name}\n\n{help_of(program.commands[name], f'kb {name}')}" for name in COMMANDS)
    return markdown.page("# Command line", INTRO, help_of(program, "kb"), *commands)


def help_of(command: Any, name: str) -> str:
    """Return the output of `name --help`."""
    return markdown.block("text", command.get_help(typer.Context(command, info_name=name, terminal_width=WIDTH)))
