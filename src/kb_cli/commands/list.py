"""kb list."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import typer

from kb_cli.runtime import output
from kb_cli.runtime.call import call
from kb_cli.runtime.options import AsOf, Filters, IdsOnly, Json, parse_moment, with_filters


@with_filters
def list_(
    *,
    filters: Filters,
    recent: Annotated[bool, typer.Option("--recent", help="The last added or changed first.")] = False,
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many documents at most.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="All documents there are.")] = False,
    as_of: AsOf = None,
    ids: IdsOnly = False,
    json: Json = False,
) -> None:
    """List documents.

    Outside a terminal one a line, with tabs between the columns. Tags must all match. The date is the one that a
    document gives itself; without one it is when it was added or last changed.
    """
    query = filters.to_request("tag") | {"sort": "recent" if recent else None, "as_of": parse_moment(as_of)}
    answer = call(lambda client: join(client.document_pages(None if everything else limit, **query)))
    if json:
        output.print_json(answer)
    elif ids:
        output.write("".join(f"{document['id']}\n" for document in answer["documents"]))
    else:
        print_documents(answer["documents"])


async def join(pages: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    """Return pages of documents as if they were one."""
    documents: list[dict[str, Any]] = []
    async for page in pages:
        documents += page["documents"]
    return page | {"documents": documents}


def print_documents(documents: list[dict[str, Any]]) -> None:
    """Print documents, one a line."""
    output.print_table(
        ("ID", "TYPE", "DATE", "TITLE", "TAGS", "SOURCE PATH"),
        [
            (
                document["id"],
                document["doc_type"],
                document.get("date") or output.format_time(document["updated_at"] or document["created_at"]),
                document["title"],
                output.format_tags(document),
                document["source_path"],
            )
            for document in documents
        ],
    )
