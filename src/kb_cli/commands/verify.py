"""kb verify."""

from itertools import islice

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.optional import require
from kb_cli.runtime.options import Json
from kb_cli.runtime.progress import status_line

MOST = 20
"""How many faults of a kind are shown."""


def verify(json: Json = False) -> int:
    """Look whether the database and the files in KB_DATA_DIR are whole.

    Nothing is changed, and the engine may run meanwhile. What follows from the texts, 'kb reindex' makes anew; for all
    else there are backups.
    """
    settings = require("kb.settings").Settings.read()
    found = {}
    with status_line(quiet=json) as show_status:
        for name, faults in require("kb.maintenance").verify(settings):
            show_status(f"looking at {name}")
            found[name] = list(islice(faults, MOST))
    if json:
        output.print_json({"whole": not any(found.values()), "faults": found})
    else:
        for name, faults in found.items():
            for fault in faults or ["whole"]:
                output.print_line(f"{name}: {fault}")
    return exit_codes.FAILURE if any(found.values()) else exit_codes.OK
