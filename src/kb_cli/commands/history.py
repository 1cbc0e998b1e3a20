"""kb history and kb revert."""

from typing import Annotated, Any

from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Id, Json, Why, argument, option
from kb_cli.runtime.terminal_styles import GREEN, PLAIN, Style, Styled

Number = Annotated[int, argument("VERSION", "The number of the version, as 'kb history' shows it.", min=1)]
MARKS = {"equal": PLAIN, "delete": Style((9, 31)), "insert": GREEN}
SIGNS = {"equal": ("", ""), "delete": ("[-", "-]"), "insert": ("{+", "+}")}
"""The same signs as in `git diff --word-diff`."""

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
        int | None, argument("VERSION", "The version whose text you want to see.", min=1, show_default=False)
    ] = None,
    diff: Annotated[bool, option("--diff", "Show what changed since VERSION, or since the previous version.")] = False,
    limit: Annotated[int, option("-n N", "The maximum number of versions.", min=1)] = 50,
    json: Json = False,
) -> None:
    """List the versions of a document, newest first.

    This also works for documents in the bin. 'kb revert' goes back to an earlier version.
    """
    if diff and version is None:
        version = version_before(document_id)
    if version is None:
        answer = call(lambda client: client.history(document_id, limit=limit))
    elif diff:
        answer = call(lambda client: client.diff(document_id, version))
    else:
        answer = call(lambda client: client.version(document_id, version))
    if json:
        output.print_json(answer)
    elif version is None:
        if answer["deleted_at"]:
            output.print_error(f"the document has been in the bin since {output.format_time(answer['deleted_at'])}")
        output.print_list(answer, "versions", COLUMNS, json=False)
    elif diff:
        print_diff(answer)
    else:
        output.print_text(answer["text"])


def version_before(document_id: int) -> int:
    """Return the number of the version before the newest one."""
    versions = call(lambda client: client.history(document_id, limit=2))["versions"]
    if len(versions) < 2:
        raise UsageError(f"Document {document_id} has only one version, so nothing has changed.")
    return int(versions[1]["number"])


def revert(document_id: Id, version: Number, why: Why = None, json: Json = False) -> None:
    """Go back to an earlier version of a document.

    The history keeps all versions, even the later ones.
    """
    document = call(lambda client: client.revert(document_id, version, why=why))
    if json:
        output.print_json(document)
    else:
        output.print_line(f"document {document_id} has the content of version {version} again: {document['title']}")


def print_diff(answer: dict[str, Any]) -> None:
    """Print the changes: in colours on a terminal, otherwise between signs."""
    pieces = [(output.to_printable(change["text"]), change["kind"]) for change in answer["changes"]]
    if output.is_terminal():
        output.print_styled(Styled.join(Styled(text, MARKS[kind]) for text, kind in pieces))
    else:
        output.write("".join(SIGNS[kind][0] + text + SIGNS[kind][1] for text, kind in pieces) + "\n")
