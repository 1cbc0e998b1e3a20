"""What a key may do, and with which documents."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, get_args

from kb.api.stream_safe import composed

Right = Literal["read", "write", "admin"]
"""Each holds those before it."""

RIGHTS: Final[tuple[Right, ...]] = get_args(Right)

KEY_PREFIX: Final = "kb_"
"""What keys with rights begin with, so that scanners for secrets know them."""

OF_JOB: Final = "job:"
"""What paths of attachments begin with whose message has none; the number of its job follows."""

ON_BEHALF_OF: Final = "KB-On-Behalf-Of"
"""The header by which a caller that may do anything, such as the gateway, asks with no more than a key's rights."""


OPERATION: Final = "KB-Operation"
"""The header that the requests of one command have in common, so that it can be taken back as a whole."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a key is limited to: documents with one of `tags`, if there are any, and from under `folder`, if it is set.

    Tags and paths are compared as they are written, by case, too.
    """

    tags: tuple[str, ...] = ()
    folder: str | None = None

    def __post_init__(self) -> None:
        """Have the folder spelled as paths are, also one that was kept before they were."""
        if self.folder is not None:
            object.__setattr__(self, "folder", composed(self.folder))

    def admits(self, tags: Collection[str], source_path: str | None) -> bool:
        """Return whether a document is within the limit."""
        is_tagged = not self.tags or any(tag in self.tags for tag in tags)
        return is_tagged and (self.folder is None or is_under(self.folder, source_path or ""))

    def may_take(self, source_path: str) -> bool:
        """Return whether a new document may have this path: elsewhere it would meet what others save there."""
        return self.folder is not None and is_under(self.folder, source_path) and not source_path.startswith(OF_JOB)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the name of a key, what it may do, and the documents that it is limited to, if it is.

    `is_named` tells the keys that `kb keys` makes from those of the settings.
    """

    name: str | None
    right: Right = "admin"
    limit: Limit | None = None
    is_named: bool = False

    def may(self, right: Right) -> bool:
        """Return whether the right is among the caller's."""
        return RIGHTS.index(right) <= RIGHTS.index(self.right)


ANYONE: Final = Caller(None)
"""Who calls where no key is set."""


def folder_prefix(path: str) -> str:
    """Return a folder as limits have it: with its last slash, so that `/notes` is not the beginning of `/notes2`.

    Raises:
        ValueError: it leads up again.
    """
    if _leads_up(path):
        raise ValueError("a path that a key is limited to holds no '..'")
    slash = "\\" if "\\" in path and "/" not in path else "/"
    return path if path.endswith(slash) else path + slash


def is_under(folder: str, path: str) -> bool:
    """Return whether a path lies in a folder and does not lead out of it again."""
    return path.startswith(folder) and not _leads_up(path)


def _leads_up(path: str) -> bool:
    return ".." in re.split(r"[/\\]", path)
