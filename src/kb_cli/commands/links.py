"""kb links."""

from typing import Annotated

from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import OK
from kb_cli.runtime.options import Id, Json, option


def links(
    document_id: Id,
    broken: Annotated[bool, option("--broken", "Only links that lead nowhere.")] = False,
    json: Json = False,
) -> int:
    """List the links to and from a document.

    Links are [[Note]], ![[embed]], Markdown links to files, kb://documents/ID, and addresses of web pages in kb. A name
    leads to the nearest document with that name, as in Obsidian.
    """
    answer = call(lambda client: client.links(document_id))
    if broken:
        answer["links"] = [link for link in answer["links"] if link["document_id"] is None]
        answer |= {"linked_from": [], "linked_from_count": 0}
    if json:
        output.print_json(answer)
        return OK
    rows = [
        ("to", link["document_id"] or "-", link["title"] or "no document", link["target"]) for link in answer["links"]
    ]
    rows += [("from", each["document_id"], each["title"], each["passage"]) for each in answer["linked_from"]]
    output.print_table(
        ("LINK", "ID", "TITLE", "TEXT"), rows, "no broken links" if broken else "no links to or from this document"
    )
    if (more := answer["linked_from_count"] - len(answer["linked_from"])) > 0:
        output.print_aside(f"and {more} more documents that link to it")
    if not answer["complete"]:
        output.print_aside("kb is still reading the links of older documents, so some may be missing")
    return OK
