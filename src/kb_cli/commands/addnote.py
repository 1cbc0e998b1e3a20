"""kb addnote."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.api.errors import Invalid
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.editor import edit_text
from kb_cli.runtime.engine_call import call, call_async
from kb_cli.runtime.options import Json, Tags, Text, Wait, read_text, split_tags

INLINE_TAG = re.compile(r"(?<!\S)#(?=[\d_/-]*[^\W\d_])([\w/-]*\w)")
"""As `kb.formats.readers.front_matter` has it for Markdown files."""
CODE = re.compile(r"(?s)```.*?```|`[^`\n]*`")

if TYPE_CHECKING:
    from kb.client.client import EngineClient


def addnote(
    text: Text = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Its title; otherwise its first line.")] = None,
    tags: Tags = None,
    source_path: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Where it comes from; a new text from there replaces the old one."),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What it is a part of: its neighbours there help to find it."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Where you have it from: an address, a book, a person.")
    ] = None,
    replaces: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="The note that it replaces, which then ranks behind it.")
    ] = None,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Add a note.

    Without TEXT, it is what comes through a pipe, or else you write it in $VISUAL or $EDITOR. Words in it such as
    #roof or #house/roof become tags.

    With --json, prints the engine's receipt, or with --wait the finished job.
    """
    note: dict[str, Any] = {"title": title, "tags": split_tags(tags), "source_path": source_path, "thread": thread}
    note |= {name: value for name, value in (("source", source), ("replaces", replaces)) if value is not None}
    given = read_text(text)
    if given is not None and not given.strip():
        raise Invalid("The note is empty; nothing was sent.")
    answer = edit(note, wait) if given is None else send(note | {"text": given}, wait)
    if json:
        output.print_json(answer)
    elif answer["status"] == "failed":
        output.print_error(answer["error"])
    elif wait:
        outcome = "says this already" if answer["existed"] else "is searchable"
        output.print_line(f"note {answer['document_id']} {outcome}")
    else:
        output.print_line(f"job {answer['job_id']} takes the note in")
    return exit_codes.FAILURE if answer["status"] == "failed" else exit_codes.OK


def inline_tags(text: str) -> list[str]:
    """Return the #tags in a text, those in code left out."""
    return INLINE_TAG.findall(CODE.sub(" ", text))


def edit(note: dict[str, Any], wait: bool) -> dict[str, Any]:
    """Let the user write a note, and send it."""
    with edit_text("", "addnote") as text:
        if text is None:
            raise exit_codes.UsageError("The note is empty; nothing was sent.")
        return send(note | {"text": text}, wait)


def send(note: dict[str, Any], wait: bool) -> dict[str, Any]:
    """Send a new note; return the engine's receipt, or the finished job."""
    note["tags"] = list(dict.fromkeys([*note["tags"], *inline_tags(note["text"])]))

    async def add(client: "EngineClient") -> dict[str, Any]:
        receipt = await client.add_note(**note)
        return await client.wait_for_job(receipt["job_id"]) if wait else receipt

    return (call_async if wait else call)(add)
