"""Detect renamed and moved files: their documents keep their ids, dates and tags."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from kb.api.errors import KbError
from kb.client.client import EngineClient
from kb_cli.runtime import exit_codes
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.remote_files import RemoteFile, wholes

Moves = list[tuple[FileItem, str]]
"""Files, with the source paths of their documents."""


def find_moves(
    items: Sequence[FileItem], gone: Mapping[str, int], remote: Mapping[str, RemoteFile], digests: DigestCache
) -> Moves:
    """Return the files with the content of a missing file, in an order in which their documents can move.

    A file with the same name is preferred. A file may have taken the name of another renamed file.
    """
    candidates: dict[str, list[str]] = defaultdict(list)
    for path in gone:
        if content_hash := remote[path].content_hash:
            candidates[content_hash].append(path)
    moves: Moves = []
    for item in items if candidates else ():
        paths = candidates.get(_digest(item, digests), []) if item.source_path not in remote else []
        if paths:
            best = max(paths, key=lambda path: _name(path) == _name(item.source_path))
            paths.remove(best)
            moves.append((item, best))
    left = [path for paths in candidates.values() for path in paths]
    return moves + (find_chains(items, left, moves, remote, digests) if left else [])


def find_chains(
    items: Sequence[FileItem], gone: Iterable[str], moves: Moves, remote: Mapping[str, RemoteFile], digests: DigestCache
) -> Moves:
    """Return the moves of files to names of other files that also moved, up to a new name."""
    moved = {item.source_path for item, _ in moves}
    takers: dict[str, FileItem] = {}
    for item in items:
        digest, before = _digest(item, digests), remote.get(item.source_path)
        if digest and item.source_path not in moved and (before is None or before.content_hash not in (None, digest)):
            takers.setdefault(digest, item)
    chains: Moves = []
    for path in gone:
        chain: Moves = []
        at: str | None = path
        while at and (taker := takers.pop(remote[at].content_hash or "", None)):
            chain.append((taker, at))
            at = taker.source_path if taker.source_path in remote else None
        chains += reversed(chain if at is None else [])
    return chains


async def move_documents(client: EngineClient, moves: Moves, remote: dict[str, RemoteFile]) -> None:
    """Move the documents to the new paths, also in `remote`; if the engine refuses, the file is sent again."""
    for item, path in moves:
        try:
            await client.move_document(remote[path].document_id or 0, item.source_path)
        except KbError as error:
            if exit_codes.exit_code_for(error) not in (exit_codes.REFUSED, exit_codes.NOT_FOUND):
                raise
            continue
        item.moved_from = path
        remote[item.source_path] = remote.pop(path)


def plan_moves(moves: Moves, gone: Mapping[str, int], remote: dict[str, RemoteFile]) -> None:
    """Update the paths only in `remote`, including files inside them, as the engine would."""
    targets = {path: item.source_path for item, path in moves}
    for item, path in moves:
        item.moved_from = path
        remote[item.source_path] = remote.pop(path)
    for part in (path for path in gone if path in remote and remote[path].is_part):
        if whole := max(filter(targets.__contains__, wholes(part)), key=len, default=""):
            remote[targets[whole] + part.removeprefix(whole)] = remote.pop(part)


def _digest(item: FileItem, digests: DigestCache) -> str:
    try:
        return digests.digest(item.path)
    except OSError:
        return ""


def _name(path: str) -> str:
    return PurePosixPath(path).name
