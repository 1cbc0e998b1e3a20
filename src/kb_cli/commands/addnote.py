"""kb addnote."""

from typing import Annotated, Any

from kb.api.errors import Invalid
from kb.client.client import EngineClient
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.editor import edit_text
from kb_cli.runtime.engine_call import call, call_async
from kb_cli.runtime.options import Json, Tags, Text, Wait, given_tags, option, read_text


def addnote(
    text: Text = None,
    title: Annotated[str | None, option("--title TEXT", "The title, instead of the first line.")] = None,
    tags: Tags = None,
    source_path: Annotated[
        str | None,
        option(
            "--source-path PATH",
            "A path for the note, such as plans/roof; a new note with this path replaces the text of the old one.",
        ),
    ] = None,
    thread: Annotated[
        str | None,
        option(
            "--thread NAME", "A group of related notes, such as trip-2026; their text helps searches find this note."
        ),
    ] = None,
    source: Annotated[str | None, option("--source TEXT", "The origin: a web address, a book or a person.")] = None,
    valid_until: Annotated[
        str | None, option("--valid-until DATE", "The last day on which the note is true, such as 2027-03-31.")
    ] = None,
    replaces: Annotated[
        int | None, option("--replaces ID", "The note that this one replaces; kb ranks it below this one.", min=1)
    ] = None,
    if_new: Annotated[
        bool, option("--if-new", "If a note already says this, even in other words, store nothing and print that note.")
    ] = False,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Add a note.

    Without TEXT, kb reads the note from a pipe, or opens $VISUAL or $EDITOR for you to write it. Words such as #roof
    or #house/roof become tags. kb stores the note at once, and prints any notes that say nearly the same thing.

    With --json, kb prints the engine's receipt, or with --wait the finished job.
    """
    note: dict[str, Any] = {"title": title, "tags": given_tags(tags), "source_path": source_path, "thread": thread}
    options = {
        "source": source,
        "valid_until": valid_until,
        "replaces": replaces,
        "if_new": if_new or None,
        "inline_tags": True,
    }
    note |= {name: value for name, value in options.items() if value is not None}
    given = read_text(text)
    if given is not None and not given.strip():
        raise Invalid("The note is empty; kb sent nothing.")
    answer = edit(note, wait) if given is None else send(note | {"text": given}, wait)
    if json:
        output.print_json(answer)
    elif answer["status"] == "failed":
        output.print_error(answer["error"])
    else:
        output.print_line(outcome(answer))
        for note in answer["alike"]:
            output.print_line(f"similar: note {note['document_id']}: {note['text']}")
    return exit_codes.FAILURE if answer["status"] == "failed" else exit_codes.OK


def outcome(answer: dict[str, Any]) -> str:
    note = f"note {answer['document_id']}"
    if answer["existed"]:
        return f"{note} already has this text"
    if not answer["stored"]:
        return "nothing stored: kb already has a similar note"
    if answer["document_id"] is None:
        return f"job {answer['job_id']} will add the note"
    if answer["status"] == "done":
        return f"{note} is searchable"
    return f"{note} is stored; keyword search finds it now, semantic search will soon (job {answer['job_id']})"


def edit(note: dict[str, Any], wait: bool) -> dict[str, Any]:
    with edit_text("", "addnote") as text:
        if text is None:
            raise exit_codes.UsageError("The note is empty; kb sent nothing.")
        return send(note | {"text": text}, wait)


def send(note: dict[str, Any], wait: bool) -> dict[str, Any]:
    """Send a new note; return the engine's receipt, or the finished job."""

    async def add(client: EngineClient) -> dict[str, Any]:
        receipt = await client.add_note(**note)
        if not (wait and receipt["job_id"]):
            return receipt
        return receipt | await client.wait_for_job(receipt["job_id"])

    return (call_async if wait else call)(add)
