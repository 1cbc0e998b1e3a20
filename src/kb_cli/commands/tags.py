"""kb tag and kb tags."""

from typing import Annotated

from kb_cli.runtime import output
from kb_cli.runtime.completion import complete_tags
from kb_cli.runtime.document_paths import DocumentId
from kb_cli.runtime.engine_call import call, report_each
from kb_cli.runtime.exit_codes import OK, UsageError
from kb_cli.runtime.options import Json, Why, argument, given_tags, option

FROM_TEXT = "'{old}' is also in the text of {documents}. Change it there too, or adding the text again re-adds the tag."
NO_TAGS = "no document has a tag; add some with 'kb tag ID --add A,B', or with --tags when you add documents"


def tag(
    ids: Annotated[
        list[DocumentId] | None, argument("ID", "One or more document IDs, as 'kb list' shows them, or paths.", min=1)
    ] = None,
    add: Annotated[
        list[str] | None, option("--add A,B", "Tags to add, such as house,roof.", complete=complete_tags)
    ] = None,
    remove: Annotated[
        list[str] | None, option("--remove A,B", "Tags to remove, such as todo.", complete=complete_tags)
    ] = None,
    rename: Annotated[
        tuple[str, str] | None, option("--rename OLD NEW", "Rename a tag, and all tags below it, in all documents.")
    ] = None,
    why: Why = None,
    json: Json = False,
) -> int:
    """Add tags to documents or remove them, or rename a tag everywhere.

    Renaming 'projects' to 'work' also renames 'projects/kiln' to 'work/kiln'. If the new tag is in use, the two are
    merged. 'kb undo' undoes it. With --json, kb prints a list of the documents, or the number of changed documents.
    """
    new, old = given_tags(add), given_tags(remove)
    if rename:
        if ids or new or old:
            raise UsageError("--rename changes all documents: leave out IDs, --add and --remove.")
        return rename_tag(*rename, why=why, json=json)
    if not ids:
        raise UsageError("Name the documents by their IDs, or rename a tag with --rename OLD NEW.")
    if not (new or old):
        raise UsageError("Name the tags to change: --add A,B or --remove A,B.")
    return report_each(
        dict.fromkeys(ids),
        lambda client, document_id: client.change_tags(document_id, add=new, remove=old, why=why),
        lambda document: f"document {document['id']}: {output.format_tags(document) or 'no tags'}",
        json=json,
    )


def rename_tag(old: str, new: str, *, why: str | None, json: bool) -> int:
    answer = call(lambda client: client.rename_tag(old, new, why=why))
    if json:
        output.print_json(answer)
        return OK
    output.print_line(f"renamed '{old}' to '{new}' in {count_documents(answer['documents'])}")
    if answer["from_text"]:
        output.print_error(FROM_TEXT.format(old=old, documents=count_documents(answer["from_text"])))
    return OK


def count_documents(number: int) -> str:
    return f"{number} document{'s' * (number != 1)}"


def tags(json: Json = False) -> None:
    """List all tags, each with its number of documents.

    DOCUMENTS counts the documents that '--tags TAG' finds: those with the tag or a tag below it, such as
    'projects/kiln' below 'projects'.
    """
    answer = call(lambda client: client.tags())
    output.print_list(answer, "tags", {"TAG": "tag", "DOCUMENTS": "branch"}, NO_TAGS, json=json)
