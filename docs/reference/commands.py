"""Every command, as its --help says it."""

from __future__ import annotations

from typing import Any

import typer

from kb_cli.main import COMMANDS, app
from kb_cli.runtime.convert import build_command
from reference import markdown

WIDTH = 88
INTRO = "What `kb --help` and `kb COMMAND --help` print."


def page() -> str:
    """The program, then its commands."""
    program: Any = build_command(app)
    commands = (f"## kb {name}\n\n{help_of(program.commands[name], f'kb {name}')}" for name in COMMANDS)
    return markdown.page("# Command line", INTRO, help_of(program, "kb"), *commands)


def help_of(command: Any, name: str) -> str:  # noqa: ANN401 - the command's type is not public
    """What `name --help` prints."""
    return markdown.block("text", command.get_help(typer.Context(command, info_name=name, terminal_width=WIDTH)))
