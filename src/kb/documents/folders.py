"""Which folder is kept in step under a name: one at a time, on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.api.errors import FolderTaken

if TYPE_CHECKING:
    from kb.store.protocol import Store
    from kb.store.rows import SyncedFolder


def claim(store: Store, folder: SyncedFolder, *, take_over: bool) -> None:
    """Let a folder be kept in step under its prefix.

    Raises:
        FolderTaken: another one is, and it is not to be taken over; the message says which one.
    """
    with store.write() as tx:
        others = [each for each in tx.folders.all() if is_in_conflict(folder, each)]
        if others and not take_over:
            [first, *_] = others
            raise FolderTaken(
                f"{first.prefix.rstrip('/')!r} is already the name of {first.path} on {first.host}, which was kept in"
                f" step last at {first.at}.",
                extra={
                    "machine": first.machine,
                    "host": first.host,
                    "path": first.path,
                    "prefix": first.prefix,
                    "mounts": first.mounts,
                },
            )
        for each in others:
            tx.folders.remove(each.prefix)
        tx.folders.put(folder)


def is_in_conflict(one: SyncedFolder, other: SyncedFolder) -> bool:
    """Return whether two folders would change the same documents and are not the same files."""
    outer, inner = sorted((one, other), key=lambda each: len(each.prefix))
    if not inner.prefix.startswith(outer.prefix):
        return False
    place = inner.prefix.removeprefix(outer.prefix).rstrip("/")
    return one.machine != other.machine or inner.path != "/".join(filter(None, (outer.path.rstrip("/"), place)))
