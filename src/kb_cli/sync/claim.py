"""A name of a synced folder belongs to one folder on one machine."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import getnode, uuid4

from kb.api.errors import FolderTaken, KbError
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.last_search import state_folder
from kb_cli.sync.deletions import parsed
from kb_cli.sync.disk import ABSENT, describe_mounts

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
    """

    mounts: str = ""
    left_out: frozenset[str] = frozenset()
    is_known: bool = True


async def look_up(client: EngineClient, folder: Folder) -> Claim:
    """Return what is known of a folder, without claiming it.

    Raises:
        UsageError: its name belongs to another one.
    """
    try:
        known = await client.folders()
    except KbError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return Claim(is_known=False)  # an engine that keeps no folders
    mine = machine_id()
    for each in known["folders"]:
        if each["prefix"] == folder.prefix and not folder.take_over and not is_mine(each, folder, mine):
            raise taken(folder, each["path"], each["host"])
    own = [each for each in known["folders"] if each["prefix"] == folder.prefix and is_from_here(each, mine)]
    at = str(folder.path.resolve())
    return Claim(next((each["mounts"] for each in own if each["path"] == at), ""), frozenset(known["left_out"]))


async def claim(client: EngineClient, folder: Folder, mounts: str) -> None:
    """Let the engine know that a folder is kept in step from here, and on which devices it is.

    Raises:
        UsageError: its name belongs to another one.
    """
    wanted = {
        "prefix": folder.prefix,
        "machine": machine_id(),
        "host": host_name(),
        "path": str(folder.path.resolve()),
        "mounts": mounts,
    }
    try:
        await client.claim_folder(**wanted, take_over=folder.take_over)
    except FolderTaken as error:
        if not is_mine(error.extra, folder, wanted["machine"]) or error.extra["prefix"] != folder.prefix:
            raise taken(folder, str(error.extra["path"]), str(error.extra["host"])) from None
        await client.claim_folder(**wanted, take_over=True)


def is_mine(known: dict[str, Any], folder: Folder, machine: str) -> bool:
    """Return whether a name belongs to this folder, or to one of this machine that is there no more."""
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
    return " " in device_of(known) and is_disk_here(known)


def is_disk_here(known: dict[str, Any]) -> bool:
    """Return whether the disk that a folder was on is where it was, as far as that can be known."""
    try:
        now = parsed(describe_mounts(Path(known["path"])))
    except (OSError, ValueError, RuntimeError):  # no path of this system, or links that lead round in a circle
        return False
    return "mounts" in known and now.get("") == parsed(known["mounts"]).get("")


def device_of(known: dict[str, Any]) -> str:
    """Return where the disk of a folder was, and its number if it had one."""
    return parsed(known.get("mounts", "")).get("", "")


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
