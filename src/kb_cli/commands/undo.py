"""kb undo."""

import sys
from typing import Annotated, Any

import typer

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.call import call
from kb_cli.runtime.options import Json, Why, parse_moment

ACTIONS = {
    "delete": "goes to the bin",
    "restore": "comes back from the bin",
    "revert": "becomes version {version} again",
    "retag": "gets the tags of version {version}",
}

NOTHING = "there is nothing to take back"


def undo(
    since: Annotated[
        str,
        typer.Option("--since", metavar="TIME", help="Take back what changed since then: 10m, 2h, 2026-01-31T18:00."),
    ],
    key: Annotated[str | None, typer.Option("--key", metavar="NAME", help="Only what this key changed.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; scripts must say so.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken back.")] = False,
    why: Why = None,
    json: Json = False,
) -> int:
    """Take back all that was changed since a moment.

    It shows what that is, and asks. What was added goes to the bin. You can undo this, too.
    """
    moment = parse_moment("--since", since) or ""
    if dry_run or not yes:
        planned = call(lambda client: client.undo(moment, key=key, dry_run=True))
        if dry_run:
            return report(planned, json)
        confirm(planned)
    return report(call(lambda client: client.undo(moment, key=key, why=why)), json)


def confirm(planned: dict[str, Any]) -> None:
    """Show what would be taken back, and ask.

    Raises:
        UsageError: nobody can answer.
    """
    if not sys.stdin.isatty():
        raise exit_codes.UsageError(
            "There is no terminal to ask on: say --yes to take it back, or --dry-run to see it."
        )
    for step in planned["steps"]:
        output.print_error(described(step))
    if not planned["steps"]:
        output.print_error(NOTHING)
    if not planned["steps"] or not typer.confirm("Take it back?", err=True):
        raise typer.Exit


def report(answer: dict[str, Any], json: bool) -> int:
    """Print what was taken back, or would be; return the exit code."""
    if json:
        output.print_json(answer)
    else:
        for step in answer["steps"]:
            output.print_line(described(step))
        if not answer["steps"]:
            output.print_error(NOTHING)
    return exit_codes.FAILURE if any(step["skipped"] for step in answer["steps"]) else exit_codes.OK


def described(step: dict[str, Any]) -> str:
    """Return what happens to a document in one line."""
    what = step["skipped"] or ACTIONS[step["action"]].format_map(step)
    return output.one_line(
        f"document {step['document_id']} {'stays: ' if step['skipped'] else ''}{what}: {step['title']}"
    )
