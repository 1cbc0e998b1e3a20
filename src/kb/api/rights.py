"""The rights and limits of keys."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, get_args

from kb.api.stream_safe import composed
from kb.api.tag_tree import is_in_any

Right = Literal["read", "write", "admin"]
"""Each right includes the earlier ones."""

RIGHTS: Final[tuple[Right, ...]] = get_args(Right)

OF_SETTINGS: Final = re.compile("[0-9a-f]{8}")
"""The names of keys from the settings, which other keys cannot have."""

Scope = Literal["read", "write", "offline_access"]
"""What a program can ask for over OAuth; the last one means a refresh token."""

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

KEY_PREFIX: Final = "kb_"
"""The prefix of keys with rights, by which scanners for secrets recognise them."""

OF_JOB: Final = "job:"
"""The prefix of an attachment's path if its message has no path; the number of the message's job follows."""

ON_BEHALF_OF: Final = "KB-On-Behalf-Of"
"""The header with which a caller with all rights, such as the gateway, acts with only the rights of a key."""


OPERATION: Final = "KB-Operation"
"""The header that groups the requests of one command, so that it can be undone as a whole."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a key: documents with one of `tags` or a tag below it, if any, and in `folder`, if it is set.

    Tags and paths are compared exactly, including case.
    """

    tags: tuple[str, ...] = ()
    folder: str | None = None

    def __post_init__(self) -> None:
        """Normalize the folder as paths are, because older records may have it unnormalized."""
        if self.folder is not None:
            object.__setattr__(self, "folder", composed(self.folder))

    def admits(self, tags: Collection[str], source_path: str | None) -> bool:
        is_tagged = not self.tags or is_in_any(tags, self.tags)
        return is_tagged and not self.is_outside(source_path or "")

    def is_outside(self, source_path: str) -> bool:
        """Return whether a path is outside the folder."""
        return self.folder is not None and not is_under(self.folder, source_path)

    def may_take(self, source_path: str) -> bool:
        """Return whether a new document may have this path; outside the folder, others could save at the same path."""
        return self.folder is not None and is_under(self.folder, source_path) and not source_path.startswith(OF_JOB)


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request: the name of its key, its right, and its limit, if any.

    `is_named` distinguishes the keys of `kb keys` from the keys in settings. If it `reads_all`, its limit is only for
    what it writes.
    """

    name: str | None
    right: Right = "admin"
    limit: Limit | None = None
    is_named: bool = False
    reads_all: bool = False

    @property
    def seen(self) -> Limit | None:
        """The limit of what it reads."""
        return None if self.reads_all else self.limit

    def may(self, right: Right) -> bool:
        return RIGHTS.index(right) <= RIGHTS.index(self.right)


ANYONE: Final = Caller(None)
"""The caller if no key is set."""


def folder_prefix(path: str) -> str:
    """Return a folder with a final slash, so that `/notes` is not a prefix of `/notes2`.

    Raises:
        ValueError: the path contains '..'.
    """
    if _leads_up(path):
        raise ValueError("the path that limits a key must not contain '..'")
    slash = "\\" if "\\" in path and "/" not in path else "/"
    return path if path.endswith(slash) else path + slash


def is_under(folder: str, path: str) -> bool:
    """Return whether a path is in a folder and does not leave it with `..`."""
    return path.startswith(folder) and not _leads_up(path)


def _leads_up(path: str) -> bool:
    return ".." in re.split(r"[/\\]", path)
