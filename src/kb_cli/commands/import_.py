"""kb import."""

from pathlib import Path
from typing import Annotated

from kb_cli.runtime import output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import argument
from kb_cli.runtime.progress import status_line


def import_(
    folder: Annotated[Path, argument("DIR", "A folder that 'kb export' wrote.")],
) -> None:
    """Import an export into KB_DATA_DIR or KB_DATABASE_URL.

    Stop the engine first. Into an empty database, kb imports everything unchanged, and then compares the database with
    the export. In a database with documents, a document that has the same content and path stays one document, with
    the tags of both. If the import is interrupted, run it again to continue.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        imported = require("kb.maintenance.importing").import_folder(
            settings, folder.absolute(), lambda done: show_status(f"{done:,} documents")
        )
    output.print_line(f"{imported.added} documents added, {imported.there} existed already")
    if imported.replaced:
        output.print_line(f"{imported.replaced} of these have new content now; their history contains the old content")
    if imported.tagged:
        output.print_line(f"{imported.tagged} of these have additional tags from the export now")
    if imported.keys:
        output.print_line(f"{imported.keys} keys with rights added: 'kb keys' lists them")
    if imported.compared:
        output.print_line(f"compared all {imported.compared} lines of the export with the database: no difference")
