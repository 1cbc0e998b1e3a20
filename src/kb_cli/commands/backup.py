"""kb backup."""

from pathlib import Path
from typing import Annotated, Any

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.completion import complete_actions
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import argument, option
from kb_cli.runtime.progress import status_line

VERIFY, RESTORE = "verify", "restore"
UNSEALED = {
    "unsealed": "not sealed: anyone with write access may have changed it",
    "unchecked": "sealed, but kb cannot check the seal: KB_BACKUP_KEY is not set",
}


def backup(
    words: Annotated[
        list[str] | None,
        argument(
            "[verify|restore] [DIR|FILE.tar]",
            "The folder or .tar file to write, verify or restore, such as ~/backups/kb.",
            complete=complete_actions(VERIFY, RESTORE),
        ),
    ] = None,
    keep: Annotated[
        int | None, option("--keep N", "The number of backups to keep in DIR, instead of KB_BACKUP_KEEP.", min=1)
    ] = None,
    unsealed: Annotated[
        bool, option("--unsealed", "Restore a backup without a seal even if KB_BACKUP_KEY is set.")
    ] = False,
    unverified: Annotated[
        bool, option("--unverified", "Restore a sealed backup even if KB_BACKUP_KEY is not set.")
    ] = False,
    without_damaged: Annotated[
        bool, option("--without-damaged", "Leave out damaged files, and restore everything else.")
    ] = False,
) -> int:
    """Back up KB_DATA_DIR, or verify or restore a backup.

    The engine can keep running. DIR (by default KB_BACKUP_DIR) contains several backups, which share their files.
    'kb backup verify DIR' reads all of them, restores the newest one to a temporary folder and searches it.

    'kb backup restore DIR' replaces the data in KB_DATA_DIR with the newest backup. Stop the engine first. kb unpacks
    and verifies the backup before it changes anything, moves the old data to another folder and prints its path.
    """
    settings = require("kb.settings").Settings.read()
    words = words or []
    action = words[0] if words and words[0] in (VERIFY, RESTORE) else None
    paths = [Path(word).absolute() for word in words[bool(action) :]] or [settings.backup_dir]
    if len(paths) > 1 or paths[0] is None:
        raise exit_codes.UsageError("Name one folder or .tar file, or set KB_BACKUP_DIR.")
    if action == RESTORE:
        return restore_backup(paths[0], unsealed=unsealed, unverified=unverified, without_damaged=without_damaged)
    return verify(settings, paths[0]) if action else make(settings, paths[0], keep or settings.backup_keep)


def make(settings: Any, path: Path, keep: int) -> int:  # noqa: ANN401 - the engine's
    with status_line(quiet=False) as show_status:
        show_status(f"backing up to {path}")
        made = require("kb.backup.make").back_up(settings, path, keep)
    manifest = made.manifest
    seal = "sealed" if settings.backup_key else "not sealed (KB_BACKUP_KEY is not set)"
    output.print_line(
        f"{made.path}: {manifest.counts['documents']} documents,"
        f" {len(manifest.objects)} files ({made.added} copied), {seal}"
    )
    for warning in made.warnings:
        output.print_error(warning)
    return exit_codes.FAILURE if manifest.missing or made.damaged else exit_codes.OK


def verify(settings: Any, path: Path) -> int:  # noqa: ANN401 - the engine's
    restore = require("kb.backup.restore")
    with status_line(quiet=False) as show_status:
        faults = list(restore.verify_backups(path, show_status, None, settings.backup_key, settings.files_dir))
        seals = list(restore.seals(path, settings.backup_key))
    for line in faults or [f"{path}: no fault"]:
        output.print_line(line)
    for name, seal in seals:
        if seal != "sealed":
            output.print_line(f"{name}: {UNSEALED[seal]}")
    return exit_codes.FAILURE if faults else exit_codes.OK


def restore_backup(path: Path, **accepted: bool) -> int:
    """Replace the data with the newest backup at a path, and return the exit code.

    Args:
        path: the folder or archive.
        accepted: the flags of `kb.backup.restore.restore_backup`.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        restored = require("kb.backup.restore").restore_backup(settings, path, show_status, **accepted)
    seal = {"sealed": "sealed", "unsealed": "not sealed", "unchecked": "seal not checked"}[restored.seal]
    output.print_line(f"restored {restored.name} from {restored.manifest.made_at} ({seal})")
    for folder in restored.set_aside:
        output.print_line(f"the previous data is in {folder}; delete it if you do not need it")
    for name in restored.left_out:
        output.print_error(f"{name}: restored without its file, which is damaged in the backup")
    if not (settings.data_dir / "keys.json").exists():
        output.print_line("a backup contains no keys with rights: make them again with 'kb keys make', if you use any")
    return exit_codes.FAILURE if restored.left_out else exit_codes.OK
