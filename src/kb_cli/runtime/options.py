"""Options that several commands share."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from kb_cli.runtime.completion import profiles, tag_lists, types
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync.selection import prefix_of, source_path_of

STDIN = "-"

Json = Annotated[bool, typer.Option("--json", help="Print the engine's JSON, and nothing else.")]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tags", metavar="A,B", help="Tags, with commas between them.", autocompletion=tag_lists),
]
AnyTag = Annotated[
    list[str] | None,
    typer.Option("--any", metavar="A,B", help="Only with one of these tags at least.", autocompletion=tag_lists),
]
NoTag = Annotated[
    list[str] | None, typer.Option("--not", metavar="A,B", help="Only without these tags.", autocompletion=tag_lists)
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it can be found; say so if that fails.")]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="Leave out, as in .gitignore; may be repeated."),
]
Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The document's id.")]
Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="The documents' ids.")]
IdsOnly = Annotated[bool, typer.Option("--ids", help="Print the documents' ids, one a line, and nothing else.")]
DocType = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="Only this type, such as note or pdf.", autocompletion=types),
]
SourcePath = Annotated[str | None, typer.Option("--path", metavar="PATH", help="Only from this file or source path.")]
Under = Annotated[str | None, typer.Option("--under", metavar="FOLDER", help="Only from below this folder.")]
After = Annotated[str | None, typer.Option("--after", metavar="DATE", help="Only added then or later: 2026-01-31.")]
Before = Annotated[str | None, typer.Option("--before", metavar="DATE", help="Only added earlier.")]
Profile = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="Which server of the configuration file.", autocompletion=profiles),
]


def split(tags: list[str] | None) -> list[str]:
    """The tags of an option that may be repeated and may hold several."""
    return [tag.strip() for value in tags or [] for tag in value.split(",") if tag.strip()]


def some(tags: list[str] | None) -> list[str]:
    """The tags of a filter. One without any, as by a variable that is not set, would let everything pass."""
    if tags is not None and not split(tags):
        raise UsageError("A filter names no tag.")
    return split(tags)


def filters(
    path: str | None, under: str | None, after: str | None, before: str | None, doc_type: str | None
) -> dict[str, Any]:
    """What the engine calls these filters; those that are not used are left out."""
    if "" in (path, under):
        raise UsageError("--path and --under need a path.")
    wanted = {
        "doc_type": doc_type,
        "source_path": path and (source_path_of(path) if Path(path).exists() else path),
        "source_prefix": under and prefix_of(under),
        "created_after": instant(after),
        "created_before": instant(before),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def instant(word: str | None) -> str | None:
    """A date or a time of the clock here, as the engine reads it."""
    if word is None:
        return None
    try:
        return datetime.fromisoformat(word).astimezone().isoformat()
    except ValueError:
        raise UsageError(f"{word!r} is no date such as 2026-01-31 or 2026-01-31T18:00.") from None


def text_of(argument: str) -> str:
    """The argument itself, or what standard input holds if it is `-`."""
    if argument != STDIN:
        return argument
    import sys

    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise UsageError("What comes on standard input is not UTF-8 text.") from None
