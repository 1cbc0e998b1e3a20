"""The files and folders that kb leaves out of a round, by reason, and the outcome of a round in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kb.folders.ignore_rules import LEFTOVER

BY_USER: Final = "kb delete --leave-out"
"""The reason for files that the user deleted in kb but not on the disk."""

ACTS: Final = ("added", "changed", "moved", "deleted", "failed")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files that kb leaves out for one reason; of `unnamed` ones, it knows only the number."""

    reason: str
    paths: Sequence[str] = ()
    unnamed: int = 0

    @property
    def count(self) -> int:
        return len(self.paths) + self.unnamed


def left_out(groups: Iterable[LeftOut], ignored: Mapping[str, int]) -> list[LeftOut]:
    """Return the groups that have files, and those of the files and folders that rules ignore, by rule."""
    groups = [
        *groups,
        LeftOut("temporary files from other programs", (), ignored.get(LEFTOVER, 0)),
        *(LeftOut(f"skipped by {name}", (), ignored[name]) for name in sorted(ignored) if name != LEFTOVER),
    ]
    return [group for group in groups if group.count]


def number_left_out(count: int) -> str:
    """Return the number of files and folders that are left out, in words."""
    return f"{'1 file or folder' if count == 1 else f'{count:,} files and folders'} left out"


def outcome_of(result: Mapping[str, Any]) -> str:
    """Return the outcome of a round, which is a `SyncReport`, in words."""
    files = "1 file" if result["files"] == 1 else f"{result['files']:,} files"
    acts = [f"{result[act]:,} {act}" for act in ACTS if result[act]]
    count = sum(group["count"] for group in result.get("left_out", ()))
    if not count:
        return f"{files}, {', '.join(acts) or 'all up to date'}"
    return f"{', '.join([files, *acts]) if acts else f'{files} up to date'}; {number_left_out(count)}"
