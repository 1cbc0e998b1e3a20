"""kb reindex."""

from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.progress import status_line


def reindex(
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Make every vector anew, with the model that is set now.")
    ] = False,
) -> None:
    """Rebuild the database in KB_DATA_DIR from the texts in it.

    The engine must not run. The full-text index is made anew, as are vectors that are missing or damaged; the others
    are kept, and free space is given back. The old database stays until the new one is complete: this needs as much
    room again, and can be interrupted. To change the model while the engine runs, there is 'kb reembed'.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        require("kb.maintenance.reindex").reindex(
            settings, lambda done, total: show_status(f"{done:,} of {total:,} passages"), recompute_all=vectors
        )
    output.print_line("the database is made anew")
