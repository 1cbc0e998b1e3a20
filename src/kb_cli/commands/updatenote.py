"""kb updatenote."""

from typing import Annotated, Any

import typer

from kb.api.errors import Changed, NotANote
from kb_cli.runtime import output
from kb_cli.runtime.call import call
from kb_cli.runtime.editor import edit_text
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Id, Json, Text, Why, read_text

NOTE = "note"
Old = Annotated[str | None, typer.Option("--old", metavar="TEXT", help="What to replace; it stands there once.")]
New = Annotated[str | None, typer.Option("--new", metavar="TEXT", help="What comes in its place.")]
Append = Annotated[str | None, typer.Option("--append", metavar="TEXT", help="Lines to add at the end.")]
Prepend = Annotated[str | None, typer.Option("--prepend", metavar="TEXT", help="Lines to add at the beginning.")]
Title = Annotated[str | None, typer.Option("--title", metavar="TITLE", help="The new title.")]


def updatenote(
    document_id: Id,
    text: Text = None,
    old: Old = None,
    new: New = None,
    append: Append = None,
    prepend: Prepend = None,
    title: Title = None,
    why: Why = None,
    json: Json = False,
) -> None:
    """Edit or replace a note, or a part of it.

    Without TEXT the note opens in $VISUAL or $EDITOR. What you leave unchanged is not sent, and someone else's change
    is never overwritten.
    With --json, prints the note as it is now.
    """
    options = {"old": old, "new": new, "append": append, "prepend": prepend, "title": title}
    change = {name: value for name, value in options.items() if value is not None}
    if text and change.keys() - {"title"}:
        raise UsageError("TEXT is the whole new text: leave out --old, --new, --append and --prepend.")
    given = read_text(text) if text or not change else None
    if given is not None and not text:
        raise UsageError("Say - for what is piped in: it replaces the whole note.")
    if given is None and not change:
        note, is_sent = edit(document_id, why)
    else:
        note, is_sent = update(document_id, given, why=why, **change), True
    if json:
        output.print_json(note)
    else:
        output.print_line(f"note {document_id} is " + ("updated" if is_sent else "unchanged; nothing was sent"))


def update(
    document_id: int, text: str | None, if_match: str | None = None, why: str | None = None, **change: str
) -> dict[str, Any]:
    """Send a change of a note, and return the note."""
    try:
        return call(lambda client: client.update_note(document_id, text, if_match=if_match, why=why, **change))
    except Changed:
        raise Changed(f"Note {document_id} was changed by someone else meanwhile; that stays.") from None


def edit(document_id: int, why: str | None) -> tuple[dict[str, Any], bool]:
    """Let the user edit a note; return it as it is then, and whether anything was sent."""
    note = call(lambda client: client.document(document_id))
    if note["doc_type"] != NOTE:
        raise NotANote(f"Document {document_id} is of type {note['doc_type']}: only notes can be updated.")
    with edit_text("".join(chunk["text"] for chunk in note["chunks"]), f"updatenote {document_id}") as text:
        return (note, False) if text is None else (update(document_id, text, note["content_hash"], why), True)
