"""kb undo."""

import sys
from typing import Annotated, Any

import typer

from kb.api.errors import NotFound
from kb.wording import count_changes, describe_step
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json, Why, Yes, argument, option, parse_moment

NOTHING = "nothing to undo"
SHOWN = 10
"""The maximum number of documents listed before the confirmation."""


def undo(
    number: Annotated[
        int | None, argument("OPERATION", "The number of the operation to undo (by default the last one).", min=1)
    ] = None,
    since: Annotated[
        str | None, option("--since TIME", "Undo all operations since this time: 10m, 2h, 2026-01-31T18:00.")
    ] = None,
    key: Annotated[str | None, option("--key NAME", "Undo only what the key with this name did.")] = None,
    list_: Annotated[bool, option("--list", "List the operations that you can undo, newest first.")] = False,
    limit: Annotated[int, option("-n N", "The maximum number of operations that --list shows.", min=1)] = 20,
    yes: Yes = False,
    dry_run: Annotated[bool, option("--dry-run", "Only show the changes that kb would undo.")] = False,
    why: Why = None,
    json: Json = False,
) -> int:
    """Undo the last operation, or all operations since a time.

    An operation is everything that one command, request or sync changed. kb shows a summary and asks for
    confirmation. Added documents go to the bin, and deleted ones come back with the same IDs. The next 'kb undo' undoes
    this undo. --list shows earlier operations with their numbers.
    """
    if list_:
        output.print_list(call(lambda client: client.operations(limit=limit)), "operations", COLUMNS, json=json)
        return exit_codes.OK
    if number is not None and (since or key):
        raise exit_codes.UsageError("OPERATION cannot be used with --since or --key.")
    since_time = parse_moment("--since", since)
    try:
        planned = call(lambda client: client.undo(since_time, operation=number, key=key, dry_run=True))
        if dry_run:
            return report(planned, json, whole=True)
        if not yes:
            confirm(planned)
        if planned["operation"]:
            number, key = planned["operation"]["number"], None
        return report(call(lambda client: client.undo(since_time, operation=number, key=key, why=why)), json)
    except NotFound:
        if number is not None:
            raise
        output.print_error(NOTHING)
        return exit_codes.OK


def confirm(planned: dict[str, Any]) -> None:
    """Show the changes to undo, and ask for confirmation."""
    if not sys.stdin.isatty():
        raise exit_codes.UsageError(
            "Cannot ask for confirmation without a terminal. Add --yes to undo, or --dry-run to see the changes."
        )
    if not planned["steps"] and not planned["jobs"]:
        output.print_error(NOTHING)
        raise typer.Exit
    output.print_error(summary(planned))
    for step in planned["steps"][:SHOWN]:
        output.print_error(described(step))
    if len(planned["steps"]) > SHOWN:
        output.print_error(f"… and {len(planned['steps']) - SHOWN} more ('kb undo --dry-run' lists all)")
    if not typer.confirm("Undo this?", err=True):
        raise typer.Exit


def report(answer: dict[str, Any], json: bool, *, whole: bool = False) -> int:
    skipped = [step for step in answer["steps"] if step["skipped"]]
    if json:
        output.print_json(answer)
    elif not answer["steps"] and not answer["jobs"]:
        output.print_error(NOTHING)
    else:
        output.print_line(("would undo " if answer["dry_run"] else "undid ") + summary(answer))
        for step in answer["steps"] if whole or len(answer["steps"]) <= SHOWN else skipped:
            output.print_line(described(step))
    return exit_codes.FAILURE if skipped else exit_codes.OK


def summary(answer: dict[str, Any]) -> str:
    operation = answer["operation"]
    of = f"operation {operation['number']} from {output.format_time(operation['at'])}: " if operation else ""
    return of + count_changes(answer)


COLUMNS: output.Columns = {"OPERATION": "number", "GIVEN": "at", "BY": "by", "CLIENT": "client", "WHAT": count_changes}


def described(step: dict[str, Any]) -> str:
    stays = "stays unchanged: " if step["skipped"] else ""
    return output.one_line(f"document {step['document_id']} {stays}{describe_step(step)}: {step['title']}")
