"""Evernote exports (.enex): each note is a document with its title, tags, dates, source and files.

An export of several notes becomes a list of them, each an export of its own; an export of one note becomes that note.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import md5
from html import escape
from mimetypes import guess_extension
from typing import Final

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.zip import xml_parser
from kb.formats.detect import is_media
from kb.formats.readers.html import write_fragment
from kb.formats.text.base64_data import embedded_text, without_embedded
from kb.formats.text.batches import MAX_PARTS, batch_name, batches, filename_from_title
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import as_utf8, clean, one_line
from kb.formats.text.extracted import MOST_FILES, Attachment, Extracted

_NOTE: Final = re.compile(rb"<note(?:\s[^<>]*)?>")
_END: Final = b"</note>"
_CUT_OFF: Final = b"]]></content></note>"
_TITLE: Final = re.compile(rb"<title(?:\s[^<>]*)?>((?:[^<]|<!\[CDATA\[)*+)</title")
_EXPORT: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n<en-export>%b</en-export>\n'
_MOMENT: Final = re.compile(r"\s*(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)")
_MEDIA: Final = re.compile(r"<en-media\b(?P<attributes>(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+)>")
_HASH: Final = re.compile(r"(?i)\bhash\s*=\s*[\"']([0-9a-f]{32})")
_TODO: Final = re.compile(r"(?i)<en-todo\b([^<>]*)>")
_CRYPT: Final = re.compile(r"(?is)<en-crypt\b[^<>]*>(?:(?!<en-crypt).)*?</en-crypt\s*>")
_CONTENT: Final = re.compile(r"\A.*?<en-note\b[^<>]*>", re.DOTALL)
_ABOUT: Final = {
    "source-url": "Source",
    "author": "Author",
    "place-name": "Place",
    "reminder-time": "Reminder",
}
_NO_TEXT: Final = "the Evernote export contains no note"


@dataclass
class _File:
    """A file in a note; the text refers to it by its hash."""

    name: str
    media_type: str
    data: bytes = b""

    @property
    def is_picture(self) -> bool:
        return self.media_type.startswith("image/")

    @property
    def words(self) -> str:
        return embedded_text(self.media_type, len(self.data)) if self.is_picture else f"[{self.name}]"


@dataclass
class _Note:
    title: str = ""
    content: str = ""
    created: str = ""
    updated: str = ""
    tags: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    files: dict[str, _File] = field(default_factory=dict)
    more_files: int = 0


def read(data: bytes) -> Extracted:
    notes = list(_notes(as_utf8(data)))
    if not notes:
        raise Unreadable(_NO_TEXT)
    return _rendered(_parsed(notes[0])) if len(notes) == 1 else _list(notes)


def _notes(data: bytes) -> Iterator[bytes]:
    """Yield the source of each note; the last one may be cut off."""
    place = 0
    while begins := _NOTE.search(data, place):
        end = data.find(_END, begins.end())
        place = end + len(_END) if end >= 0 else len(data)
        yield data[begins.start() : place] + (b"" if end >= 0 else _CUT_OFF)


def _list(notes: Sequence[bytes]) -> Extracted:
    text, files = TextBuilder(), list[Attachment]()
    text.line(f"{len(notes)} notes")
    text.blank()
    for batch in batches(notes) if len(notes) > MAX_PARTS else ():
        files.append(Attachment(batch_name(batch, ".enex"), _EXPORT % b"\n".join(batch.items)))
        text.line(files[-1].filename)
    for number, note in enumerate(notes if len(notes) <= MAX_PARTS else (), start=1):
        title = _title(note)
        files.append(Attachment(f"{number:04} {filename_from_title(title) or 'note'}.enex", _EXPORT % note))
        text.line(title or "(untitled)")
    return replace(text.build(), attachments=tuple(files))


def _title(note: bytes) -> str:
    match = _TITLE.search(note[:65536])
    if not match:
        return ""
    root = _root(b"<title>%b</title>" % match[1])
    return one_line(clean(root.text or "")) if root is not None else ""


def _root(markup: bytes) -> etree._Element | None:
    # A file in a note is text of any length. The parser does not expand entities, the other way to build a bomb.
    try:
        return etree.fromstring(markup, xml_parser(encoding="utf-8", load_dtd=False, huge_tree=True, recover=True))
    except etree.XMLSyntaxError:
        return None


def _parsed(markup: bytes) -> _Note:
    root, note = _root(markup), _Note()
    for element in root if root is not None else ():
        match element.tag:
            case "title":
                note.title = one_line(clean(element.text or ""))
            case "content":
                note.content = element.text or "".join(etree.tostring(child, encoding="unicode") for child in element)
            case "created" | "updated":
                setattr(note, element.tag, _moment(element.text or ""))
            case "tag":
                note.tags.append(one_line(clean(element.text or "")))
            case "note-attributes":
                note.about |= {str(child.tag): one_line(clean(child.text or "")) for child in element}
            case "task":
                note.tasks.append(_task(element))
            case "resource" if len(note.files) >= MOST_FILES:
                note.more_files += 1
            case "resource":
                file = _file(element, len(note.files) + 1)
                digest = md5(file.data, usedforsecurity=False).hexdigest()
                note.files[digest if file.data else file.name] = file
    return note


def _task(task: etree._Element) -> str:
    title = one_line(clean(task.findtext("title") or ""))
    is_done = task.findtext("taskStatus") == "completed"
    due = _moment(task.findtext("dueDate") or "").partition("T")[0]
    return f"[{'x' if is_done else ' '}] {title}" + (f" (due {due})" if due else "")


def _moment(written: str) -> str:
    match = _MOMENT.match(written)
    return "{}-{}-{}T{}:{}:{}Z".format(*match.groups()) if match else ""


def _file(resource: etree._Element, number: int) -> _File:
    media_type = one_line(resource.findtext("mime") or "") or "application/octet-stream"
    name = one_line(clean(resource.findtext("resource-attributes/file-name") or ""))
    try:
        data = b64decode(resource.findtext("data") or "")
    except ValueError:
        data = b""
    return _File(name or f"file {number}{guess_extension(media_type) or ''}", media_type, data)


def _rendered(note: _Note) -> Extracted:
    text = TextBuilder()
    if note.title:
        text.heading(1, note.title)
    for name, label in _ABOUT.items():
        if said := note.about.get(name):
            text.line(f"{label}: {_moment(said) or said}")
    crypts = len(_CRYPT.findall(note.content))
    if crypts:
        text.omit("encrypted", crypts)
    text.blank()
    write_fragment(_markup(note), text, below=1)
    text.omit("files", note.more_files)
    for task in note.tasks:
        text.line(task)
    attachments = tuple(_written_files(note, text))
    title = note.title or None
    extracted = text.build(title, note.created or note.updated or None)
    return replace(extracted, attachments=attachments, tags=tuple(filter(None, note.tags)))


def _markup(note: _Note) -> str:
    """Return the note as a page, with text in place of its files, checkboxes and encrypted parts."""
    markup = _CONTENT.sub("<div>", note.content, count=1)
    markup = _CRYPT.sub("[encrypted]", markup)
    markup = _TODO.sub(lambda match: "[x] " if "true" in match[1].lower() else "[ ] ", markup)
    return without_embedded(_MEDIA.sub(partial(_words, note), markup))


def _words(note: _Note, media: re.Match[str]) -> str:
    match = _HASH.search(media["attributes"])
    file = note.files.get(match[1].lower()) if match else None
    return f" {escape(file.words, quote=False)} " if file else " "


def _written_files(note: _Note, text: TextBuilder) -> Iterator[Attachment]:
    """Yield the files that become documents; pictures are added to the text, and other media are only named."""
    for file in note.files.values():
        if not file.data:
            text.omit("files")
        elif file.is_picture:
            text.picture(partial(bytes, file.data), file.name)
        elif is_media(file.data, file.media_type):
            text.line(f"Attachment without text: {file.name}")
        else:
            yield Attachment(file.name, file.data)
