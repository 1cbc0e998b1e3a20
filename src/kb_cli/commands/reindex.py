"""kb reindex."""

from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.optional import data_settings, require
from kb_cli.runtime.progress import status_line


def reindex(
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Make every vector anew, not only those that are damaged.")
    ] = False,
) -> None:
    """Rebuild the database in KB_DATA_DIR from its texts.

    The engine must not run. The full-text index and damaged vectors are made again, and free space is given back. The
    old database stays until the new one is complete: this needs as much room again, and can be interrupted.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        require("kb.maintenance.reindex").reindex(
            settings, lambda done, total: show_status(f"{done:,} of {total:,} passages"), anew=vectors
        )
    output.print_line("the database is made anew")
