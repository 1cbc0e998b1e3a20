"""Folders that an agent names nearly right."""

from __future__ import annotations

from kb_mcp.tools.path_hints import same_path


class Engine:
    """Has a document of each path, of which the last came last, and lists no more than that one."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths

    async def documents(self, *, source_prefix: str, limit: int) -> dict[str, list[dict[str, str]]]:
        found = [path for path in self._paths if path.startswith(source_prefix)]
        return {"documents": [{"source_path": path} for path in found[:limit]]}

    async def document_pages(self, *_: object, **__: object):
        yield {"documents": [{"source_path": self._paths[-1]}]}


async def test_a_folder_that_is_there_is_meant_however_long_ago_it_was_filled():
    assert await same_path(Engine("notes/old.md", "Notes/new.md"), "notes/") == "notes/"


async def test_a_folder_that_is_not_there_may_be_one_in_another_case():
    assert await same_path(Engine("Notes/new.md"), "notes/") == "Notes/"
