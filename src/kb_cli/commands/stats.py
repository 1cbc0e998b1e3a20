"""kb stats."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json

if TYPE_CHECKING:
    from kb.client.client import EngineClient

DAYS = (1, 7, 30, 365)
MOST_TAGS = 10


def stats(json: Json = False) -> None:
    """Count documents by type, tag and time of addition."""
    answer = call(fetch)
    if json:
        output.print_json(answer)
        return
    output.print_fields(
        {
            "documents": sum(answer["types"].values()),
            "passages": answer["passages"],
            **{f"added in {days} day{'s' * (days > 1)}": answer["added"][str(days)] for days in DAYS},
        }
    )
    by_count = sorted(answer["types"].items(), key=lambda pair: -pair[1])
    for header, rows in ((("TYPE", "DOCUMENTS"), by_count), (("TAG", "DOCUMENTS"), answer["tags"][:MOST_TAGS])):
        if rows:
            output.write("\n")
            output.print_table(header, rows)


async def fetch(client: "EngineClient") -> dict[str, Any]:
    """Return the numbers of documents and passages."""
    status = await client.status()
    tags = (await client.tags())["tags"]
    now = datetime.now().astimezone()
    added = {
        str(days): await client.count_documents(created_after=(now - timedelta(days=days)).isoformat()) for days in DAYS
    }
    by_count = sorted(((row["tag"], row["branch"]) for row in tags), key=lambda pair: (-pair[1], pair[0]))
    return {"types": status["documents"], "passages": status["chunks"], "added": added, "tags": by_count}
