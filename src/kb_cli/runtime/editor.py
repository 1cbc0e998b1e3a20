"""Edit a text in the user's own editor."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kb_cli.runtime.exit_codes import LocalError, UsageError
from kb_cli.runtime.output import print_error


@contextmanager
def edit_text(text: str, command: str) -> Iterator[str | None]:
    """Yield the edited text; None if it is unchanged.

    The draft is kept until the block has succeeded. After a failure, kb prints the path of the draft and how to pass it
    to `command`.

    Raises:
        UsageError: no editor is configured, or the text is empty.
        LocalError: the editor fails, or leaves a file that is not text.
    """
    handle, name = tempfile.mkstemp(prefix="kb-note-", suffix=".md")
    draft = Path(name)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
    try:
        command_line = editor_command(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
        run_editor([*command_line, name], "; kb sent nothing.")
        yield read_draft(draft, text)
    except BaseException:
        if draft.exists() and draft.read_bytes().strip() not in (b"", text.encode().strip()):
            print_error(f"your text is in {draft}; to send it: kb {command} - < {draft}")
        else:
            draft.unlink(missing_ok=True)
        raise
    draft.unlink()


def read_draft(draft: Path, before: str) -> str | None:
    """Return the text of the draft, or None if it is unchanged.

    A line end that the editor added at the end of the file is removed.
    """
    try:
        after = draft.read_bytes().decode()
    except FileNotFoundError:
        raise LocalError("The editor deleted the file; kb sent nothing.") from None
    except UnicodeDecodeError:
        raise LocalError(f"The editor saved something other than UTF-8 text in {draft}; kb sent nothing.") from None
    if not before.endswith("\n"):
        after = after.removesuffix("\n")
    if after == before:
        return None
    if not after.strip():
        raise UsageError("The note is empty; kb sent nothing.")
    return after


def run_editor(command: list[str], consequence: str = ".") -> None:
    """Run an editor until it is closed."""
    try:
        status = subprocess.run(command, check=False).returncode  # noqa: S603 - the user's own editor
    except OSError as error:
        raise LocalError(
            f"The editor {command[0]} could not be started: {error.strerror}. Set VISUAL or EDITOR to another one."
        ) from None
    if status:
        raise LocalError(f"The editor {command[0]} ended with status {status}{consequence}")


def editor_command(editor: str) -> list[str]:
    """Return the words of a command; on Windows backslashes are literal."""
    try:
        words = shlex.split(editor, posix=os.name != "nt")
    except ValueError as error:
        raise UsageError(f"VISUAL or EDITOR: {editor!r} is not a command: {error}.") from None
    if not words:
        raise UsageError("Add the TEXT, or set VISUAL or EDITOR to your editor: 'export EDITOR=nano'.")
    return [word.strip('"') for word in words] if os.name == "nt" else words
