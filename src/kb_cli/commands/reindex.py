"""kb reindex."""

from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.optional import require
from kb_cli.runtime.progress import status_line


def reindex(
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Make every vector anew, not only those that are damaged.")
    ] = False,
) -> None:
    """Make the database in KB_DATA_DIR anew from its texts; the engine must not run.

    The full text and damaged vectors are made again, and space that nothing stands on is given back. The old database
    stays until the new one is whole: it needs as much room again, and can be stopped.
    """
    settings = require("kb.settings").Settings.read()
    with status_line(quiet=False) as show_status:
        require("kb.maintenance.reindex").reindex(
            settings, lambda done, total: show_status(f"{done:,} of {total:,} chunks"), anew=vectors
        )
    output.print_line("the database is made anew")
