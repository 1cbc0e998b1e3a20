"""kb updatenote."""

from contextlib import suppress
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.api.errors import Changed, KbError, NotANote
from kb_cli.runtime import output
from kb_cli.runtime.completion import complete_tags
from kb_cli.runtime.editor import edit_text
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Id, Json, Text, Why, read_text, split_tags

if TYPE_CHECKING:
    from kb.client.client import EngineClient

NOTE = "note"
MIN_HASH = 8
"""How much of its hash names a version."""
Old = Annotated[str | None, typer.Option("--old", metavar="TEXT", help="What to replace; it must occur exactly once.")]
New = Annotated[str | None, typer.Option("--new", metavar="TEXT", help="The text that replaces it.")]
Append = Annotated[str | None, typer.Option("--append", metavar="TEXT", help="Lines to add at the end.")]
Prepend = Annotated[str | None, typer.Option("--prepend", metavar="TEXT", help="Lines to add at the beginning.")]
Title = Annotated[str | None, typer.Option("--title", metavar="TITLE", help="The new title.")]
TagsAdd = Annotated[
    list[str] | None, typer.Option("--tags-add", metavar="A,B", help="Tags to add.", autocompletion=complete_tags)
]
TagsRemove = Annotated[
    list[str] | None, typer.Option("--tags-remove", metavar="A,B", help="Tags to remove.", autocompletion=complete_tags)
]
IfMatch = Annotated[
    str | None,
    typer.Option("--if-match", metavar="HASH", help="Only if its hash is still this, or begins so; 'kb get' shows it."),
]


def updatenote(
    document_id: Id,
    text: Text = None,
    old: Old = None,
    new: New = None,
    append: Append = None,
    prepend: Prepend = None,
    title: Title = None,
    tags_add: TagsAdd = None,
    tags_remove: TagsRemove = None,
    if_match: IfMatch = None,
    why: Why = None,
    json: Json = False,
) -> None:
    """Edit or replace a note, or a part of it.

    Without TEXT the note opens in $VISUAL or $EDITOR. What you leave unchanged is not sent, and someone else's change
    is never overwritten.
    With --json, prints the note as it is now.
    """
    options = {"old": old, "new": new, "append": append, "prepend": prepend, "title": title}
    change: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if text and change.keys() - {"title"}:
        raise UsageError("TEXT is the whole new text: leave out --old, --new, --append and --prepend.")
    tags = {"tags_add": split_tags(tags_add), "tags_remove": split_tags(tags_remove)}
    change |= {name: value for name, value in tags.items() if value}
    if if_match is not None and not (text or change):
        raise UsageError("--if-match goes with TEXT or an option that says what to change.")
    given = read_text(text) if text or not change else None
    if given is not None and not text:
        raise UsageError("Say - for what is piped in: it replaces the whole note.")
    if given is None and not change:
        note, is_sent = edit(document_id, why)
    else:
        note, is_sent = update(document_id, given, if_match, why, **change), True
    if json:
        output.print_json(note)
    else:
        output.print_line(f"note {document_id} is " + ("updated" if is_sent else "unchanged; nothing was sent"))


def update(
    document_id: int,
    text: str | None,
    if_match: str | None = None,
    why: str | None = None,
    **change: Any,  # noqa: ANN401 - the fields of `models.NoteUpdate`
) -> dict[str, Any]:
    """Send a change of a note, and return the note."""

    async def send(client: "EngineClient") -> dict[str, Any]:
        expected = await full_hash(client, document_id, if_match) if if_match is not None else None
        return await client.update_note(document_id, text, if_match=expected, why=why, **change)

    try:
        return call(send)
    except Changed:
        with suppress(KbError):  # what was refused stays refused
            output.print_aside(call(lambda client: difference(client, document_id, if_match or "")))
        raise Changed(f"Note {document_id} was changed by someone else meanwhile; that stays.") from None


def normalized(version: str) -> str:
    """Return a hash as the engine writes it."""
    return version.strip().strip('"').lower()


async def full_hash(client: "EngineClient", document_id: int, version: str) -> str:
    """Return the hash of a note, if it begins so; else what was given, which the engine refuses."""
    present: str = (await client.document(document_id, chunks=1))["content_hash"]
    beginning = normalized(version)
    return present if len(beginning) >= MIN_HASH and present.startswith(beginning) else beginning


async def difference(client: "EngineClient", document_id: int, version: str) -> str:
    """Return the hash of a note, and the lines that changed since a version, if history has it."""
    note = await client.document(document_id)
    lines = [f"The note's hash is {note['content_hash']} now."]
    beginning = normalized(version)
    for earlier in (await client.history(document_id))["versions"]:
        if len(beginning) >= MIN_HASH and earlier["content_hash"].startswith(beginning):
            before = str((await client.version(document_id, earlier["number"]))["text"]).splitlines()
            lines += unified_diff(
                before, output.document_text(note).splitlines(), "as you read it", "as it is now", n=1, lineterm=""
            )
            break
    return "\n".join(lines)


def edit(document_id: int, why: str | None) -> tuple[dict[str, Any], bool]:
    """Let the user edit a note; return it as it is then, and whether anything was sent."""
    note = call(lambda client: client.document(document_id))
    if note["doc_type"] != NOTE:
        raise NotANote(f"Document {document_id} is of type {note['doc_type']}: only notes can be updated.")
    with edit_text(output.document_text(note), f"updatenote {document_id}") as text:
        return (note, False) if text is None else (update(document_id, text, note["content_hash"], why), True)
