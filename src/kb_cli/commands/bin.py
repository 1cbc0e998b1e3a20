"""kb bin."""

from typing import Annotated

from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json, option

COLUMNS: output.Columns = {
    "ID": "id",
    "DELETED": "deleted_at",
    "BY": "by",
    "WHY": "why",
    "UNTIL": "expires_at",
    "TITLE": "title",
    "SOURCE PATH": "source_path",
}


def bin_(
    limit: Annotated[int, option("-n N", "The maximum number of documents.", min=1)] = 50,
    json: Json = False,
) -> None:
    """List the documents in the bin, the last deleted first."""
    answer = call(lambda client: client.bin(limit=limit))
    output.print_list(answer, "documents", COLUMNS, "the bin is empty", json=json)
