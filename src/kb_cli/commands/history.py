"""kb history and kb revert."""

from typing import Annotated, Any

import typer

from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Id, Json, Why
from kb_cli.runtime.terminal_styles import GREEN, PLAIN, Style, Styled

Number = Annotated[int, typer.Argument(metavar="VERSION", min=1, help="The number of the version.")]
MARKS = {"equal": PLAIN, "delete": Style((9, 31)), "insert": GREEN}
SIGNS = {"equal": ("", ""), "delete": ("[-", "-]"), "insert": ("{+", "+}")}
"""How `git diff --word-diff` marks words, too."""

COLUMNS: output.Columns = {
    "VERSION": "number",
    "SINCE": "at",
    "BY": "by",
    "CLIENT": "client",
    "WHY": "why",
    "TITLE": "title",
    "TAGS": output.format_tags,
    "PATH": "source_path",
}


def history(
    document_id: Id,
    version: Annotated[
        int | None, typer.Argument(metavar="VERSION", min=1, help="Show this version's text.", show_default=False)
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what changed since VERSION, word by word.")] = False,
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many versions at most.")] = 50,
    json: Json = False,
) -> None:
    """List the versions of a document, newest first.

    Documents in the bin have their history, too.
    """
    if diff and version is None:
        raise UsageError("Say since which VERSION to show what changed.")
    if version is None:
        show(call(lambda client: client.history(document_id, limit=limit)), json, print_versions)
    elif diff:
        show(call(lambda client: client.diff(document_id, version)), json, print_diff)
    else:
        show(
            call(lambda client: client.version(document_id, version)),
            json,
            lambda line: output.print_text(line["text"]),
        )


def revert(document_id: Id, version: Number, why: Why = None, json: Json = False) -> None:
    """Make a document what it was at a version.

    The versions in between stay.
    """
    document = call(lambda client: client.revert(document_id, version, why=why))
    if json:
        output.print_json(document)
    else:
        output.print_line(f"document {document_id} is as it was at version {version}: {document['title']}")


def show(answer: dict[str, Any], json: bool, print_answer: Any) -> None:  # noqa: ANN401 - any function
    """Print an answer as JSON, or for a person."""
    if json:
        output.print_json(answer)
    else:
        print_answer(answer)


def print_versions(answer: dict[str, Any]) -> None:
    """Print versions, one a line."""
    if answer["deleted_at"]:
        output.print_error(f"it has been in the bin since {output.format_time(answer['deleted_at'])}")
    output.print_list(answer, "versions", COLUMNS, json=False)


def print_diff(answer: dict[str, Any]) -> None:
    """Print what changed: in colours on a terminal, between signs elsewhere."""
    pieces = [(output.to_printable(change["text"]), change["kind"]) for change in answer["changes"]]
    if output.is_terminal():
        output.print_styled(Styled.join(Styled(text, MARKS[kind]) for text, kind in pieces))
    else:
        output.write("".join(SIGNS[kind][0] + text + SIGNS[kind][1] for text, kind in pieces) + "\n")
