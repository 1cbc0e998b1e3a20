"""kb open."""

from typing import Annotated

from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.last_search import recall
from kb_cli.runtime.open_files import open_source
from kb_cli.runtime.options import argument, option
from kb_cli.sync.folder_names import local_place


def open_(
    document_id: Annotated[int | None, argument("ID", "The document's id, as 'kb list' shows it.", min=1)] = None,
    hit: Annotated[int | None, option("-n --hit N", "Open result N of the last search in a terminal.", min=1)] = None,
    line: Annotated[int | None, option("--line N", "Open a text at this line, in an editor.", min=1)] = None,
    page: Annotated[int | None, option("--page N", "Open a PDF at this page.", min=1)] = None,
) -> None:
    """Open the file or web page that a document came from.

    kb opens texts in $VISUAL or $EDITOR if one is set, notes in the web interface, and everything else in the default
    program of this machine. It opens a search result at its line or page. For an attachment, kb opens the message; for
    a file in an archive, the archive.
    """
    if (document_id is None) == (hit is None):
        raise UsageError("Give the ID of a document, or -n with the number of a result of your last search.")
    if hit is not None:
        result = recall(hit)
        document_id, line, page = result["document_id"], line or result["line"], page or result["page"]
    id_ = int(document_id or 0)
    document = call(lambda client: client.document(id_, chunks=1))
    here = {"document_id": id_, "source_path": local_place(document["source_path"])}
    open_source(document | here, line, page)
