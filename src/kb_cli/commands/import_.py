"""kb import."""

from pathlib import Path
from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.progress import status_line


def import_(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What 'kb export' wrote.")],
) -> None:
    """Bring an export into KB_DATA_DIR, or the database that KB_DATABASE_URL names.

    The engine must not run. Into an empty database everything comes back as it was, and both are compared in the end.
    In one that holds documents, what is there with the same content and path stays one document, with the tags of both.
    If it is interrupted, run it again: it continues.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        imported = require("kb.maintenance.importing").import_folder(
            settings, folder.absolute(), lambda done: show_status(f"{done:,} documents")
        )
    output.print_line(f"{imported.added} documents added, {imported.there} were there")
    if imported.replaced:
        output.print_line(f"{imported.replaced} of these got other content; what they held is in their history")
    if imported.tagged:
        output.print_line(f"{imported.tagged} of these got tags from the export, beside their own")
    if imported.keys:
        output.print_line(f"{imported.keys} keys with rights came with them: 'kb keys' lists them")
    if imported.compared:
        output.print_line(f"each of {imported.compared} lines was compared: the database has what the export says")
