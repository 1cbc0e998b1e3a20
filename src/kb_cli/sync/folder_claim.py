"""Claim the name of a synced folder: it belongs to one folder on one machine."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import getnode, uuid4

from kb.api.errors import FolderTaken
from kb.client.client import EngineClient
from kb.folders.deletions import parsed
from kb.folders.disk_view import ABSENT, describe_mounts
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.last_search import state_folder

if TYPE_CHECKING:
    from kb_cli.sync.folder import Folder

FILE: Final = "machine-id"


@dataclass
class Claim:
    """The known state of a synced folder.

    Args:
        mounts: its devices after the last sync.
        left_out: the source paths of files to skip.
        owner: the machine that has the name.
        doubt: the refusal to raise unless the files match the documents; name and disk could belong to a clone.
    """

    mounts: str = ""
    left_out: frozenset[str] = frozenset()
    owner: str = ""
    doubt: UsageError | None = None


async def look_up(client: EngineClient, folder: Folder) -> Claim:
    """Return the known state of a folder without claiming it.

    Raises:
        UsageError: its name belongs to another folder.
    """
    known = await client.folders()
    mine, claimed = machine_id(), Claim(left_out=frozenset(known["left_out"]))
    for synced in known["folders"]:
        if synced["prefix"] != folder.prefix:
            continue
        refusal = None if folder.take_over else taken(folder, synced["path"], synced["host"])
        if refusal and not is_mine(synced, folder, mine):
            raise refusal
        if is_from_here(synced, mine) and synced["path"] == str(folder.path.resolve()):
            claimed.mounts = synced["mounts"]
        claimed.owner, claimed.doubt = synced["machine"], refusal if synced["machine"] != mine else None
    return claimed


async def claim(client: EngineClient, folder: Folder, mounts: str, owner: str = "") -> None:
    """Register the folder and its devices with the engine.

    Args:
        mounts: the devices.
        owner: another machine that may lose the name.

    Raises:
        UsageError: its name belongs to another folder.
    """
    request = {
        "prefix": folder.prefix,
        "machine": machine_id(),
        "host": host_name(),
        "path": str(folder.path.resolve()),
        "mounts": mounts,
    }
    try:
        await client.claim_folder(**request, take_over=folder.take_over)
    except FolderTaken as error:
        is_right = error.extra["prefix"] == folder.prefix and error.extra["machine"] in (request["machine"], owner)
        if not is_right or not is_mine(error.extra, folder, request["machine"]):
            raise taken(folder, str(error.extra["path"]), str(error.extra["host"])) from None
        await client.claim_folder(**request, take_over=True)


def is_mine(known: dict[str, Any], folder: Folder, machine: str) -> bool:
    """Return whether a name belongs to this folder, or to one of this machine that no longer exists.

    If the machine ID differs, the name could belong to a clone of this machine; only the files can show that.
    """
    is_same = is_from_here(known, machine) and known["path"] == str(folder.path.resolve())
    return is_same or has_moved(known, machine)


def has_moved(known: dict[str, Any], machine: str) -> bool:
    """Return whether a folder was on this machine and no longer exists, although its disk is there."""
    return is_from_here(known, machine) and is_gone(known["path"]) and is_disk_here(known)


def is_gone(path: str) -> bool:
    """Return whether nothing exists at a path; unreadable paths count as existing."""
    try:
        Path(path).stat()
    except OSError as error:
        return error.errno in ABSENT
    except ValueError:  # not a valid path on this system
        return False
    return False


def is_from_here(known: dict[str, Any], machine: str) -> bool:
    """Return whether a folder is on this machine, and not on another one with a copy of its home folder.

    Two of three must match: the machine ID in the home folder, the host name, and the number of the disk. A machine may
    be renamed, and a home folder may be recreated, for example in a container.
    """
    is_same_home, is_same_name = bool(known["machine"] == machine), bool(known["host"] == host_name())
    if is_same_home == is_same_name:
        return is_same_home  # do not look at the disks of other folders: they may belong to anyone
    return " " in parsed(known["mounts"]).get("", "") and is_disk_here(known)


def is_disk_here(known: dict[str, Any]) -> bool:
    """Return whether the disk of a folder is at the same mount point as before, as far as that can be known."""
    try:
        now = parsed(describe_mounts(Path(known["path"])))
    except (OSError, ValueError, RuntimeError):  # not a valid path on this system, or a loop of links
        return False
    return now.get("") == parsed(known["mounts"]).get("")


def host_name() -> str:
    return socket.gethostname() or "this machine"


def taken(folder: Folder, path: str, host: str) -> UsageError:
    return UsageError(
        f"{folder.prefix.rstrip('/')} is already the name of {path} on {host}; two folders with one name would undo"
        " each other's changes. Choose another name for this folder (--as NAME), or take over this name (--take-over)."
    )


def machine_id() -> str:
    file = state_folder() / FILE
    try:
        if known := file.read_text().strip():
            return known[:64]
    except (OSError, ValueError):
        pass
    made = uuid4().hex
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(made)
    except OSError:
        return f"{socket.gethostname()}-{getnode():x}"
    return made
