"""kb delete."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from kb.api.errors import KbError
from kb.client.client import EngineClient
from kb.folders.disk_view import find_file
from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call, call_for_each
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import NO_TERMINAL, Ids, Json, Why, Yes, option
from kb_cli.sync.folder_names import FolderNames, fetch_names


def delete(
    ids: Ids,
    yes: Yes = False,
    purge: Annotated[bool, option("--purge", "Delete permanently, with all versions, even from the bin.")] = False,
    leave_out: Annotated[
        bool, option("--leave-out", "Make 'kb sync' skip the file from now on; it stays on the disk.")
    ] = False,
    why: Why = None,
    json: Json = False,
) -> int:
    """Delete documents. They stay in the bin for 30 days (KB_BIN_DAYS), and 'kb restore' restores them from there.

    If the file is still in its folder, the next 'kb sync' adds it again. With --leave-out, kb skips it until you
    restore the document or add the file by its name.

    With --json, kb prints a list of the engine's receipts.
    """
    if purge and leave_out:
        raise UsageError("Use --leave-out or --purge, not both.")
    ids = list(dict.fromkeys(ids))
    if not yes:
        confirm(ids, purge)
    paths = dict[int, str]()

    async def remove(client: EngineClient, document_id: int) -> dict[str, Any]:
        with suppress(KbError):  # it may be in the bin
            paths[document_id] = (await client.document(document_id, from_chunk=0, chunks=1))["source_path"]
        return await client.delete_document(document_id, purge=purge, leave_out=leave_out, why=why)

    receipts, code = call_for_each(ids, remove)
    if json:
        output.print_json(receipts)
    else:
        names = call(fetch_names) if paths and not leave_out else FolderNames()
        for receipt in receipts:
            title = output.one_line(receipt["title"])
            output.print_line(f"document {receipt['document_id']} is deleted: {title}")
            path = paths.get(receipt["document_id"])
            if path and not leave_out and is_here(names.place(path)):
                output.print_error(f"the file {path} still exists, so the next 'kb sync' of its folder adds it again")
    return code


def is_here(path: str) -> bool:
    """Return whether this user can see such a file; the document may come from another machine."""
    with suppress(OSError, ValueError):
        return output.is_path(path) and find_file(path) is not None
    return False


def confirm(ids: Sequence[int], purge: bool) -> None:
    """Ask for confirmation."""
    pages, code = call_for_each(ids, lambda client, document_id: client.history(document_id, limit=1))
    if not pages:
        raise typer.Exit(code)
    if not sys.stdin.isatty():
        raise UsageError(NO_TERMINAL)
    for page in pages:
        output.print_error(f"document {page['document_id']}: {page['versions'][0]['title']}")
    if not typer.confirm("Delete permanently?" if purge else "Delete?", err=True):
        raise typer.Exit
