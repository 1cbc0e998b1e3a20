"""kb bin."""

from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.call import call
from kb_cli.runtime.options import Json


def bin_(
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many documents at most.")] = 50,
    json: Json = False,
) -> None:
    """List what can be restored, the last deleted first."""
    answer = call(lambda client: client.bin(limit=limit))
    if json:
        output.print_json(answer)
        return
    output.print_table(
        ("ID", "DELETED", "BY", "WHY", "UNTIL", "TITLE", "SOURCE PATH"),
        [
            (
                document["id"],
                output.format_time(document["deleted_at"]),
                document["by"],
                document["why"],
                output.format_time(document["expires_at"]),
                document["title"],
                document["source_path"],
            )
            for document in answer["documents"]
        ],
        "the bin is empty",
    )
