"""kb updatenote."""

from contextlib import suppress
from difflib import unified_diff
from typing import Annotated, Any

from kb.api.errors import Changed, KbError, NotANote
from kb.client.client import EngineClient
from kb_cli.runtime import output
from kb_cli.runtime.completion import complete_tags
from kb_cli.runtime.editor import edit_text
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Id, Json, Text, Why, given_tags, option, read_text

NOTE = "note"
MIN_HASH = 8
"""The least number of characters that identify a version by its hash."""
Old = Annotated[str | None, option("--old TEXT", "The text to replace; it must occur exactly once.")]
New = Annotated[str | None, option("--new TEXT", "What to replace it with.")]
Append = Annotated[str | None, option("--append TEXT", "Text to add as new lines at the end.")]
Prepend = Annotated[str | None, option("--prepend TEXT", "Text to add as new lines at the beginning.")]
Title = Annotated[str | None, option("--title TITLE", "The new title.")]
Date = Annotated[str | None, option("--date DATE", "The new date: when this was said or happened.")]
ValidUntil = Annotated[str | None, option("--valid-until DATE", "The last day on which the note is true.")]
TagsAdd = Annotated[list[str] | None, option("--tags-add A,B", "Tags to add.", complete=complete_tags)]
TagsRemove = Annotated[list[str] | None, option("--tags-remove A,B", "Tags to remove.", complete=complete_tags)]
IfMatch = Annotated[
    str | None,
    option(
        "--if-match HASH",
        "Change the note only if its hash still begins with these 8 or more characters; 'kb get' shows the hash.",
    ),
]


def updatenote(
    document_id: Id,
    text: Text = None,
    old: Old = None,
    new: New = None,
    append: Append = None,
    prepend: Prepend = None,
    title: Title = None,
    date: Date = None,
    valid_until: ValidUntil = None,
    tags_add: TagsAdd = None,
    tags_remove: TagsRemove = None,
    if_match: IfMatch = None,
    why: Why = None,
    json: Json = False,
) -> None:
    """Edit a note, or replace all or part of its text.

    Without TEXT, the note opens in $VISUAL or $EDITOR. If you change nothing, kb sends nothing. If someone else
    changes the note in the meantime, kb keeps their change, saves your text and prints its path.

    With --json, kb prints the note after the change.
    """
    options = {"old": old, "new": new, "append": append, "prepend": prepend, "title": title}
    options |= {"date": date, "valid_until": valid_until}
    change: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if text and change.keys() - {"title", "date", "valid_until"}:
        raise UsageError(
            "TEXT replaces the whole note: leave it out, or leave out --old, --new, --append and --prepend."
        )
    tags = {"tags_add": given_tags(tags_add), "tags_remove": given_tags(tags_remove)}
    change |= {name: value for name, value in tags.items() if value}
    if if_match is not None and not (text or change):
        raise UsageError("--if-match needs a change: add TEXT, or an option such as --append.")
    given = read_text(text) if text or not change else None
    if given is not None and not text:
        raise UsageError("To replace the whole note with the piped text, use - as TEXT.")
    if given is None and not change:
        note, is_sent = edit(document_id, why)
    else:
        note, is_sent = update(document_id, given, if_match, why, **change), True
    if json:
        output.print_json(note)
    else:
        output.print_line(f"note {document_id} is " + (outcome(note) if is_sent else "unchanged; kb sent nothing"))


def outcome(note: dict[str, Any]) -> str:
    return (
        "updated" if note.get("embedded", True) else "updated; keyword search finds it now, semantic search will soon"
    )


def update(
    document_id: int,
    text: str | None,
    if_match: str | None = None,
    why: str | None = None,
    **change: Any,  # noqa: ANN401 - the fields of `models.NoteUpdate`
) -> dict[str, Any]:
    async def send(client: EngineClient) -> dict[str, Any]:
        expected = await full_hash(client, document_id, if_match) if if_match is not None else None
        return await client.update_note(document_id, text, if_match=expected, why=why, inline_tags=True, **change)

    try:
        return call(send)
    except Changed:
        with suppress(KbError):  # the change stays refused, with or without the difference
            output.print_aside(call(lambda client: difference(client, document_id, if_match or "")))
        raise Changed(
            f"Note {document_id} has been changed since the version that you used."
            " kb kept the new version and did not apply your change."
        ) from None


def normalized(version: str) -> str:
    """Return a hash in the engine's form: lower case, without quotes."""
    return version.strip().strip('"').lower()


async def full_hash(client: EngineClient, document_id: int, version: str) -> str:
    """Return the whole hash of a note if `version` is its beginning; otherwise `version`, which the engine refuses."""
    current: str = (await client.document(document_id, chunks=1))["content_hash"]
    beginning = normalized(version)
    return current if len(beginning) >= MIN_HASH and current.startswith(beginning) else beginning


async def difference(client: EngineClient, document_id: int, version: str) -> str:
    """Return the hash of a note, and the lines that changed since a version if the history has that version."""
    note = await client.document(document_id)
    lines = [f"The note now has the hash {note['content_hash']}."]
    beginning = normalized(version)
    for earlier in (await client.history(document_id))["versions"]:
        if len(beginning) >= MIN_HASH and earlier["content_hash"].startswith(beginning):
            before = str((await client.version(document_id, earlier["number"]))["text"]).splitlines()
            lines += unified_diff(
                before,
                output.document_text(note).splitlines(),
                "the version that you used",
                "the current version",
                n=1,
                lineterm="",
            )
            break
    return "\n".join(lines)


def edit(document_id: int, why: str | None) -> tuple[dict[str, Any], bool]:
    """Let the user edit a note; return the note after that, and whether anything was sent."""
    note = call(lambda client: client.document(document_id))
    if note["doc_type"] != NOTE:
        raise NotANote(
            f"Document {document_id} has the type {note['doc_type']}, and only notes can be updated."
            " To change it, edit its file and add it again."
        )
    with edit_text(output.document_text(note), f"updatenote {document_id}") as text:
        return (note, False) if text is None else (update(document_id, text, note["content_hash"], why), True)
