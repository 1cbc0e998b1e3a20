"""kb updatenote."""

from typing import Any

from kb.api.errors import NotANote
from kb_cli.runtime import output
from kb_cli.runtime.call import call
from kb_cli.runtime.editor import edit_text
from kb_cli.runtime.options import Id, Json, Text, read_text

NOTE = "note"


def updatenote(document_id: Id, text: Text = None, json: Json = False) -> None:
    """Edit or replace a note.

    Without TEXT, and nothing piped, the note opens in $VISUAL or $EDITOR. What you leave unchanged is not sent, and
    someone else's change is never overwritten.
    With --json, prints the note as it is now.
    """
    given = read_text(text)
    note, is_sent = edit(document_id) if given is None else (update(document_id, given), True)
    if json:
        output.print_json(note)
    else:
        output.print_line(f"note {document_id} is " + ("updated" if is_sent else "unchanged; nothing was sent"))


def update(document_id: int, text: str, if_match: str | None = None) -> dict[str, Any]:
    """Send a note's new text, and return the note."""
    return call(lambda client: client.update_note(document_id, text, if_match=if_match))


def edit(document_id: int) -> tuple[dict[str, Any], bool]:
    """Let the user edit a note; return it as it is then, and whether anything was sent."""
    note = call(lambda client: client.document(document_id))
    if note["doc_type"] != NOTE:
        raise NotANote(f"Document {document_id} is of type {note['doc_type']}: only notes can be updated.")
    with edit_text("".join(chunk["text"] for chunk in note["chunks"]), f"updatenote {document_id}") as text:
        return (note, False) if text is None else (update(document_id, text, note["content_hash"]), True)
