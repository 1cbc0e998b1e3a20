"""kb duplicates."""

from typing import Annotated, Any

from kb.client.client import EngineClient
from kb.wording import describe_shared
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call_async
from kb_cli.runtime.options import Json, option

NONE = "no duplicates"


def duplicates(
    near: Annotated[bool, option("--near", "List documents with nearly the same text.")] = False, json: Json = False
) -> int:
    """List documents with the same content or nearly the same text.

    The newest come first, or with --near the most similar. The list leaves out attachments and, with --near, groups
    that you dismissed. --near compares all documents, which can take minutes. kb deletes nothing: use 'kb delete', or
    the Duplicates page in the web interface, where you can see the differences and dismiss groups.
    """
    groups = call_async(lambda client: find(client, "near" if near else "same"))
    if json:
        output.print_json({"groups": groups})
    elif groups:
        for group in groups:
            output.print_line(f"{group['total']} documents with {describe_shared(group['total'], group['shared'])}")
            for document in group["documents"]:
                output.print_line(f"  {document['id']}  {document['source_path'] or document['title']}")
    else:
        output.print_error(NONE)
    return exit_codes.OK if groups else exit_codes.FAILURE


async def find(client: EngineClient, kind: str) -> list[dict[str, Any]]:
    """Return the groups of all pages; of near duplicates, the most alike first."""
    groups = [group async for page in client.iter_duplicates(kind) for group in page["groups"]]
    return sorted(groups, key=lambda group: -(group["shared"] or 0))
