"""Every command, as its --help says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from reference import markdown

from kb_cli.main import COMMANDS, app
from kb_cli.plain import plain_command

if TYPE_CHECKING:
    from typer.core import TyperGroup

WIDTH = 88
INTRO = "What `kb --help` and `kb COMMAND --help` print."


def page() -> str:
    """The program, then its commands."""
    program = plain_command(app)
    commands = (f"## kb {name}\n\n{help_of(program, name)}" for name in COMMANDS)
    return markdown.page("# Command line", INTRO, help_of(program), *commands)


def help_of(program: TyperGroup, name: str | None = None) -> str:
    """The help of the program, or of one of its commands."""
    command = program.get_command(typer.Context(program), name) if name else program
    assert command is not None
    context = typer.Context(command, info_name=f"kb {name or ''}".strip(), terminal_width=WIDTH)
    return markdown.block("text", command.get_help(context))
