"""kb get and kb open."""

from collections.abc import Awaitable
from pathlib import Path, PurePath
from typing import Annotated, Any

from kb.api.omissions import phrase
from kb.client.client import EngineClient
from kb.wording import optional_facts
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.document_paths import DocumentId, find_id
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.last_search import recall
from kb_cli.runtime.open_files import open_source
from kb_cli.runtime.options import ABOUT_ID, STDIN, Json, argument, option
from kb_cli.sync.folder_names import local_place


def get(
    document_id: Annotated[DocumentId | None, argument("ID", ABOUT_ID, min=1)] = None,
    path: Annotated[
        str | None, option("--path SOURCE_PATH", "The document's source path or file, instead of its ID.")
    ] = None,
    text: Annotated[bool, option("--text", "Print only the text, unchanged.")] = False,
    file: Annotated[
        Path | None,
        option("--file FILE", "Save the document's file here: a new file, a folder, or - for standard output."),
    ] = None,
    version: Annotated[int | None, option("--version N", "Show version N, as 'kb history' numbers it.", min=1)] = None,
    json: Json = False,
) -> None:
    """Show a document and its text."""
    if (document_id is None) == (path is None):
        raise exit_codes.UsageError("Use either the document's ID or --path, not both.")
    if text + json + (file is not None) > 1:
        raise exit_codes.UsageError("Use only one of --text, --file and --json.")
    if version and file is not None:
        raise exit_codes.UsageError("--file saves the document's current file. Leave out --version.")

    async def fetch(client: EngineClient) -> dict[str, Any]:
        id_ = document_id or await find_id(client, path or "")
        return await client.document(id_, version=version)

    if file is not None:
        call(lambda client: save_file(client, fetch(client), file))
        return
    document = call(fetch)
    if json:
        output.print_json(document)
    elif text:
        output.print_text(output.document_text(document))
    else:
        print_document(document)


async def save_file(client: EngineClient, document: Awaitable[dict[str, Any]], target: Path) -> None:
    """Save the file of a document, in a folder under its own name. Never overwrites a file.

    Raises:
        LocalError: the target exists or cannot be written.
    """
    fields = await document
    content = await client.file(fields["id"])
    if str(target) == STDIN:
        output.write_bytes(content)
        return
    name = PurePath(fields["source_path"] or fields["title"]).name
    write_new(target, name, content)


def write_new(target: Path, name: str, content: bytes) -> None:
    """Write a new file, in a folder under the given name."""
    target = target / name if target.is_dir() else target
    try:
        with target.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise exit_codes.LocalError(f"{target}: {error.strerror}.") from None


def print_document(document: dict[str, Any]) -> None:
    output.print_fields(
        {
            "title": document["title"],
            "id": document["id"],
            "type": document["doc_type"],
            "source path": document["source_path"],
            "tags": output.format_tags(document),
            "date": output.format_date(document.get("date")),
            **optional_facts(document),
            "replaces": document.get("replaces"),
            "replaced by": document.get("replaced_by"),
            "created": output.format_time(document["created_at"]),
            "updated": output.format_time(document["updated_at"]),
            "hash": document["content_hash"],
            "language": document.get("language"),
            "not read": phrase(document["omitted"]),
        }
    )
    output.print_line("\n" + output.document_text(document).strip("\r\n"))


def open_(
    document_id: Annotated[DocumentId | None, argument("ID", ABOUT_ID, min=1)] = None,
    hit: Annotated[int | None, option("-n --hit N", "Open result N of your last search in a terminal.", min=1)] = None,
    line: Annotated[int | None, option("--line N", "Open a text file at this line, in an editor.", min=1)] = None,
    page: Annotated[int | None, option("--page N", "Open a PDF at this page.", min=1)] = None,
) -> None:
    """Open the file or web page that a document came from.

    kb opens text files in $VISUAL or $EDITOR if one is set, notes in the web interface, and everything else in this
    machine's default program. It opens a search result at its line or page. For an attachment, kb opens the message;
    for a file in an archive, the archive.
    """
    if (document_id is None) == (hit is None):
        raise UsageError("Use either the document's ID or -n with the number of a result from your last search.")
    if hit is not None:
        result = recall(hit)
        document_id, line, page = result["document_id"], line or result["line"], page or result["page"]
    id_ = int(document_id or 0)
    document = call(lambda client: client.document(id_, chunks=1))
    here = {"document_id": id_, "source_path": local_place(document["source_path"])}
    open_source(document | here, line, page)
