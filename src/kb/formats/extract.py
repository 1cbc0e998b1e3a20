"""Reads a file's type, text and structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import PurePath

from kb.api import file_types
from kb.api.errors import Unreadable
from kb.api.file_types import IMAGE, MARKED_UP, MARKUPS
from kb.api.omissions import together
from kb.formats.containers.cms import signed_content
from kb.formats.detect import detect
from kb.formats.installed_types import ADDED, FORMATS
from kb.formats.text.base64_data import without_embedded_bytes
from kb.formats.text.encoding import as_utf8, clean, one_line
from kb.formats.text.extracted import MOST_FILES, NO_TEXT, Attachment, Extracted, attached_room


def extract(data: bytes, filename: str, *, pictures: bool = False) -> tuple[str, Extracted]:
    """Return the type and the content of a file, which its sender called `filename`.

    With `pictures`, its pictures are part of its content, and may be all of it.

    Raises:
        Unreadable: the file contains no text; the message gives the reason for people to read.
    """
    doc_type, extracted = _read(data, filename)
    if not pictures:
        extracted = _without_pictures(extracted)
    extracted = _with_names(limited(extracted, len(data)))
    if doc_type == IMAGE:
        extracted = Extracted.of_text(f"{_name(filename)}\n")
    if not extracted.shows_text and not extracted.pictures:
        raise Unreadable(NO_TEXT)
    return doc_type, extracted


def _without_pictures(extracted: Extracted) -> Extracted:
    """Return a document without its pictures; pictures without a name are counted."""
    unnamed = sum(not picture.name for picture in extracted.pictures)
    return replace(extracted, pictures=(), omitted=together(extracted.omitted, {"pictures": unnamed}))


def reader(doc_type: str, suffix: str = "") -> Callable[[bytes], Extracted]:
    """Return the function that reads a file of this type with this suffix.

    Raises:
        Unreadable: the module of another package cannot be imported, or lacks the function.
    """
    format_ = FORMATS[doc_type]
    module = MARKUPS.get(suffix, format_.reader) if doc_type in MARKED_UP else format_.reader
    try:
        read: Callable[[bytes], Extracted] = import_module(module).read
    except (Exception, SystemExit) as error:
        if format_ in file_types.FORMATS:
            raise
        raise Unreadable(f"its reader {module} cannot be used: {type(error).__name__}: {error}") from error
    return read


def limited(extracted: Extracted, size: int) -> Extracted:
    """Return a document without the attachments that exceed the limit for a file of `size` bytes."""
    files = tuple(_fitting(extracted.attachments[:MOST_FILES], attached_room(size)))
    left_out = len(extracted.attachments) - len(files)
    return replace(extracted, attachments=files, omitted=together(extracted.omitted, {"files": left_out}))


def _fitting(files: Iterable[Attachment], room: int) -> Iterator[Attachment]:
    for file in files:
        if len(file.data) <= room:
            room -= len(file.data)
            yield file


def _name(filename: str) -> str:
    return one_line(clean(PurePath(filename).name)) or "picture"


def _with_names(extracted: Extracted) -> Extracted:
    """Return a document with at least the names of its attachments as text, if it has any."""
    if extracted.shows_text or not extracted.attachments:
        return extracted
    names = ", ".join(one_line(clean(file.filename)) for file in extracted.attachments)
    named = Extracted.of_text(f"Attachments: {names}\n")
    pictures = tuple(picture._replace(place=0, page=None) for picture in extracted.pictures)
    return replace(extracted, text=named.text, sections=named.sections, pictures=pictures)


def _read(data: bytes, filename: str) -> tuple[str, Extracted]:
    if signed := signed_content(data):
        data, filename = signed, filename.removesuffix(".p7m")
    suffix = PurePath(filename.lower()).suffix
    try:
        doc_type = detect(data, filename)
        read = reader(doc_type, suffix)
        if FORMATS[doc_type].is_text:
            data = without_embedded_bytes(as_utf8(data), " " if doc_type == "csv" else ", ")
        extracted = read(data)
        if not isinstance(extracted, Extracted):
            raise Unreadable(f"its reader {FORMATS[doc_type].reader} returned no Extracted")
        return doc_type, extracted
    except (Unreadable, MemoryError):
        raise
    except ImportError as error:
        if suffix not in ADDED:
            raise
        raise Unreadable(f"its reader cannot be used: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise Unreadable(f"the parser failed: {type(error).__name__}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic in Rust is not an Exception
            raise
        raise Unreadable("the parser failed with an internal error") from error
