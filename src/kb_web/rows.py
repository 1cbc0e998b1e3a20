"""Documents and jobs as rows of lists, with their facts in words."""

import re
from collections.abc import Mapping
from typing import Any, Final

from kb.api.job_error_phrases import remedy_for
from kb.api.rights import OF_JOB
from kb.wording import optional_facts
from kb_web.document_html import Row, plain

SLIDES: Final = ("pptx", "odp")
"""Types of documents whose pages are slides."""

SHOWN_FOLDERS: Final = 2

INSIDE: Final = re.compile(rf"{OF_JOB}\d+#")
"""The start of the path of an attachment whose message has no path."""


def document_row(document: Row) -> Row:
    return {
        **document,
        "title": plain(document["title"], 200) or "Untitled",
        "path": (path := display_path(document)),
        "folder": short_folder(path),
        "facts": [f"{words} {plain(value, 200)}" for words, value in optional_facts(document).items()],
        "replaced_by": document.get("replaced_by"),
        "when": document["updated_at"] or document["created_at"],
    }


def job_row(job: Row) -> Row:
    name = job["filename"] or job["title"] or ("Note" if job["kind"] == "note" else "File")
    remedy = remedy_for(job["error"]) if job["status"] == "failed" else None
    return {**job, "name": plain(name, 200), "path": display_path(job), "remedy": remedy}


def display_path(row: Row) -> str:
    """Return a path to display; an attachment of a file without a path is shown by its name only."""
    return plain(INSIDE.sub("", row["source_path"] or ""), 200)


def folders_above(path: str) -> list[tuple[str, str]]:
    """Return the folders of a document, and the file that contains it, each with the beginning of the paths in it."""
    scheme, is_web, rest = path.rpartition("://")
    outer, is_part, _ = rest.partition("#")
    names = outer.split("/")[:-1]
    above = [(name, f"{scheme}{is_web}{'/'.join(names[:at])}/") for at, name in enumerate(names, 1) if name]
    return [*above, (outer.rpartition("/")[2], f"{scheme}{is_web}{outer}#")] if is_part and not is_web else above


def short_folder(path: str) -> str:
    """Return the last two folders of a path, such as `vault/History`."""
    names = [name for name, _ in folders_above(path)]
    return "…/" * (len(names) > SHOWN_FOLDERS) + "/".join(names[-SHOWN_FOLDERS:])


def place(where: Mapping[str, Any], doc_type: str = "") -> str:
    page = [f"{'slide' if doc_type in SLIDES else 'page'} {where['page']}"] if where["page"] else []
    heading = [" › ".join(plain(heading, 80) for heading in where["heading"][-2:])] if where["heading"] else []
    return " · ".join(page + heading) or f"line {where['line_start']}"
