"""kb undo."""

import sys
from typing import Annotated, Any

import typer

from kb.api.errors import NotFound
from kb.api.operation_words import count_changes, describe_step
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json, Why, parse_moment

NOTHING = "there is nothing to take back"
SHOWN = 10
"""So many documents are named before a person answers."""


def undo(
    number: Annotated[
        int | None, typer.Argument(metavar="OPERATION", min=1, help="Which one; the last one by default.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="All commands given since then: 10m, 2h, 2026-01-31T18:00."),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="NAME", help="Only what this key changed.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List what can be taken back, newest first.")] = False,
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="With --list: how many at most.")] = 20,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; scripts must say so.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken back.")] = False,
    why: Why = None,
    json: Json = False,
) -> int:
    """Take back the last operation, or all since a moment.

    An operation is all that a command, a request or a sync round changed. kb shows a summary first, and asks. What was
    added goes to the bin, and what was deleted comes back. The next kb undo takes this back, with the same ids. --list
    shows earlier operations with their numbers.
    """
    if list_:
        output.print_list(call(lambda client: client.operations(limit=limit)), "operations", COLUMNS, json=json)
        return exit_codes.OK
    if number is not None and (since or key):
        raise exit_codes.UsageError("An OPERATION goes with neither --since nor --key.")
    moment = parse_moment("--since", since)
    try:
        planned = call(lambda client: client.undo(moment, operation=number, key=key, dry_run=True))
        if dry_run:
            return report(planned, json, whole=True)
        if not yes:
            confirm(planned)
        if planned["operation"]:
            number, key = planned["operation"]["number"], None
        return report(call(lambda client: client.undo(moment, operation=number, key=key, why=why)), json)
    except NotFound:
        if number is not None:
            raise
        output.print_error(NOTHING)
        return exit_codes.OK


def confirm(planned: dict[str, Any]) -> None:
    """Show what would be taken back, and ask.

    Raises:
        UsageError: nobody can answer.
    """
    if not sys.stdin.isatty():
        raise exit_codes.UsageError(
            "There is no terminal to ask on: say --yes to take it back, or --dry-run to see it."
        )
    if not planned["steps"] and not planned["jobs"]:
        output.print_error(NOTHING)
        raise typer.Exit
    output.print_error(summary(planned))
    for step in planned["steps"][:SHOWN]:
        output.print_error(described(step))
    if len(planned["steps"]) > SHOWN:
        output.print_error(f"… and {len(planned['steps']) - SHOWN} more ('kb undo --dry-run' names all)")
    if not typer.confirm("Take it back?", err=True):
        raise typer.Exit


def report(answer: dict[str, Any], json: bool, *, whole: bool = False) -> int:
    """Print what was taken back, or would be; return the exit code."""
    skipped = [step for step in answer["steps"] if step["skipped"]]
    if json:
        output.print_json(answer)
    elif not answer["steps"] and not answer["jobs"]:
        output.print_error(NOTHING)
    else:
        output.print_line(("would take back " if answer["dry_run"] else "took back ") + summary(answer))
        for step in answer["steps"] if whole or len(answer["steps"]) <= SHOWN else skipped:
            output.print_line(described(step))
    return exit_codes.FAILURE if skipped else exit_codes.OK


def summary(answer: dict[str, Any]) -> str:
    """Return in one line what is taken back."""
    operation = answer["operation"]
    of = f"operation {operation['number']} of {output.format_time(operation['at'])}: " if operation else ""
    return of + count_changes(answer)


COLUMNS: output.Columns = {"OPERATION": "number", "GIVEN": "at", "BY": "by", "CLIENT": "client", "WHAT": count_changes}


def described(step: dict[str, Any]) -> str:
    """Return what happens to a document in one line."""
    stays = "stays: " if step["skipped"] else ""
    return output.one_line(f"document {step['document_id']} {stays}{describe_step(step)}: {step['title']}")
