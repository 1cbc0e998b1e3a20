"""kb bin and kb restore."""

from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.call import call, call_for_each
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Json, Why


def bin_(
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many documents at most.")] = 50,
    json: Json = False,
) -> None:
    """List what was deleted and can be restored, the last deleted first."""
    answer = call(lambda client: client.bin(limit=limit))
    if json:
        output.print_json(answer)
        return
    output.print_table(
        ("ID", "DELETED", "BY", "WHY", "UNTIL", "TITLE", "SOURCE PATH"),
        [
            (
                document["id"],
                output.format_time(document["deleted_at"]),
                document["by"],
                document["why"],
                output.format_time(document["expires_at"]),
                document["title"],
                document["source_path"],
            )
            for document in answer["documents"]
        ],
    )


def restore(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="The documents' ids.")],
    why: Why = None,
    json: Json = False,
) -> int:
    """Bring documents back from the bin. With --json, prints a list of the documents."""
    if unknown := [each for each in ids if not (each.isdecimal() and int(each))]:
        raise UsageError(f"{unknown[0]!r} is no document's id.")
    documents, code = call_for_each(
        dict.fromkeys(map(int, ids)), lambda client, document_id: client.restore(document_id, why=why)
    )
    if json:
        output.print_json(documents)
    else:
        for document in documents:
            output.print_line(f"document {document['id']} is restored: {output.one_line(document['title'])}")
    return code
