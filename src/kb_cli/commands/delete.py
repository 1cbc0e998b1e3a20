"""kb delete."""

import sys
from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.call import call_for_each
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Ids, Json


def delete(
    ids: Ids,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; scripts must say so.")] = False,
    json: Json = False,
) -> int:
    """Delete documents for good. With --json, prints a list of the engine's receipts."""
    ids = list(dict.fromkeys(ids))
    if not yes:
        confirm(ids)
    receipts, code = call_for_each(ids, lambda client, document_id: client.delete_document(document_id))
    if json:
        output.print_json(receipts)
    else:
        for receipt in receipts:
            title = output.one_line(receipt["title"])
            output.print_line(f"document {receipt['document_id']} is deleted: {title}")
    return code


def confirm(ids: list[int]) -> None:
    """Ask whether to delete; without a person to ask, refuse.

    Raises:
        UsageError: nobody can answer.
    """
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask on: say --yes to delete.")
    documents, _ = call_for_each(ids, lambda client, document_id: client.document(document_id, chunks=1))
    for document in documents:
        output.print_error(f"document {document['id']}: {document['title']}")
    if not typer.confirm("Delete for good?", err=True):
        raise typer.Exit
