"""What is longer than the terminal, shown a page at a time."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from typing import Final

OFF: Final[tuple[list[str], ...]] = ([], ["cat"])
LESS: Final = {"LESS": "-FRX"}
"""What less is told if nobody told it anything: to end by itself after one page, and to show styles."""


def has_room(text: str) -> bool:
    """Return whether the terminal shows all of a text at once, a line being left for the prompt."""
    return text.count("\n") < shutil.get_terminal_size().lines


def show(text: str) -> bool:
    """Show a text in the pager; return whether there is one."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quotation without an end
        return False
    if command in OFF or not shutil.which(command[0]):
        return False
    # Ctrl-C is the pager's own: it would be killed, and leave the terminal as it had set it.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        subprocess.run(  # noqa: S603 - the user's own
            command, input=text.encode("utf-8", "replace"), env=LESS | os.environ, check=False
        )
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
