"""kb upgrade: how to get a newer kb here, and what its first start does to the database."""

import sys
from pathlib import Path
from typing import Annotated, Final

from kb import __version__
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import Json, option

WAYS: Final = (
    ("pipx/venvs", "pipx install --force kb_local-NEW.whl"),
    ("uv/tools", "uv tool install --force kb_local-NEW.whl"),
    ("Cellar", "brew upgrade kb"),
    (".local/lib/kb", "make install (in the clone of the new version)"),
    (".venv", "git pull && make setup (in the clone)"),
)
"""Parts of the path of an environment, and the command that brings a new version into it."""

OTHERWISE: Final = "pip install --upgrade kb_local-NEW.whl (in this environment)"


def upgrade(
    check: Annotated[bool, option("--check", "Only check the database; fail if this version cannot use it.")] = False,
    json: Json = False,
) -> int:
    """Show how to upgrade kb, and what the next start does to the database.

    It changes nothing, and it does not look up the newest version: kb never connects to the internet to do that. Run
    'kb upgrade --check' after you install a new version and before you start it.
    """
    start = require("kb.store.sqlite.next_start").next_start(data_settings())
    environment = Path(sys.prefix)
    if json:
        output.print_json({"version": __version__, "possible": start.is_possible, "next_start": start.sentence})
    else:
        if not check:
            output.print_line(f"This is kb {__version__} in {output.abbreviate_home(str(environment))}.")
            output.print_line(f"To upgrade it: {way(environment)}.")
            output.print_line("Then run 'kb service install', or start 'kb serve' again.")
        output.print_line(start.sentence)
    return exit_codes.OK if start.is_possible else exit_codes.FAILURE


def way(environment: Path) -> str:
    """Return the command that upgrades an environment."""
    return next((command for part, command in WAYS if f"/{part}" in environment.as_posix()), OTHERWISE)
