"""The documents that paths name, wherever a command takes the id of a document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NewType

from kb.api.errors import NotFound
from kb.api.web_address import is_page, page_address
from kb_cli.runtime.exit_codes import UsageError

if TYPE_CHECKING:
    from kb.client.client import EngineClient

DocumentId = NewType("DocumentId", int)
"""The id of a document; on the command line also its path, as kb prints it, or its file."""


def id_at(path: str) -> int:
    """Return the id of the document at a path. Raises `NotFound` and `UsageError`."""
    from kb_cli.runtime.engine_call import call

    return call(lambda client: find_id(client, path))


async def find_id(client: EngineClient, path: str) -> int:
    """Return the id of the document with a source path, or from a file on this machine."""
    async for source_path in possible_paths(client, path):
        documents = (await client.documents(source_path=source_path))["documents"]
        if len(documents) > 1:
            ids = ", ".join(str(document["id"]) for document in documents)
            raise UsageError(f"Several documents come from {source_path}. Use one of their IDs: {ids}.")
        if documents:
            return int(documents[0]["id"])
    raise NotFound(f"No document comes from {path}. 'kb list --name' finds documents by file name.")


async def possible_paths(client: EngineClient, path: str) -> AsyncIterator[str]:
    """Yield the possible source paths of a path, the most likely first."""
    yield path
    if is_page(path):
        yield page_address(path)
        return
    from kb_cli.runtime.files import to_source_path
    from kb_cli.sync.folder_names import fetch_names

    yield (await fetch_names(client)).source_path(path)
    yield to_source_path(path)
