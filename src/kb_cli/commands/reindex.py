"""kb reindex."""

from typing import Annotated

from kb_cli.runtime import output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import option
from kb_cli.runtime.progress import status_line


def reindex(
    vectors: Annotated[
        bool, option("--vectors", "Also compute all vectors again, with the model in the settings.")
    ] = False,
) -> None:
    """Rebuild the database in KB_DATA_DIR from the texts in it.

    Stop the engine first. kb rebuilds the index of words and all missing or damaged vectors, keeps the other vectors,
    and frees unused space. It replaces the old database only when the new one is complete, so it needs space for both,
    and you can interrupt it. To change the model while the engine runs, use 'kb reembed'.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        require("kb.maintenance.reindex").reindex(
            settings, lambda done, total: show_status(f"{done:,} of {total:,} passages"), recompute_all=vectors
        )
    output.print_line("the database is rebuilt")
