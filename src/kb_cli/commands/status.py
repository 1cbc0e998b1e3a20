"""kb status and kb stats."""

from datetime import datetime, timedelta
from shutil import disk_usage
from typing import Any

from kb.client.client import EngineClient
from kb.running_engine import data_folder, find_running
from kb_cli.commands.notes import summary
from kb_cli.runtime import output
from kb_cli.runtime.config import load_config
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json, counted

SHOWN_ABOVE = ("clock", "unknown objects")
"""What needs attention and has a line of its own, also with an older engine."""


def status(json: Json = False) -> None:
    """Show the engine's version, model, documents and jobs."""
    answer = call(lambda client: client.status())
    if json:
        output.print_json(answer)
    else:
        print_status(answer)


def print_status(answer: dict[str, Any]) -> None:
    """Print the engine's state; an older engine may report less."""
    from rich.filesize import decimal

    model, documents, queue = (answer.get(part) or {} for part in ("model", "documents", "queue"))
    output.print_fields(
        {
            "engine": f"{answer.get('version', 'of unknown version')} at {load_config().engine_url}",
            "model": model and "{name}, {dimensions} dimensions, {precision}".format_map(model),
            "device": answer.get("device") and f"{answer['device']} ({answer.get('provider')})",
            "documents": format_counts(documents),
            "languages": counted(answer.get("languages") or {}),
            "passages": answer.get("chunks"),
            "precisions": format_precisions(answer.get("precisions") or {}),
            "full text": answer.get("full_text"),
            "replica": format_replica(answer.get("replica")),
            "jobs": ", ".join(f"{count} {state}" for state, count in queue.items()),
            "readers": format_confined((answer.get("parser") or {}).get("confined")),
            "extractors": format_extractors(answer.get("parser") or {}),
            "clock": (answer.get("clock") or {}).get("says"),
            "unknown objects": format_foreign(answer.get("foreign") or []),
            "history": format_history(answer.get("history")),
            "notes folder": summary(answer.get("notes_folder")),
            **describe_machine(load_config().engine_url),
            "database": f"{decimal(answer.get('database_size', 0))}, schema {answer.get('schema_version')}",
        }
    )
    for item in answer.get("attention") or []:
        if item["name"] not in SHOWN_ABOVE:
            output.print_line(f"attention: {item['name']}: {item['says']} ({item['remedy']})")


def format_precisions(precisions: dict[str, int]) -> str:
    total = sum(precisions.values())
    return ", ".join(f"{vectors / total:.0%} {precision}" for precision, vectors in precisions.items())


def describe_machine(engine_url: str) -> dict[str, object]:
    from rich.filesize import decimal

    folder = data_folder()
    running = find_running(folder)
    if running is None or running.url != engine_url:
        return {}
    since = datetime.fromtimestamp(running.since).astimezone()
    hours, minutes = divmod((datetime.now().astimezone() - since) // timedelta(minutes=1), 60)
    return {
        "data folder": f"{folder}, {decimal(disk_usage(folder).free)} free",
        "up since": f"{since:%Y-%m-%d %H:%M} ({hours} h {minutes} min), process {running.pid}",
    }


def format_foreign(foreign: list[str]) -> str | None:
    """Return the database objects that kb did not create, and what to do about them, or None if there are none."""
    meaning = "kb did not create this, and it may change everything that you save; 'kb doctor' shows the remedy"
    return f"{', '.join(foreign)}: {meaning}" if foreign else None


def format_confined(confined: list[str] | None) -> str | None:
    """Return the access that kb denies to the process that reads files; None while the process starts."""
    if confined is None:
        return None
    return f"no {', no '.join(confined)}" if confined else "not confined, because this system does not support it"


def format_extractors(parser: dict[str, Any]) -> str:
    """Return the file types of the extractors, and the access that kb denies to extractors that are commands."""
    suffixes, confined = ", ".join(parser.get("extracts", [])), parser.get("extractors_confined")
    return suffixes if confined is None else f"{suffixes} ({format_confined(confined)})"


def format_replica(replica: dict[str, Any] | None) -> str | None:
    if replica is None:
        return None
    return (
        "answers searches"
        if replica["answers"]
        else f"delayed or unreachable for {replica['behind']:.0f} s; the primary answers searches"
    )


def format_history(history: dict[str, Any] | None) -> str | None:
    from rich.filesize import decimal

    if history is None:
        return None
    return f"{history['versions']} earlier versions ({decimal(history['size'])}), {history['bin']} in the bin"


def format_counts(documents: dict[str, int]) -> str:
    types = ", ".join(f"{count} {doc_type}" for doc_type, count in sorted(documents.items()))
    return f"{sum(documents.values())} ({types})" if types else "0"


DAYS = (1, 7, 30, 365)
MOST_TAGS = 10


def stats(json: Json = False) -> None:
    """Count documents by type, tag and date added."""
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


async def fetch(client: EngineClient) -> dict[str, Any]:
    status = await client.status()
    tags = (await client.tags())["tags"]
    now = datetime.now().astimezone()
    added = {
        str(days): await client.count_documents(created_after=(now - timedelta(days=days)).isoformat()) for days in DAYS
    }
    by_count = sorted(((row["tag"], row["branch"]) for row in tags), key=lambda pair: (-pair[1], pair[0]))
    return {"types": status["documents"], "passages": status["chunks"], "added": added, "tags": by_count}
