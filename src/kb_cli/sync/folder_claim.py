"""A name of a synced folder belongs to one folder on one machine."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import getnode, uuid4

from kb.api.errors import FolderTaken
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.last_search import state_folder
from kb_cli.sync.deletions import parsed
from kb_cli.sync.disk_view import ABSENT, describe_mounts

if TYPE_CHECKING:
    from kb.client.client import EngineClient
    from kb_cli.sync.folder import Folder

FILE: Final = "machine-id"


@dataclass
class Claim:
    """A folder that is kept in step under its name.

    Args:
        mounts: on which devices it was when it was last in step.
        left_out: the source paths of files that stay out.
        owner: the machine that has the name.
        doubt: the refusal that holds unless the files are those of the documents: name and disk could be a twin's.
    """

    mounts: str = ""
    left_out: frozenset[str] = frozenset()
    owner: str = ""
    doubt: UsageError | None = None


async def look_up(client: EngineClient, folder: Folder) -> Claim:
    """Return what is known of a folder, without claiming it.

    Raises:
        UsageError: its name belongs to another one.
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
    """Let the engine know that a folder is kept in step from here, and on which devices it is.

    Args:
        client: the way to the engine.
        folder: it.
        mounts: the devices.
        owner: the machine that had the name and may lose it, beside this one.

    Raises:
        UsageError: its name belongs to another one.
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
    """Return whether a name belongs to this folder, or to one of this machine that is there no more.

    Where the machine has another note, a twin of this one could be meant, which only the files tell.
    """
    is_same = is_from_here(known, machine) and known["path"] == str(folder.path.resolve())
    return is_same or has_moved(known, machine)


def has_moved(known: dict[str, Any], machine: str) -> bool:
    """Return whether a folder was on this machine and is there no more, although its disk is."""
    return is_from_here(known, machine) and is_gone(known["path"]) and is_disk_here(known)


def is_gone(path: str) -> bool:
    """Return whether nothing is at a path; what one may not look at is there."""
    try:
        Path(path).stat()
    except OSError as error:
        return error.errno in ABSENT
    except ValueError:  # no path of this system
        return False
    return False


def is_from_here(known: dict[str, Any], machine: str) -> bool:
    """Return whether a folder is one of this machine, and not of another one that has a copy of its home folder.

    Two of three must be the same: what this machine has noted in the home folder, its name, and the disk, by its
    number. A machine may get another name, and a home folder may be made anew, as in a container.
    """
    is_same_home, is_same_name = bool(known["machine"] == machine), bool(known["host"] == host_name())
    if is_same_home == is_same_name:
        return is_same_home  # other folders' disks are not looked at: they may be anybody's
    return " " in known_device(known) and is_disk_here(known)


def is_disk_here(known: dict[str, Any]) -> bool:
    """Return whether the disk that a folder was on is where it was, as far as that can be known."""
    try:
        now = parsed(describe_mounts(Path(known["path"])))
    except (OSError, ValueError, RuntimeError):  # no path of this system, or links that lead round in a circle
        return False
    return now.get("") == parsed(known["mounts"]).get("")


def known_device(known: dict[str, Any]) -> str:
    """Return where the disk of a folder was, and its number if it had one."""
    return parsed(known["mounts"]).get("", "")


def host_name() -> str:
    """Return what this machine is called."""
    return socket.gethostname() or "this machine"


def taken(folder: Folder, path: str, host: str) -> UsageError:
    """Return the refusal of a name that another folder has."""
    return UsageError(
        f"{folder.prefix.rstrip('/')} is the name of {path} on {host} already: two folders under one name would undo"
        " each other's changes. Give this one another name (--as), or let it have this one from now on (--take-over)."
    )


def machine_id() -> str:
    """Return what tells this machine from others, made when it is first asked for."""
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
