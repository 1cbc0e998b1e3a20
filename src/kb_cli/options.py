"""Options that several commands share."""

from typing import Annotated

import typer

from kb_cli.exits import UsageError

STDIN = "-"

Json = Annotated[bool, typer.Option("--json", help="Print the engine's JSON, and nothing else.")]
Tags = Annotated[list[str] | None, typer.Option("--tags", metavar="A,B", help="Tags, with commas between them.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it can be found; say so if that fails.")]
Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The document's id.")]
Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="The documents' ids.")]
DocType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only this type, such as note or pdf.")]


def split(tags: list[str] | None) -> list[str]:
    """The tags of an option that may be repeated and may hold several."""
    return [tag.strip() for value in tags or [] for tag in value.split(",") if tag.strip()]


def text_of(argument: str) -> str:
    """The argument itself, or what standard input holds if it is `-`."""
    if argument != STDIN:
        return argument
    import sys

    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise UsageError("What comes on standard input is not UTF-8 text.") from None
