"""kb open."""

from typing import Annotated

import typer

from kb_cli.runtime.call import call
from kb_cli.runtime.launch import open_source
from kb_cli.runtime.options import Id


def open_(
    document_id: Id,
    line: Annotated[int | None, typer.Option("--line", metavar="N", min=1, help="At this line, in an editor.")] = None,
) -> None:
    """Open the file or web page that a document came from.

    Texts open in $VISUAL or $EDITOR if one is set, everything else in the program that this machine has for it.
    """
    open_source(call(lambda client: client.document(document_id, chunks=1)) | {"document_id": document_id}, line)
