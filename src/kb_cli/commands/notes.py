"""kb notes."""

import sys
from typing import Annotated, Any, Literal, get_args

import typer

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import LocalError, UsageError
from kb_cli.runtime.options import NO_TERMINAL, Json, Yes, argument

Action = Literal["status", "delete", "restore"]
OFF = "the engine has no notes folder; set KB_NOTES_DIR, then restart the engine"


def notes(
    action: Annotated[Action, argument("|".join(get_args(Action)), "What to do (see above).")] = "status",
    folder: Annotated[str, argument("FOLDER", "A folder added with 'kb watch add --both'.")] = "",
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Show the notes folder, or decide what to do about missing files.

    With KB_NOTES_DIR, the engine keeps a Markdown file for each note in a folder, and you can edit either. If many
    files go missing at once, it waits until you decide: 'delete' moves their notes to the bin, 'restore' writes the
    files again. To decide about a folder that you added with 'kb watch add --both', add its name. Exit code 1 means
    that kb needs your attention.
    """
    if action == "status":
        answer = call(lambda client: client.status()).get("notes_folder")
    else:
        if action == "delete" and not yes:
            confirm()
        answer = call(lambda client: client.decide_about_missing_files(action, folder))
    if answer is None:
        raise LocalError(OFF)
    if json:
        output.print_json(answer)
    else:
        output.print_fields(described(answer))
    return exit_codes.FAILURE if answer["stopped"] or answer["withheld"] or answer["trouble"] else exit_codes.OK


def confirm() -> None:
    """Ask whether to delete the notes of the missing files."""
    if not sys.stdin.isatty():
        raise UsageError(NO_TERMINAL)
    if not typer.confirm("Delete the notes of all missing files? They stay in the bin for a while.", err=True):
        raise typer.Exit


def described(folder: dict[str, Any]) -> dict[str, object]:
    return {
        "folder": folder["path"] if folder["held"] else f"{folder['path']}, managed by another engine",
        "files": progress(folder),
        "to write": folder["waiting"] or None,
        "trouble": " ".join(folder["trouble"]) or folder["stopped"],
        "not deleted": " ".join(folder["withheld"]),
        "conflicts": "; ".join(folder["conflicts"]),
        "problems": "; ".join(f"{problem['path']}: {problem['reason']}" for problem in folder["problems"]),
    }


def progress(folder: dict[str, Any]) -> str:
    """Return the number of files, and how many of them kb has read while it reads them."""
    files, to_read = folder["files"], folder["to_read"]
    return f"{files - to_read:,} of {files:,}" if to_read else f"{files:,}"


def summary(folder: dict[str, Any] | None) -> str | None:
    """Return the folder and its state in one line, or None without a folder."""
    if folder is None:
        return None
    parts = [f"{progress(folder)} files"]
    if folder["waiting"]:
        parts.append(f"{folder['waiting']} to write")
    if folder["conflicts"]:
        parts.append(f"{len(folder['conflicts'])} conflicts")
    if folder["problems"]:
        parts.append(f"{len(folder['problems'])} problems")
    trouble = folder["trouble"] or ([folder["stopped"]] if folder["stopped"] else folder["withheld"])
    return f"{folder['path']}: {', '.join(parts)}{' - ' if trouble else ''}{' '.join(trouble)}"
