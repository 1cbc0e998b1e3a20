"""What is longer than the terminal, shown a page at a time."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import Final

OFF: Final = ("", "cat")
LESS: Final = {"LESS": "-FRX"}
"""What less is told if nobody told it anything: to end by itself after one page, and to show styles."""


def has_room(text: str) -> bool:
    """Return whether the terminal shows all of a text at once, a line being left for the prompt."""
    return text.count("\n") < shutil.get_terminal_size().lines


def show(text: str) -> bool:
    """Show a text in the pager; return whether there is one."""
    wanted = os.environ.get("PAGER", "less")
    command = shlex.split(wanted)
    if wanted in OFF or not shutil.which(command[0]):
        return False
    try:
        subprocess.run(command, input=text.encode(), env=LESS | os.environ, check=False)  # noqa: S603 - the user's own
    except OSError:
        return False
    return True
