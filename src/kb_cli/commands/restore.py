"""kb restore."""

from pathlib import Path
from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.optional import require
from kb_cli.runtime.progress import status_line


def restore(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A backup, or a folder of backups: the newest.")],
) -> None:
    """Bring a backup back into KB_DATA_DIR; the engine must not run.

    It is unpacked and verified before anything is touched. What was there is set aside, in a folder that is named.
    """
    restore_backup(path)


def restore_backup(path: Path) -> None:
    """Put the newest backup at `path` in the place of the data that is there."""
    settings = require("kb.settings").Settings.read()
    with status_line(quiet=False) as show_status:
        restored = require("kb.maintenance.restore").restore_backup(settings, path.absolute(), show_status)
    output.print_line(f"{restored.name} of {restored.manifest.made_at} is restored")
    for folder in restored.set_aside:
        output.print_line(f"what was there before is in {folder}")
