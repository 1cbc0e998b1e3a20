"""The text of a note's file: the note's own text, with the fields of kb that it does not say itself.

These are tags and a title that somebody gave the note in kb. kb knows which fields it wrote, and changes no others, so
that reading a file which nobody changed returns the text byte for byte.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from kb.ingest.draft import first_line
from kb.markdown.front_matter import front_matter
from kb.markdown.tags import tags_in
from kb.notes_folder.properties import Properties, Value, has_other_form, properties_of
from kb.store.rows import Document

FIELDS: Final = frozenset({"kb", "title", "tags", "kb_tags", "created", "kb_created", "updated", "replaces"})
"""The fields that kb writes, or wrote in earlier versions. `kb_tags` replaces `tags` if the text has its own."""

NUMBER: Final = re.compile("[0-9]{1,18}")
"""The number of a note; the database has no longer ones."""

NOTHING: Final = ("", "~", "null")

BLOCK: Final = "---"
"""An entry of the fields of kb if it made the front matter itself."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file when it was written or read last: the text of the note, its title, its tags, and the fields of kb in it.

    A title or tags that the file did not show are None. The fields are None in records of earlier versions.
    """

    text: str
    title: str | None = None
    tags: tuple[str, ...] | None = None
    fields: Set[str] | None = frozenset()

    def packed(self) -> bytes:
        """Return it in the form that the database keeps."""
        fields = None if self.fields is None else sorted(self.fields)
        return zlib.compress(json.dumps([self.text, self.title, self.tags, fields]).encode())

    @classmethod
    def unpacked(cls, packed: bytes) -> FileContent:
        """Return it from the form that the database keeps."""
        text, title, tags, *fields = json.loads(zlib.decompress(packed))
        known = frozenset(fields[0]) if fields and fields[0] is not None else None
        return cls(text, title, None if tags is None else tuple(tags), known)

    @property
    def own(self) -> Set[str]:
        """The fields of the file that are kb's."""
        return fields_beside(self.text) if self.fields is None else self.fields


@dataclass(frozen=True, slots=True)
class Claim:
    """The note that a file says it belongs to, and the time when that note was added."""

    document_id: int
    created: str | None


def fields_beside(text: str) -> Set[str]:
    """Return the fields that are kb's in a file with this text, if it is unknown which ones kb wrote."""
    own = properties_of(text)
    return FIELDS - own.names if own and own.names else FIELDS | {BLOCK}


def own_title(text: str) -> str | None:
    """Return the title in a field of a note's own text; empty if the field is, None if there is none of words."""
    block = properties_of(text)
    if not block or "title" not in block.names:
        return None
    title = block.read({"title": "title"}).title
    return title or ("" if block.scalar("title").lower() in NOTHING else None)


def with_title(text: str, title: str) -> str:
    """Return a text whose own field has another title, and else the same bytes; the same text if that is not safe."""
    block = properties_of(text)
    if not block:
        return text
    title, after = " ".join(title.split()), block.saying("title", title)
    now, fields = properties_of(after), front_matter(after)
    same = front_matter(text)._replace(length=fields.length, title=fields.title)
    is_safe = now is not None and [entry.name for entry in now.entries] == [entry.name for entry in block.entries]
    is_said = own_title(after) == title and fields.title in (title, None)
    return after if is_safe and is_said and same == fields else text


def claim(written: str) -> Claim | None:
    """Return the note that a file names."""
    block = properties_of(written)
    number = block.scalar("kb") if block else ""
    if block is None or not NUMBER.fullmatch(number):
        return None
    return Claim(int(number), block.scalar("kb_created") or block.scalar("created") or None)


def parsed(written: str, own: Set[str]) -> FileContent:
    """Return the note's text, title and tags from its file, in which the fields `own` are kb's.

    Beside `kb_tags`, the field `tags` is the text's own: kb writes the longer name only if the text has the other one.
    """
    block = properties_of(written)
    tags = () if own & {"tags", "kb_tags"} else None
    if not block:
        return FileContent(written, None, tags)
    present = own & {*block.names, BLOCK}
    present -= {name.removeprefix("kb_") for name in present if name.startswith("kb_")}
    shown = block.read({name: name.removeprefix("kb_") for name in ("title", "tags", "kb_tags") if name in present})
    text = written
    for name in present - {BLOCK}:
        text = _fields(text).without(name)
    rest = _fields(text)
    if BLOCK in own and rest.is_empty:
        text = text[rest.after :]
    return FileContent(text, shown.title, shown.tags if tags is not None else None, frozenset(present))


def rendered(
    note: Document,
    text: str,
    name: str = "",
    *,
    file: FileContent | None = None,
    written: str = "",
    with_id: bool = False,
) -> tuple[str, FileContent]:
    """Return the text of a note's file, and its content as `parsed` reads it.

    Args:
        note: the note.
        text: its text.
        name: the title that it has from the name of its file.
        file: the content of the file before.
        written: the text of the file before.
        with_id: whether to write the note's id.
    """
    result, own = _kept(text, written, file) if file else (text, frozenset[str]())
    block = properties_of(result)
    wanted = _wanted(note, text, name, block if own else None, own, with_id=with_id)
    if not wanted or (has_other_form(text) and BLOCK not in own):
        return text, FileContent(text)
    for name in own - {BLOCK} - wanted.keys():
        result = _fields(result).without(name)
    if not block:
        end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
        result, own = f"---{end}---{end}{result}", own | {BLOCK}
    for name in reversed(wanted):
        present = _fields(result)
        if name not in own or not _says(present, name, wanted[name]):
            result = present.having(name, wanted[name])
    return result, parsed(result, (own & {BLOCK}) | wanted.keys())


def _kept(text: str, written: str, file: FileContent) -> tuple[str, Set[str]]:
    """Return a file with the new text of its note, and the fields of kb that are left in it.

    Unless the front matter of the text has changed, the front matter of the file stays the same.
    """
    before, block = parsed(written, file.own), properties_of(written)
    own = before.fields or frozenset()
    if not block or not own:
        return text, frozenset()
    old, new = properties_of(before.text), properties_of(text)
    if BLOCK in own and written.endswith(before.text) and len(before.text) == len(written) - block.after:
        return (written[: block.after] + text, own) if not new else (text, frozenset())
    if old and new and before.text[: old.after] == text[: new.after]:
        return written[: block.after] + text[new.after :], own
    return text, frozenset()


def _wanted(
    note: Document, text: str, name: str, block: Properties | None, own: Set[str], *, with_id: bool
) -> dict[str, Value]:
    """Return the fields that the file of a note needs.

    Fields of earlier versions that are in the file stay there.
    """
    theirs = properties_of(text)
    names = theirs.names if theirs else frozenset[str]()
    wanted = dict[str, Value]()
    if "kb" in own or (with_id and "kb" not in names):
        wanted["kb"] = note.id
    is_named = _has_given_title(note, text) and note.title != name
    if "title" not in names and (("title" in own and "kb" in own) or is_named):
        wanted["title"] = note.title
    tags_name = "kb_tags" if names & {"tags", "tag"} else "tags"
    listed = block.read({tags_name: "tags"}).tags if block and tags_name in own else ()
    tags = [tag for tag in listed if tag in note.tags]
    said = {tag.casefold() for tag in (*note.own_tags, *tags_in(text), *tags)}
    tags += [tag for tag in note.tags if tag.casefold() not in said]
    if tags and tags_name not in names:
        wanted[tags_name] = tags
    stamps = {"created": note.created_at, "kb_created": note.created_at, "updated": note.updated_at}
    stamps |= {"replaces": str(note.replaces or "")}
    return wanted | {name: value for name, value in stamps.items() if value and name in own}


def _has_given_title(note: Document, text: str) -> bool:
    """Return whether a note has a title that its text does not say."""
    return note.title_given and note.title != first_line(text[front_matter(text).length :])


def _says(block: Properties, name: str, value: Value) -> bool:
    """Return whether a field has a value already, in whatever form."""
    if isinstance(value, list):
        return set(block.read({name: "tags"}).tags) == set(value)
    return (block.read({name: name}).title if name == "title" else block.scalar(name)) == str(value)


def _fields(text: str) -> Properties:
    """Return the fields of a text that can have some."""
    return properties_of(text) or Properties(text, "yaml", 0, 0, ())
