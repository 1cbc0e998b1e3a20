"""The messages of `kb serve` for a person at a terminal, shown instead of a log."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from kb import __version__
from kb_cli.runtime.output import abbreviate_home


def is_for_person(environment: Mapping[str, str]) -> bool:
    """Return whether a person reads the log live and has not configured another one."""
    return sys.stderr.isatty() and not (environment.get("KB_LOG_LEVEL") or environment.get("KB_LOG_FORMAT"))


def print_starting(folder: Path) -> None:
    is_first = not (folder / "models").is_dir()
    why = "; the first start downloads the model, which takes up to a minute" if is_first else ""
    print(f"Starting kb {__version__}{why} …", file=sys.stderr)


OPEN = (
    "every account and program on this machine can read and change your data;"
    " set KB_API_KEY and KB_MCP_API_KEY to prevent this"
)
"""The risk of running without a key."""


def print_ready(url: str, folder: Path, apps: Iterable[str], *, is_open: bool) -> None:
    agents = ("  kb mcp                                 (shows how to connect your agents)",) if "mcp" in apps else ()
    lines = (
        f"kb is ready at {url} (Ctrl-C stops it). Its data folder is {abbreviate_home(str(folder))}.",
        *((f"No API key is set: {OPEN}.",) if is_open else ()),
        "",
        "Next, in another terminal:",
        "  kb addnote 'the key is under the mat'  or: kb add ~/Documents",
        "  kb search where is the key",
        *agents,
        "",
        f"HTTP API: {url}/docs. To see a log, set KB_LOG_LEVEL=info.",
    )
    print("\n".join(lines), file=sys.stderr, flush=True)
