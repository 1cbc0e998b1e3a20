"""kb get, list, delete, tag and tags."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.api.errors import NotFound
from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.call import ask
from kb_cli.runtime.completion import tag_lists
from kb_cli.runtime.options import (
    STDIN,
    After,
    AnyTag,
    Before,
    DocType,
    Ids,
    IdsOnly,
    Json,
    NoTag,
    SourcePath,
    Tags,
    Under,
    filters,
    some,
    split,
)
from kb_cli.sync.selection import source_path_of

if TYPE_CHECKING:
    from kb.client.client import EngineClient

PAGE = 500
JSON = dict[str, Any]


def get(
    document_id: Annotated[int | None, typer.Argument(metavar="ID", min=1, help="The document's id.")] = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="SOURCE_PATH", help="Instead of the id: where it came from.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the text exactly, and nothing else.")] = False,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Write the file it came from to FILE, or - for standard output."),
    ] = None,
    json: Json = False,
) -> None:
    """Show a document and its text."""
    if (document_id is None) == (path is None):
        raise exits.UsageError("Give either the document's ID or its --path.")
    if text + json + (file is not None) > 1:
        raise exits.UsageError("Give only one of --text, --file and --json.")

    async def find(engine: "EngineClient") -> JSON:
        return await engine.document(document_id or await id_at(engine, path or ""))

    if file is not None:
        ask(lambda engine: save_file(engine, find(engine), file))
        return
    document = ask(find)
    if json:
        output.print_json(document)
    elif text:
        output.print_exactly(text_of(document))
    else:
        show(document)


async def save_file(engine: "EngineClient", document: Awaitable[JSON], target: Path) -> None:
    """Write the file that a document came from; nothing that is there is written over.

    Raises:
        LocalError: it cannot be written there.
    """
    content = await engine.file((await document)["id"])
    if str(target) == STDIN:
        output.write_bytes(content)
        return
    try:
        with target.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise exits.LocalError(f"{target}: {error.strerror}.") from None


async def id_at(engine: "EngineClient", path: str) -> int:
    """The id of the document that came from `path`, which may be short for a file's absolute path.

    Raises:
        NotFound: there is none.
    """
    for source_path in dict.fromkeys([path, source_path_of(path)]):
        found = (await engine.documents(source_path=source_path))["documents"]
        if len(found) > 1:
            ids = ", ".join(str(document["id"]) for document in found)
            raise exits.UsageError(f"Several documents come from {source_path}: give one of the ids {ids}.")
        if found:
            return int(found[0]["id"])
    raise NotFound(f"There is no document from {path}.")


def text_of(document: JSON) -> str:
    """The document's text."""
    return "".join(chunk["text"] for chunk in document["chunks"])


def show(document: JSON) -> None:
    """Print a document for a person."""
    output.fields(
        {
            "title": document["title"],
            "id": document["id"],
            "type": document["doc_type"],
            "source path": document["source_path"],
            "tags": output.tags_of(document),
            "date": document.get("date"),
            "created": output.local_time(document["created_at"]),
            "updated": output.local_time(document["updated_at"]),
            "hash": document["content_hash"],
        }
    )
    output.say("\n" + text_of(document).rstrip("\n"))


def list_(
    tags: Tags = None,
    any_tag: AnyTag = None,
    no_tag: NoTag = None,
    doc_type: DocType = None,
    path: SourcePath = None,
    under: Under = None,
    after: After = None,
    before: Before = None,
    recent: Annotated[bool, typer.Option("--recent", help="The last added or changed first.")] = False,
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many documents at most.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="All documents there are.")] = False,
    ids: IdsOnly = False,
    json: Json = False,
) -> None:
    """List documents.

    Outside a terminal one a line, with tabs between the columns. Tags must all match. The date is the one that a
    document gives itself; without one it is when it was added or last changed.
    """
    query = filters(path, under, after, before, doc_type) | {
        "tag": some(tags),
        "tag_any": some(any_tag),
        "tag_not": some(no_tag),
        "sort": "recent" if recent else None,
    }
    answer = ask(lambda engine: pages(engine, query, None if everything else limit))
    if json:
        output.print_json(answer)
    elif ids:
        output.write("".join(f"{document['id']}\n" for document in answer["documents"]))
    else:
        show_list(answer["documents"])


async def pages(engine: "EngineClient", query: JSON, limit: int | None) -> JSON:
    """As many pages as hold `limit` documents, or all of them, as if they were one."""
    answer: JSON = {"documents": [], "next_cursor": None}
    while limit is None or len(answer["documents"]) < limit:
        size = PAGE if limit is None else min(limit - len(answer["documents"]), PAGE)
        page = await engine.documents(**query, limit=size, cursor=answer["next_cursor"])
        answer = page | {"documents": answer["documents"] + page["documents"]}
        if answer["next_cursor"] is None:
            break
    return answer


def show_list(listed: list[JSON]) -> None:
    """Print documents, one a line."""
    output.table(
        ("ID", "TYPE", "DATE", "TITLE", "TAGS", "SOURCE PATH"),
        [
            (
                document["id"],
                document["doc_type"],
                document.get("date") or output.local_time(document["updated_at"] or document["created_at"]),
                document["title"],
                output.tags_of(document),
                document["source_path"],
            )
            for document in listed
        ],
    )


def delete(
    ids: Ids,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; scripts must say so.")] = False,
    json: Json = False,
) -> int:
    """Delete documents for good. With --json, prints a list of the engine's receipts."""
    if not yes:
        confirm(ids)
    receipts, code = for_each(ids, lambda engine, document_id: engine.delete_document(document_id))
    if json:
        output.print_json(receipts)
    else:
        for receipt in receipts:
            output.say(f"document {receipt['document_id']} is deleted: {output.one_line(receipt['title'])}")
    return code


def confirm(ids: list[int]) -> None:
    """Ask whether to delete; without a person to ask, refuse."""
    if not sys.stdin.isatty():
        raise exits.UsageError("There is no terminal to ask on: say --yes to delete.")
    documents, _ = for_each(ids, lambda engine, document_id: engine.document(document_id))
    for document in documents:
        output.complain(f"document {document['id']}: {document['title']}")
    if not typer.confirm("Delete for good?", err=True):
        raise typer.Exit


def tag(
    ids: Ids,
    add: Annotated[list[str] | None, typer.Option(metavar="A,B", help="Tags to add.", autocompletion=tag_lists)] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Tags to remove.", autocompletion=tag_lists)
    ] = None,
    json: Json = False,
) -> int:
    """Change the tags of documents. With --json, prints a list of the documents."""
    new, old = split(add), split(remove)
    if not (new or old):
        raise exits.UsageError("Say which tags to --add or to --remove.")
    documents, code = for_each(ids, lambda engine, document_id: engine.change_tags(document_id, add=new, remove=old))
    if json:
        output.print_json(documents)
    else:
        for document in documents:
            output.say(f"document {document['id']}: {output.tags_of(document) or 'no tags'}")
    return code


def tags(json: Json = False) -> None:
    """List all tags, and how many documents carry each."""
    answer = ask(lambda engine: engine.tags())
    if json:
        output.print_json(answer)
    else:
        output.table(("TAG", "DOCUMENTS"), [(row["tag"], row["documents"]) for row in answer["tags"]])


def for_each(ids: list[int], act: Callable[["EngineClient", int], Awaitable[JSON]]) -> tuple[list[JSON], int]:
    """What the engine answers for each document, and the exit code; those that do not exist are named."""

    async def work(engine: "EngineClient") -> tuple[list[JSON], int]:
        answers, code = [], exits.OK
        for document_id in dict.fromkeys(ids):
            try:
                answers.append(await act(engine, document_id))
            except NotFound as error:
                output.complain(error.detail)
                code = exits.NOT_FOUND
        return answers, code

    return ask(work)
