"""The messages of `kb serve` for a person at a terminal, shown instead of a log."""

import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kb import __version__
from kb_cli.runtime.output import abbreviate_home


def is_for_person(environment: Mapping[str, str]) -> bool:
    """Return whether a person reads the log live and has not configured another one."""
    return sys.stderr.isatty() and not (environment.get("KB_LOG_LEVEL") or environment.get("KB_LOG_FORMAT"))


class StatusLine(logging.Handler):
    """Shows each message on the same line of the terminal, in place of the one before."""

    def emit(self, record: logging.LogRecord) -> None:
        """Replace the line."""
        print(f"\r{record.getMessage()} …\x1b[K", end="", file=sys.stderr, flush=True)


CLEAR: Final = "\r\x1b[K"
"""Removes the line of the status."""


def print_starting(folder: Path) -> None:
    """Say that kb starts and, from now on, what it does with the model: a first start takes up to a minute."""
    print(f"Starting kb {__version__} …", file=sys.stderr)
    if not (folder / "models").is_dir():
        print("This is the first start, so kb downloads its model once (91 MB).", file=sys.stderr)
    steps = logging.getLogger("kb.embed.models.steps")
    steps.handlers, steps.propagate = [StatusLine()], False
    steps.setLevel(logging.INFO)


OPEN = (
    "any account or program on this machine can read and change your data;"
    " set KB_API_KEY and KB_MCP_API_KEY to prevent this"
)
"""The risk of running without a key."""


def print_ready(url: str, folder: Path, apps: Iterable[str], *, is_open: bool) -> None:
    agents = ("  for your agents  kb mcp              (shows how to connect them)",) if "mcp" in apps else ()
    lines = (
        f"{CLEAR}kb is ready at {url} (Ctrl-C stops it). Its data folder is {abbreviate_home(str(folder))}.",
        *((f"No API key is set: {OPEN}.",) if is_open else ()),
        "",
        "Next, in another terminal:",
        "  for you          kb add ~/Documents  (or a note: kb addnote 'the key is under the mat')",
        "                   kb search where is the key",
        *agents,
        "  at each login    kb service install  (starts kb in the background)",
        "",
        *((f"In a browser: {url}",) if "web" in apps else ()),
        f"HTTP API: {url}/docs. To see a log, set KB_LOG_LEVEL=info.",
    )
    print("\n".join(lines), file=sys.stderr, flush=True)
