"""The program `kb`: its commands, and how each of them ends."""

from __future__ import annotations

import io
import os
import re
import sys
from collections import UserDict
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO, cast

import typer
from typer.core import TyperCommand, TyperGroup

from kb import __version__
from kb.api.errors import KbError
from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime.config import PROFILE
from kb_cli.runtime.convert import plain_command
from kb_cli.runtime.options import Profile  # noqa: TC001 - typer reads it when it runs
from kb_cli.runtime.output import complain, say

if TYPE_CHECKING:
    from typer._click import Context

OPTION: Final = re.compile(r"--[a-z][a-z-]*(=\S*)?")
COMMANDS: Final = {
    "add": "kb_cli.commands.add:add",
    "sync": "kb_cli.sync.folder:sync",
    "addnote": "kb_cli.commands.notes:addnote",
    "updatenote": "kb_cli.commands.notes:updatenote",
    "search": "kb_cli.commands.search:search",
    "get": "kb_cli.commands.documents:get",
    "list": "kb_cli.commands.documents:list_",
    "delete": "kb_cli.commands.documents:delete",
    "tag": "kb_cli.commands.documents:tag",
    "tags": "kb_cli.commands.documents:tags",
    "jobs": "kb_cli.commands.jobs:jobs",
    "status": "kb_cli.commands.status:status",
    "config": "kb_cli.commands.config:config",
    "mcp": "kb_cli.commands.mcp:mcp",
    "serve": "kb_cli.commands.serve:serve",
    "device": "kb_cli.commands.device:device",
    "model": "kb_cli.commands.model:model",
    "healthcheck": "kb_cli.commands.healthcheck:healthcheck",
}
HELP: Final = (
    "A fully local knowledge base for people and their AI agents.\n\n"
    "The engine is looked for at KB_ENGINE_URL (http://127.0.0.1:8000 if unset) and gets the key KB_API_KEY. "
    "Both can also stand in ~/.config/kb/config.toml, as engine_url and api_key, and in profiles there such as "
    "[profiles.work], of which --profile or KB_PROFILE chooses one. 'kb config' shows what counts."
)
EPILOG: Final = "\b\nExit codes:\n" + "\n".join(f"{code:>3}  {meaning}" for code, meaning in exits.MEANINGS.items())


class Commands(UserDict[str, Any]):
    """The commands by name; a command's module is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - the command's type is not public
        """The command, built from its function."""
        module, _, function = self.data[name].partition(":")
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        kind = TakesText if name in ("addnote", "updatenote") else None
        single.command(name, cls=kind)(getattr(import_module(module), function))
        return plain_command(single)


class TakesText(TyperCommand):
    """A command whose text may begin with a dash, as lists do."""

    ignore_unknown_options = True

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Understand the words. One that only looks like a misspelt option does not become, or replace, a note."""
        known = {"--help"}.union(*(parameter.opts for parameter in self.params))
        for word in () if ctx.resilient_parsing else takewhile(lambda word: word != "--", args):
            if OPTION.fullmatch(word) and word.partition("=")[0] not in known:
                raise exits.UsageError(
                    f"No such option: {word}; as a text it goes behind --, as in 'kb {self.name} --'"
                )
        return super().parse_args(ctx, args)


class Kb(TyperGroup):
    """The group of all commands."""

    def __init__(self, **attrs: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attrs)
        self.commands = Commands(COMMANDS)


app = typer.Typer(cls=Kb, help=HELP, epilog=EPILOG, rich_markup_mode=None)


def print_version(wanted: bool) -> None:
    """Print this program's version and stop."""
    if wanted:
        say(f"kb {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
    profile: Profile = None,
) -> None:
    """What every command has in common."""
    if profile:
        PROFILE.set(profile)


def main() -> None:
    """Run the command line."""
    open_streams()
    try:
        code = run_command(sys.argv[1:] or ["--help"])
        sys.stdout.flush()
    except BrokenPipeError:
        code = exits.PIPE_CLOSED
    except OSError as error:
        complain(error.strerror or str(error))
        code = exits.LOCAL
    if code in (exits.PIPE_CLOSED, exits.LOCAL):
        forget_output()
    sys.exit(code)


def open_streams() -> None:
    """Replace standard streams that are closed, and let no character of another encoding stop the output."""
    sys.stdin = sys.stdin or silence("r")
    sys.stdout = sys.stdout or silence("w")
    sys.stderr = sys.stderr or silence("w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def silence(mode: str) -> TextIO:
    """A stream that says nothing and keeps nothing."""
    return cast("TextIO", Path(os.devnull).open(mode))


def run_command(words: list[str]) -> int:
    """Run what the words say; answers the exit code. An error is one line on standard error."""
    try:
        code: int = plain_command(app)(words, prog_name="kb", standalone_mode=False) or exits.OK
    except KbError as error:
        complain(error.detail)
        return exits.code_of(error)
    except typer.TyperException as error:
        if isinstance(error, exits.Interrupted):
            end_line()
        complain(error.format_message().rstrip(".") + hint(error))
        return error.exit_code
    except UnicodeEncodeError:
        complain("The command line holds bytes that are not UTF-8.")
        return exits.USAGE
    except (typer.Abort, KeyboardInterrupt):
        code = exits.INTERRUPTED
    if code == exits.INTERRUPTED:
        end_line()
    return code


def end_line() -> None:
    """End the line in which the terminal shows ^C, or a question that nobody answered."""
    if sys.stderr.isatty():
        print(file=sys.stderr)


def hint(error: typer.TyperException) -> str:
    """Where to read on, if the words were wrong."""
    context = getattr(error, "ctx", None)
    return f"; see '{context.command_path} --help'" if context else ""


def forget_output() -> None:
    """Keep Python from writing once more to where nothing can be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
