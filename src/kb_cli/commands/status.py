"""kb status."""

from typing import Any

from kb_cli.runtime import output
from kb_cli.runtime.call import ask
from kb_cli.runtime.config import read
from kb_cli.runtime.options import Json


def status(json: Json = False) -> None:
    """Show what the engine is, what is in it and what it is doing."""
    answer = ask(lambda engine: engine.status())
    if json:
        output.print_json(answer)
    else:
        show(answer)


def show(answer: dict[str, Any]) -> None:
    """Print the engine's state; an older engine may say less of itself."""
    from rich.filesize import decimal

    model, documents, queue = (answer.get(part) or {} for part in ("model", "documents", "queue"))
    output.fields(
        {
            "engine": f"{answer.get('version', 'of unknown version')} at {read().engine_url}",
            "model": model and "{name}, {dimensions} dimensions, {precision}".format_map(model),
            "device": answer.get("device") and f"{answer['device']} ({answer.get('provider')})",
            "documents": counted(documents),
            "chunks": answer.get("chunks"),
            "jobs": ", ".join(f"{count} {state}" for state, count in queue.items()),
            "database": f"{decimal(answer.get('database_size', 0))}, schema {answer.get('schema_version')}",
        }
    )


def counted(documents: dict[str, int]) -> str:
    """How many documents there are, and of which types."""
    types = ", ".join(f"{count} {doc_type}" for doc_type, count in sorted(documents.items()))
    return f"{sum(documents.values())} ({types})" if types else "0"
