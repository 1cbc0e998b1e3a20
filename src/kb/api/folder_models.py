"""The folders that are kept in step, as they are sent and answered."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kb.api.models import Reply, Request, SourcePath, Timestamp

Name = Annotated[str, Field(min_length=1, max_length=255)]


class FolderClaim(Request):
    """A folder on a machine that is kept in step from now on, under a name that no other folder has.

    `prefix` is how the paths of its files begin. `mounts` says on which device it is, and which folders below it are
    on another. `take_over` lets it have the name of another one.
    """

    prefix: SourcePath
    machine: Name
    host: Name
    path: SourcePath
    mounts: Annotated[str, Field(max_length=100_000)] = ""
    take_over: bool = False


class SyncedFolder(Reply):
    """A folder that is kept in step, the machine that it is on, and when it was last."""

    prefix: str
    machine: str
    host: str
    path: str
    mounts: str
    at: Timestamp


class SyncedFolders(Reply):
    """The folders that are kept in step, and the paths of files in them that stay out."""

    folders: list[SyncedFolder]
    left_out: list[str]
