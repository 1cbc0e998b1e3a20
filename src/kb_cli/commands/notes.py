"""kb addnote and kb updatenote."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.api.errors import NotANote
from kb_cli.commands.jobs import finished
from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.call import ask, ask_at_length
from kb_cli.runtime.editor import edited
from kb_cli.runtime.options import Id, Json, Tags, Wait, split, text_of

if TYPE_CHECKING:
    from kb.client.client import EngineClient

NOTE = "note"
TextArgument = typer.Argument(metavar="TEXT", help="The text, or - for standard input.")


def addnote(
    text: Annotated[str | None, TextArgument] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Its title; otherwise its first line.")] = None,
    tags: Tags = None,
    source_path: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Where it comes from; a new text from there replaces the old one."),
    ] = None,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Add a note. Without TEXT, it is written in $VISUAL or $EDITOR.

    With --json, prints the engine's receipt, or with --wait the finished job.
    """
    note = {"title": title, "tags": split(tags), "source_path": source_path}
    answer = write(note, wait) if text is None else send(note | {"text": text_of(text)}, wait)
    if json:
        output.print_json(answer)
    elif answer["status"] == "failed":
        output.complain(answer["error"])
    elif wait:
        output.say(f"note {answer['document_id']} is searchable")
    else:
        output.say(f"job {answer['job_id']} takes the note in")
    return exits.NOTHING if answer["status"] == "failed" else exits.OK


def write(note: dict[str, Any], wait: bool) -> dict[str, Any]:
    """Let the user write a note, and send it."""
    with edited("", "addnote") as text:
        if text is None:
            raise exits.UsageError("The note is empty; nothing was sent.")
        return send(note | {"text": text}, wait)


def send(note: dict[str, Any], wait: bool) -> dict[str, Any]:
    """Send a new note; answers the engine's receipt, or the finished job."""

    async def add(engine: "EngineClient") -> dict[str, Any]:
        receipt = await engine.add_note(**note)
        return await finished(engine, receipt["job_id"]) if wait else receipt

    return (ask_at_length if wait else ask)(add)


def updatenote(document_id: Id, text: Annotated[str | None, TextArgument] = None, json: Json = False) -> None:
    """Replace a note's text at once. Without TEXT, the note opens in $VISUAL or $EDITOR.

    What the editor leaves unchanged is not sent, and what someone else changed meanwhile is not overwritten.
    With --json, prints the note as it is now.
    """
    note, sent = edit(document_id) if text is None else (update(document_id, text_of(text)), True)
    if json:
        output.print_json(note)
    else:
        output.say(f"note {document_id} is " + ("updated" if sent else "unchanged; nothing was sent"))


def update(document_id: int, text: str, if_match: str | None = None) -> dict[str, Any]:
    """Send a note's new text."""

    async def send(engine: "EngineClient") -> dict[str, Any]:
        return await engine.update_note(document_id, text, if_match=if_match)

    return ask(send)


def edit(document_id: int) -> tuple[dict[str, Any], bool]:
    """Let the user edit a note; answers it as it is then, and whether anything was sent."""
    note = ask(lambda engine: engine.document(document_id))
    if note["doc_type"] != NOTE:
        raise NotANote(f"Document {document_id} is of type {note['doc_type']}: only notes can be updated.")
    with edited("".join(chunk["text"] for chunk in note["chunks"]), f"updatenote {document_id}") as text:
        return (note, False) if text is None else (update(document_id, text, note["content_hash"]), True)
