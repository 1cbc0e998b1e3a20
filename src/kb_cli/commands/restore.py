"""kb restore: documents from the bin, or a whole backup."""

from pathlib import Path
from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.engine_call import report_each
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Json, Why
from kb_cli.runtime.progress import status_line


def restore(
    what: Annotated[list[str], typer.Argument(metavar="{ID...|PATH}", help="Documents' ids, or a backup.")],
    why: Why = None,
    unsealed: Annotated[
        bool, typer.Option("--unsealed", help="Restore a backup without a seal although KB_BACKUP_KEY is set.")
    ] = False,
    json: Json = False,
) -> int:
    """Restore documents from the bin, or all of a backup.

    PATH is a backup, or a folder of backups, of which the newest counts. It replaces what is in KB_DATA_DIR; the engine
    must not run. The backup is unpacked and verified before anything is touched. What was there is set aside, in a
    folder that is named.

    With --json, prints a list of the documents.
    """
    if all(argument.isdecimal() and int(argument) for argument in what):
        return report_each(
            dict.fromkeys(map(int, what)),
            lambda client, document_id: client.restore(document_id, why=why),
            lambda document: f"document {document['id']} is restored: {output.one_line(document['title'])}",
            json=json,
        )
    path = Path(what[0])
    if len(what) > 1 or not path.exists():
        raise UsageError(f"{' '.join(what)!r} is neither a backup nor a list of documents' ids.")
    restore_backup(path, unsealed=unsealed)
    return 0


def restore_backup(path: Path, *, unsealed: bool) -> None:
    """Put the newest backup at `path` in the place of the data that is there."""
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        restored = require("kb.maintenance.restore").restore_backup(
            settings, path.absolute(), show_status, unsealed=unsealed
        )
    seal = {"sealed": ", sealed,", "unsealed": ", not sealed,", "unchecked": ", its seal not compared,"}[restored.seal]
    output.print_line(f"{restored.name} of {restored.manifest.made_at}{seal} is restored")
    for folder in restored.set_aside:
        output.print_line(f"what was there before is in {folder}")
