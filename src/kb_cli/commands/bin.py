"""kb bin and kb restore: deleted documents."""

from pathlib import Path
from typing import Annotated

from kb_cli.commands.backup import restore_backup
from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call, report_each
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Json, Why, argument, option

COLUMNS: output.Columns = {
    "ID": "id",
    "DELETED": "deleted_at",
    "BY": "by",
    "WHY": "why",
    "UNTIL": "expires_at",
    "TITLE": "title",
    "SOURCE PATH": "source_path",
}


def bin_(
    limit: Annotated[int, option("-n N", "The maximum number of documents.", min=1)] = 50, json: Json = False
) -> None:
    """List the documents in the bin, most recently deleted first."""
    answer = call(lambda client: client.bin(limit=limit))
    output.print_list(answer, "documents", COLUMNS, "the bin is empty", json=json)


def restore(
    what: Annotated[list[str], argument("ID", "One or more document IDs, as 'kb bin' shows them.")],
    why: Why = None,
    unsealed: Annotated[bool, option("--unsealed", "", hidden=True)] = False,
    json: Json = False,
) -> int:
    """Restore documents from the bin. 'kb backup restore' restores a backup.

    With --json, kb prints a list of the documents.
    """
    if all(argument.isdecimal() and int(argument) for argument in what):
        return report_each(
            dict.fromkeys(map(int, what)),
            lambda client, document_id: client.restore(document_id, why=why),
            lambda document: f"restored document {document['id']}: {output.one_line(document['title'])}",
            json=json,
        )
    path = Path(what[0])
    if len(what) > 1 or not path.exists():
        raise UsageError(
            f"{' '.join(what)!r} is not a list of document IDs such as 42."
            " To restore a backup, use 'kb backup restore'."
        )
    output.print_error("'kb restore' restores documents; use 'kb backup restore' for a backup")
    return restore_backup(path.absolute(), unsealed=unsealed)
