"""The folders in the paths of documents, as a tree beside a list."""

import asyncio
from collections.abc import Iterator

from kb_web.document_html import Row, plain
from kb_web.sessions import Visit

DEEPEST = 8
"""Maximum number of folders on the way to the first one that has others beside it."""


async def folder_tree(visit: Visit, prefix: str) -> list[Row]:
    """Return the top folders, and those below the folders on the way to a beginning of paths, with their levels."""
    begins = ["", *(prefix[: at + 1] for at, sign in enumerate(prefix) if sign == "/")][:DEEPEST]
    replies = await asyncio.gather(*map(visit.engine.paths, begins))
    below: dict[str, list[Row]] = {begin: reply["folders"] for begin, reply in zip(begins, replies, strict=True)}
    top = ""
    while len(below[top]) == 1 and len(below) < DEEPEST and top != prefix:
        top = below[top][0]["prefix"]
        if top not in below:
            below[top] = (await visit.engine.paths(top))["folders"]
    top = top if below[top] else top.rstrip("/").rpartition("/")[0] + "/" * ("/" in top.rstrip("/"))
    return list(_rows(below, top, 0))


def _rows(below: dict[str, list[Row]], begin: str, level: int) -> Iterator[Row]:
    for folder in below.get(begin, ()):
        is_open = folder["prefix"] in below
        yield {**folder, "name": plain(folder["name"], 80) or "/", "level": min(level, 4), "is_open": is_open}
        if is_open:
            yield from _rows(below, folder["prefix"], level + 1)
