"""What the shell offers when a word is completed. It never fails and never waits long: then it offers nothing."""

from __future__ import annotations

from typing import Final

from kb.api.errors import KbError

SECONDS: Final = 1.0
TYPES: Final = (
    "code", "csv", "docx", "eml", "epub", "html", "json", "markdown", "msg", "note", "notebook", "odp", "ods", "odt",
    "pdf", "pptx", "rtf", "text", "xls", "xlsx", "xml",
)  # fmt: skip


def tag_lists(incomplete: str) -> list[str]:
    """Tags with commas between them, the last one completed."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{tag}" for tag in tags() if tag.startswith(last)]


def tags() -> list[str]:
    """Every tag in use."""
    from kb_cli.runtime.call import ask

    try:
        return [row["tag"] for row in ask(lambda engine: engine.tags(), timeout=SECONDS)["tags"]]
    except KbError:
        return []


def types(incomplete: str) -> list[str]:
    """The types of documents."""
    return [name for name in TYPES if name.startswith(incomplete)]


def profiles(incomplete: str) -> list[str]:
    """The profiles of the configuration file."""
    from kb_cli.runtime.config import read

    try:
        return [name for name in read().profiles if name.startswith(incomplete)]
    except KbError:
        return []
