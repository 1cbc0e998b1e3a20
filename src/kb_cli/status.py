"""kb status, and whether this program and the engine understand each other (requirement S-9)."""

import re
from typing import TYPE_CHECKING, Any

from kb import __version__
from kb.contract.errors import KbError
from kb_cli import output
from kb_cli.config import read
from kb_cli.options import Json
from kb_cli.run import ask

if TYPE_CHECKING:
    from kb.contract.client import EngineClient

MIN_ENGINE_VERSION = "3.0.0"


class WrongVersion(KbError):
    """The engine and this program are of versions that do not fit."""

    status = 426
    code = "wrong-version"


def status(json: Json = False) -> None:
    """Show what the engine is, what is in it and what it is doing."""
    answer = ask(lambda engine: engine.status())
    if json:
        output.print_json(answer)
    else:
        show(answer)
    if reason := mismatch(answer):
        output.complain(reason)


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


def mismatch(answer: dict[str, Any]) -> str | None:
    """Why this program cannot work with the engine that gave this answer; None if it can."""
    version = str(answer.get("version", "of unknown version"))
    numbers = parts(version)
    if numbers < parts(MIN_ENGINE_VERSION):
        return f"The engine is {version}, and this kb needs {MIN_ENGINE_VERSION} or later: upgrade the engine."
    if numbers[0] > parts(__version__)[0]:
        return f"The engine is {version}, which is newer than this kb {__version__} understands: upgrade kb."
    return None


def parts(version: str) -> tuple[int, ...]:
    """The version's numbers; words come before all of them."""
    return tuple(map(int, re.findall(r"\d+", version)[:3])) or (0,)


async def require_current(engine: "EngineClient") -> None:
    """Check that the engine is one that this program understands.

    Raises:
        WrongVersion: it is not.
    """
    if reason := mismatch(await engine.status()):
        raise WrongVersion(reason)
