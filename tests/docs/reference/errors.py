"""The types of errors of the HTTP API, from the classes in `kb.api.errors`."""

from __future__ import annotations

import inspect

from kb.api.errors import BY_CODE, KbError
from kb_cli.runtime.exit_codes import exit_code_for
from tests.docs.reference import markdown

INTRO = (
    "Errors are `application/problem+json` (RFC 9457). `type` is `urn:kb:problem:` with one of these types,"
    " `status` the HTTP status, and `detail` a message, often a more exact one than the message here. The last column"
    " is the exit code of `kb`; [Commands](commands.md) explains the codes."
)


def page() -> str:
    """Return the table of all types, by status."""
    kinds = sorted(BY_CODE.items(), key=lambda item: (item[1].status, item[0]))
    table = markdown.table(("Type", "Status", "Message", "Exit code"), (row(code, kind) for code, kind in kinds))
    return markdown.page("# Errors", INTRO, table)


def row(code: str, kind: type[KbError]) -> tuple[str, ...]:
    """Return the cells of a type."""
    return markdown.code(code), str(kind.status), inspect.getdoc(kind) or "", str(exit_code_for(kind()))
