"""kb migrate-store."""

import time
from typing import Annotated

import typer

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.optional import data_settings, require
from kb_cli.runtime.progress import status_line

MAX_SHOWN = 100
"""How many differences are told."""


def migrate_store(
    source: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="The database to copy.  [default: that in KB_DATA_DIR]")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="The database to fill.  [default: that in KB_DATA_DIR]")
    ] = None,
    verify_only: Annotated[bool, typer.Option("--verify-only", help="Only compare the two.")] = False,
) -> int:
    """Copy the whole database into another one, and compare them.

    A URL is sqlite:///PATH or postgresql://USER@HOST/DATABASE. No engine may use the target, which must be empty or a
    copy made before. The engine of the source may run: what is written after the beginning is not copied. Run it again,
    with that engine stopped, to copy what has changed since; also if it was interrupted.
    """
    settings = data_settings()
    source_settings, target_settings = (settings.model_copy(update={"database_url": url}) for url in (source, target))
    begun = time.monotonic()
    with status_line(quiet=False) as show_status:

        def show(doing: str, done: int, total: int) -> None:
            show_status(f"{doing}, {done:,} of {total:,}" if total else f"{doing}, {done:,}" if done else doing)

        migrated = require("kb.maintenance.migrate_store").migrate_store(
            source_settings, target_settings, show, verify_only=verify_only
        )
    # Not before both were opened: of a URL that cannot be read, this may be the password.
    output.print_line(f"from {source_settings.database} to {target_settings.database}")
    changed = "" if verify_only else f" ({migrated.written:,} copied, {migrated.removed:,} removed)"
    seconds = time.monotonic() - begun
    output.print_line(f"{migrated.documents:,} documents{changed}, {migrated.files:,} files, in {seconds:,.0f} s")
    if migrated.absent:
        why = "KB_KEEP_FILES was off, another engine has them, or they are lost"
        output.print_line(f"{migrated.absent:,} files are in neither: {why}")
    return _report(migrated.differences)


def _report(differences: list[str]) -> int:
    for difference in differences[:MAX_SHOWN]:
        output.print_error(difference)
    if (more := len(differences) - MAX_SHOWN) > 0:
        output.print_error(f"and {more:,} more")
    output.print_line("they differ" if differences else "they are equal")
    return exit_codes.FAILURE if differences else exit_codes.OK
