"""A text in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from kb_cli.exits import LocalError, UsageError


def new_draft(text: str) -> Path:
    """A new file for the user alone that holds the text."""
    handle, name = tempfile.mkstemp(prefix="kb-note-", suffix=".md")
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
    return Path(name)


def edited(draft: Path) -> str | None:
    """What the user makes of the draft; None if nothing, and the draft is gone then.

    A line end that the editor puts behind the last line is not the user's.

    Raises:
        UsageError: no editor is named.
        LocalError: the editor fails, or leaves something that is no text.
    """
    before = draft.read_bytes()
    try:
        open_editor(draft)
    except (UsageError, LocalError):
        draft.unlink()
        raise
    after = draft.read_bytes()
    if not before.endswith(b"\n"):
        after = after.removesuffix(b"\n")
    if after == before:
        draft.unlink()
        return None
    try:
        return after.decode()
    except UnicodeDecodeError:
        raise LocalError(f"The editor left no UTF-8 text in {draft}; nothing was sent.") from None


def open_editor(file: Path) -> None:
    """Open the file in the editor that VISUAL or EDITOR names, and wait until it is closed."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not command:
        raise UsageError("Give the TEXT, or name your editor in VISUAL or EDITOR.")
    try:
        status = subprocess.run([*command, file], check=False).returncode  # noqa: S603 - the user's own editor
    except OSError as error:
        raise LocalError(f"The editor {command[0]} does not start: {error.strerror}.") from None
    if status:
        raise LocalError(f"The editor {command[0]} ended with status {status}; nothing was sent.")
