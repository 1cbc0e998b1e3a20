"""kb tag and kb tags."""

from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.completion import complete_tags
from kb_cli.runtime.engine_call import call, report_each
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Ids, Json, Why, split_tags

NO_TAGS = "no document has a tag; add some with 'kb tag ID --add A,B', or with --tags when you add documents"


def tag(
    ids: Ids,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Tags to add, such as house,roof.", autocompletion=complete_tags),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Tags to remove, such as todo.", autocompletion=complete_tags),
    ] = None,
    why: Why = None,
    json: Json = False,
) -> int:
    """Add or remove tags of documents.

    With --json, prints a list of the documents.
    """
    new, old = split_tags(add), split_tags(remove)
    if not (new or old):
        raise UsageError("Name the tags to change: --add A,B or --remove A,B.")
    return report_each(
        dict.fromkeys(ids),
        lambda client, document_id: client.change_tags(document_id, add=new, remove=old, why=why),
        lambda document: f"document {document['id']}: {output.format_tags(document) or 'no tags'}",
        json=json,
    )


def tags(json: Json = False) -> None:
    """List all tags, each with its number of documents."""
    answer = call(lambda client: client.tags())
    output.print_list(answer, "tags", {"TAG": "tag", "DOCUMENTS": "documents"}, NO_TAGS, json=json)
