"""Show long output in a pager."""

import os
import shlex
import shutil
import signal
import subprocess
from typing import Final

OFF: Final[tuple[list[str], ...]] = ([], ["cat"])
LESS: Final = {"LESS": "-FRX"}
"""Options for less if none are set: exit if the text fits on one page, and show styles."""


def has_room(text: str) -> bool:
    """Return whether the terminal can show a whole text, with one line left for the prompt."""
    return text.count("\n") < shutil.get_terminal_size().lines


def show(text: str) -> bool:
    """Show a text in the pager; return False without a pager."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # an unclosed quotation
        return False
    if command in OFF or not shutil.which(command[0]):
        return False
    # The pager handles Ctrl-C; if it were killed, the terminal would keep the pager's settings.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        subprocess.run(  # noqa: S603 - the user's own pager
            command, input=text.encode("utf-8", "replace"), env=LESS | os.environ, check=False
        )
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
