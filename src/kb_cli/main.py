"""The program `kb`: its commands and their exit codes."""

import gc
import io
import os
import re
import sys
from collections import UserDict
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Final, TextIO, cast

import typer
from typer.core import TyperCommand, TyperGroup

from kb import __version__
from kb.api.errors import KbError
from kb_cli.runtime import exit_codes
from kb_cli.runtime.config import selected_profile
from kb_cli.runtime.convert import build_command
from kb_cli.runtime.error_wording import rephrase
from kb_cli.runtime.options import Profile, nearest, option
from kb_cli.runtime.output import print_error, print_line

LONG_OPTION: Final = re.compile(r"--[a-z][a-z-]*(=\S*)?")
COMMAND_GROUPS: Final = {
    "Everyday": {
        "add": "kb_cli.commands.add:add",
        "sync": "kb_cli.commands.sync:sync",
        "watch": "kb_cli.commands.watch:watch",
        "addnote": "kb_cli.commands.addnote:addnote",
        "updatenote": "kb_cli.commands.updatenote:updatenote",
        "notes": "kb_cli.commands.notes:notes",
        "search": "kb_cli.commands.search:search",
        "similar": "kb_cli.commands.search:similar",
        "duplicates": "kb_cli.commands.duplicates:duplicates",
        "links": "kb_cli.commands.links:links",
        "get": "kb_cli.commands.get:get",
        "open": "kb_cli.commands.get:open_",
        "list": "kb_cli.commands.list:list_",
        "tags": "kb_cli.commands.tags:tags",
        "tag": "kb_cli.commands.tags:tag",
        "delete": "kb_cli.commands.delete:delete",
        "jobs": "kb_cli.commands.jobs:jobs",
    },
    "History": {
        "history": "kb_cli.commands.history:history",
        "revert": "kb_cli.commands.history:revert",
        "restore": "kb_cli.commands.bin:restore",
        "bin": "kb_cli.commands.bin:bin_",
        "undo": "kb_cli.commands.undo:undo",
        "audit": "kb_cli.commands.keys:audit",
    },
    "Server": {
        "serve": "kb_cli.commands.serve:serve",
        "service": "kb_cli.commands.service:service",
        "worker": "kb_cli.commands.serve:worker",
        "status": "kb_cli.commands.status:status",
        "stats": "kb_cli.commands.status:stats",
        "config": "kb_cli.commands.config:config",
        "device": "kb_cli.commands.model:device",
    },
    "Agents": {
        "mcp": "kb_cli.commands.mcp:mcp",
        "keys": "kb_cli.commands.keys:keys",
    },
    "Data and repair": {
        "backup": "kb_cli.commands.backup:backup",
        "export": "kb_cli.commands.export:export",
        "import": "kb_cli.commands.export:import_",
        "doctor": "kb_cli.commands.doctor:doctor",
        "reindex": "kb_cli.commands.doctor:reindex",
        "upgrade": "kb_cli.commands.upgrade:upgrade",
        "reembed": "kb_cli.commands.reembed:reembed",
        "model": "kb_cli.commands.model:model",
        "eval": "kb_cli.commands.eval:eval_",
    },
    "For programs": {
        "stdio": "kb_cli.commands.stdio:stdio",
        "hook": "kb_cli.commands.hook:hook",
        "healthcheck": "kb_cli.commands.serve:healthcheck",
    },
}
"""The commands under the headings of the help, each with its function."""

COMMANDS: Final = {name: target for group in COMMAND_GROUPS.values() for name, target in group.items()}

REMOVED: Final = {"migrate-store": "To move a database, use 'kb export' and 'kb import'."}
"""Commands of earlier builds, with a hint at their replacement."""

ALIASES: Final = {
    "rm": "delete",
    "show": "get",
    "cat": "get",
    "edit": "updatenote",
    "note": "addnote",
    "new": "addnote",
    "find": "search",
    "ls": "list",
}
"""Other names of commands, which people type out of habit."""

HELP: Final = (
    "A fully local knowledge base for people and their AI agents.\n\n"
    "kb connects to the engine at KB_ENGINE_URL or, if that is not set, to the engine on this machine "
    "(by default http://127.0.0.1:8000). It sends the key in KB_API_KEY. You can also set both in "
    "~/.config/kb/config.toml, as engine_url and api_key, or for each profile there, such as [profiles.work]; "
    "--profile or KB_PROFILE chooses a profile. 'kb config' shows the settings in effect."
)
EPILOG: Final = (
    "\b\nOther names:\n"
    + "\n".join(f"  {name:<4}  {command}" for name, command in ALIASES.items())
    + "\n\n\b\nExit codes:\n"
    + "\n".join(f"{code:>3}  {meaning}" for code, meaning in exit_codes.MEANINGS.items())
)


class LazyCommands(UserDict[str, Any]):
    """The commands by name. Access to a command imports its module."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a command's type is not public
        name = ALIASES.get(name, name)
        module, _, function = self.data[name].partition(":")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        command_class = CLASSES.get(name)
        app.command(name, cls=command_class, epilog=read_examples(name))(getattr(import_module(module), function))
        gc.enable()
        return build_command(app)

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in ALIASES


class TextCommand(TyperCommand):
    """A command with a text argument, which may begin with a dash, as Markdown lists do."""

    ignore_unknown_options = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - the base's type is not public
        """Parse the arguments."""
        options = {"--help", "-h"}.union(*(parameter.opts for parameter in self.params))
        for word in () if ctx.resilient_parsing else takewhile(lambda word: word != "--", args):
            if LONG_OPTION.fullmatch(word) and word.partition("=")[0] not in options:
                raise exit_codes.UsageError(
                    f"No such option: {word}{nearest(word, sorted(options))}. If it is part of the text, put -- before"
                    f" the text; see 'kb {self.name} --help'"
                )
        return super().parse_args(ctx, args)


class QueryCommand(TyperCommand):
    """A command with a query, in which a word after a dash is excluded: kb search rust -tokio."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - the base's type is not public
        """Parse the arguments."""
        from kb_cli.runtime.shell_query import as_typed

        options = {name: not getattr(each, "is_flag", True) for each in self.params for name in each.opts}
        flags = {"--help": False, "-h": False}
        return super().parse_args(ctx, args if ctx.resilient_parsing else as_typed(args, options | flags))


CLASSES: Final = {"addnote": TextCommand, "updatenote": TextCommand, "search": QueryCommand}


class RootGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **attrs: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attrs)
        self.commands = LazyCommands(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - the base's types are not public
        """Write the commands in groups, without importing any of them."""
        width = max(map(len, COMMANDS))
        room = formatter.width - width - 6
        for title, group in COMMAND_GROUPS.items():
            commands = {name: TyperCommand(name, help=read_summary(target)) for name, target in group.items()}
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:{width}}", command.get_short_help_str(room)) for name, command in commands.items()]
                )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - the base's types are not public
        """Return the command that the arguments name."""
        if hint := REMOVED.get(args[0]):
            raise exit_codes.UsageError(f"'kb {args[0]}' no longer exists. {hint}")
        return super().resolve_command(ctx, args)


def read_summary(target: str) -> str:
    """Return the first paragraph of a command's docstring, read from the text of its module."""
    module, _, function = target.partition(":")
    text = Path(__file__).with_name("commands").joinpath(f"{module.rpartition('.')[2]}.py").read_text("utf-8")
    match = re.search(rf'^def {function}\(.*?"""(.*?)(?:\n\n|""")', text, re.DOTALL | re.MULTILINE)
    return " ".join(match[1].split()) if match else ""


def read_examples(name: str) -> str:
    """Return the examples below a command's help."""
    text = Path(__file__).with_name("examples.txt").read_text("utf-8")
    lines = text.partition(f"\n\n{name}\n")[2].partition("\n\n")[0].rstrip()
    return f"\b\nExamples:\n{lines}"


app = typer.Typer(cls=RootGroup, help=HELP, epilog=EPILOG, rich_markup_mode=None)


def print_version(value: bool) -> None:
    if value:
        print_line(f"kb {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, option("--version -V", "Print the version.", callback=print_version, is_eager=True)
    ] = False,
    profile: Profile = None,
) -> None:
    selected_profile.set(profile)


def main() -> None:
    open_streams()
    try:
        code = run(as_options(sys.argv[1:] or ["--help"]))
        sys.stdout.flush()
    except BrokenPipeError:
        code = exit_codes.PIPE_CLOSED
    except OSError as error:
        print_error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
        code = exit_codes.LOCAL
    if code in (exit_codes.PIPE_CLOSED, exit_codes.LOCAL):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would otherwise write again to the failed stream
    sys.exit(code)


def as_options(args: list[str]) -> list[str]:
    if args[0] == "help":
        return [*args[1:], "--help"]
    return ["--version", *args[1:]] if args[0] == "version" else args


def open_streams() -> None:
    """Replace closed standard streams, and tolerate characters that the output encoding lacks."""
    null = Path(os.devnull)
    sys.stdin = sys.stdin or cast("TextIO", null.open("r"))
    sys.stdout = sys.stdout or cast("TextIO", null.open("w"))
    sys.stderr = sys.stderr or cast("TextIO", null.open("w"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def run(args: list[str]) -> int:
    """Run a command and return its exit code. Each error is one line on standard error."""
    try:
        code: int = build_command(app)(args, prog_name="kb", standalone_mode=False) or exit_codes.OK
    except KbError as error:
        lines = error.extra.get("nearest_lines")
        nearest = " | ".join(map(repr, lines)) if isinstance(lines, list) else ""
        detail = rephrase(error.detail)
        print_error(f"{detail} The nearest lines are: {nearest}." if nearest else detail)
        return exit_codes.exit_code_for(error)
    except typer.TyperException as error:
        if isinstance(error, exit_codes.Interrupted):
            end_line()
        print_error(with_hint(error))
        return error.exit_code
    except UnicodeEncodeError:
        print_error("The command line contains bytes that are not UTF-8. Pipe the text in instead, encoded as UTF-8.")
        return exit_codes.USAGE
    except (typer.Abort, KeyboardInterrupt):
        code = exit_codes.INTERRUPTED
    if code == exit_codes.INTERRUPTED:
        end_line()
    return code


def end_line() -> None:
    """End the line of the terminal that shows ^C or an unanswered question."""
    if sys.stderr.isatty():
        print(file=sys.stderr)


def with_hint(error: typer.TyperException) -> str:
    message, context = error.format_message(), getattr(error, "ctx", None)
    if context is None:
        return message
    end = " See" if message.endswith("?") else "; see"
    return f"{message.removesuffix('.')}{end} '{context.command_path} --help'"


if __name__ == "__main__":
    main()
