"""kb export and kb import."""

from pathlib import Path
from typing import Annotated

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import argument, option
from kb_cli.runtime.progress import status_line


def export(
    folder: Annotated[Path, argument("DIR", "A new or empty folder, such as ~/kb-export.")],
    plain: Annotated[
        bool, option("--plain", "Write notes as Markdown with front matter, and files in their folders.")
    ] = False,
    vectors: Annotated[
        bool, option("--vectors", "Also export vectors, so that an import does not have to compute them.")
    ] = False,
) -> int:
    """Export everything, for 'kb import' or other programs.

    The engine can keep running. 'kb import' imports the export into another knowledge base, in a file or in PostgreSQL.
    'kb add' adds an export that you made with --plain. An export contains hashes of keys, so keep it as secret as a
    backup.
    """
    settings = require("kb.settings").Settings.read()
    with status_line(quiet=False) as show_status:
        show_status(f"exporting to {folder}")
        exported = require("kb.exchange.export").export(
            settings, folder.absolute(), as_notes=plain, with_vectors=vectors
        )
    output.print_line(f"{folder}: {exported.documents} documents, {exported.files} files")
    for name in exported.missing:
        output.print_error(
            f"the file {name} is damaged or missing, so the export does not contain it; 'kb doctor' reports it"
        )
    return exit_codes.FAILURE if exported.missing else exit_codes.OK


def import_(folder: Annotated[Path, argument("DIR", "A folder written by 'kb export'.")]) -> None:
    """Import an export into KB_DATA_DIR or KB_DATABASE_URL.

    Stop the engine first. If the database is empty, kb imports everything unchanged, and then compares the result with
    the export. If it already has a document with the same content and path, kb keeps one document, with the tags of
    both. If the import is interrupted, run it again to continue.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        imported = require("kb.exchange.importing").import_folder(
            settings, folder.absolute(), lambda done: show_status(f"{done:,} documents")
        )
    output.print_line(f"{imported.added} documents added, {imported.there} already existed")
    if imported.replaced:
        output.print_line(f"{imported.replaced} of these now have new content; their history contains the old content")
    if imported.tagged:
        output.print_line(f"{imported.tagged} of these now also have the tags from the export")
    if imported.keys:
        output.print_line(f"{imported.keys} keys with rights added: 'kb keys' lists them")
    if imported.compared:
        output.print_line(f"compared all {imported.compared} lines of the export with the database: no difference")
