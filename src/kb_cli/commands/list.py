"""kb list."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, get_args

from kb.client.client import EngineClient
from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import EMPTY, FilterOptions, IdsOnly, Json, explain_nothing, option, with_options

Order = Literal["recent", "oldest", "added", "date", "title", "path"]


@with_options
def list_(
    *,
    filters: FilterOptions,
    sort: Annotated[Order, option("--sort ORDER", f"The order: {', '.join(get_args(Order))}.")] = "recent",
    oldest: Annotated[bool, option("--oldest", "", hidden=True)] = False,
    recent: Annotated[bool, option("--recent", "", hidden=True)] = False,
    limit: Annotated[int, option("-n N", "The maximum number of documents.", min=1)] = 50,
    everything: Annotated[bool, option("--all", "List all documents, however many there are.")] = False,
    ids: IdsOnly = False,
    json: Json = False,
) -> None:
    """List documents, most recently added or changed first.

    The date is the document's own or, if it has none, the day on which it was added or last changed. If you
    pipe or redirect the output, each document is one line, with tabs between the columns.
    """
    query = filters.to_request("tag")
    order = "id" if sort == "added" or (oldest and not recent) else sort
    answer = call(lambda client: fetch(client, None if everything else limit, query, order))
    documents = answer["documents"]
    if ids and not json:
        output.write("".join(f"{document['id']}\n" for document in documents))
    elif documents or json:
        output.print_list(answer, "documents", COLUMNS, json=json)
    if documents and len(documents) < answer["total"] and not json:
        output.print_error(f"{len(documents)} of {answer['total']} documents; --all lists all")
    elif not documents and not (json or ids):
        output.print_error(explain_nothing(filters) or EMPTY)


async def fetch(client: EngineClient, limit: int | None, query: dict[str, Any], sort: str) -> dict[str, Any]:
    """Return all pages of documents as one, with the number of matching documents as `total`."""
    answer = await join(client.document_pages(limit, **query, sort=sort))
    number = len(answer["documents"])
    return answer | {"total": await client.count_documents(**query) if answer["next_cursor"] else number}


async def join(pages: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    documents: list[dict[str, Any]] = []
    async for page in pages:
        documents += page["documents"]
    return page | {"documents": documents}


def date_of(document: dict[str, Any]) -> str | None:
    """Return the date in the document, or the date on which it was last changed or added."""
    changed = document["updated_at"] or document["created_at"]
    return output.format_date(document.get("date")) or output.format_time(changed)


COLUMNS: output.Columns = {
    "ID": "id",
    "TYPE": "doc_type",
    "DATE": date_of,
    "TITLE": "title",
    "TAGS": output.format_tags,
    "SOURCE PATH": "source_path",
}
