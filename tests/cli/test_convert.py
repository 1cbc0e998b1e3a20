"""Where kb_cli.runtime.convert takes the place of something in Typer that is not public.

If the first test fails, the module works no more; if one of the others does, it is no longer needed.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

import typer
from typer.core import TyperArgument, TyperOption
from typer.main import get_command

from kb_cli.main import COMMANDS, LazyCommands
from kb_cli.runtime.convert import Coercion


def test_the_words_of_every_command_are_converted_here():
    for command in LazyCommands(COMMANDS).values():
        parameters = command.get_params(typer.Context(command))
        for parameter in parameters:
            if isinstance(parameter, (TyperArgument, TyperOption)) and parameter.name != "help":
                assert isinstance(parameter.get_runtime_param(), Coercion), (command.name, parameter.name)


def test_typer_by_itself_still_converts_with_pydantic():
    program = """
import sys, typer
app = typer.Typer(add_completion=False)
@app.command()
def main(word: str): print("pydantic" in sys.modules)
app(["x"])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n", "Typer converts without pydantic: Coercion can go"


def test_typer_by_itself_still_shows_pythons_types_of_arguments():
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command()
    def main(words: Annotated[list[str], typer.Argument(metavar="WORDS")]):
        pass

    command = get_command(app)
    shown = command.get_help(typer.Context(command))
    assert "list[str]" in shown, "Typer leaves Python's types out: hide_type can go"
