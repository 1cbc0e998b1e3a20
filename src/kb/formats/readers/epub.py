"""EPUB books: the chapters in reading order, under their own headings or else their names in the table of contents."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.zip import Archive, attribute, local_name
from kb.formats.readers.html import decode_html, expanded, write_fragment
from kb.formats.text.builder import TextBuilder
from kb.formats.text.dates import first_date
from kb.formats.text.encoding import one_line
from kb.formats.text.extracted import Extracted
from kb.formats.text.titles import meaningful

_NO_PAGES: Final = re.compile(r"(?i)(?:image/(?!svg)|audio/|video/|font/|text/css|application/x-dtbncx)")
"""The other types in a reading order are chapters: programs write any type for them, or none."""

_CHAPTER: Final = 1
_ISSUED: Final = {None, "publication", "original-publication", "issued", "creation"}
_FIRST_PRINTED: Final = 1450


def read(data: bytes) -> Extracted:
    book = _Book(Archive(data))
    text = TextBuilder()
    damage: Unreadable | None = None
    for chapter in book.chapters():
        try:
            _write_chapter(book, chapter, text)
        except Unreadable as error:
            damage = error
            text.omit("parts")
    document = text.build(book.title(), book.date())
    if damage and not document.shows_text:
        raise damage
    return document


def _write_chapter(book: _Book, name: str, text: TextBuilder) -> None:
    own = TextBuilder()
    page = book.archive.read(name)
    if page is None:
        raise Unreadable(f"the book is damaged: {name} in it is missing")
    markup = expanded(decode_html(page))
    write_fragment(markup, own, below=0)
    if not own.headings and own.build().text and (label := book.labels.get(name)):
        text.heading(_CHAPTER, label)
    text.blank()
    write_fragment(markup, text, below=0)


class _Book:
    """The package document, which lists the parts of a book."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        container = archive.xml("META-INF/container.xml")
        roots = container.iter("{*}rootfile") if container is not None else ()
        self._name = next((root.get("full-path", "") for root in roots), "")
        package = archive.xml(self._name)
        if package is None:
            raise Unreadable("the book is damaged: its package document is missing")
        self._package = package
        encryption = self.archive.xml("META-INF/encryption.xml")
        references = encryption.iter("{*}CipherReference") if encryption is not None else ()
        # Fonts are often obfuscated this way; pages are encrypted only to keep other programs from reading them.
        if any(
            reference.get("URI", "").lower().endswith((".xhtml", ".html", ".htm", ".xml")) for reference in references
        ):
            raise Unreadable("the book is encrypted (DRM): only the shop's own program can read it")
        items = package.iterfind("{*}manifest/{*}item")
        self._items = {item.get("id", ""): item for item in items}
        self.labels = self._labels()

    def title(self) -> str | None:
        title = next(self._package.iterfind("{*}metadata/{*}title"), None)
        return meaningful("".join(title.itertext())) if title is not None else None

    def date(self) -> str | None:
        dates = [date for date in self._package.iterfind("{*}metadata/{*}date") if attribute(date, "event") in _ISSUED]
        return first_date(*(date.text for date in dates), earliest=_FIRST_PRINTED)

    def chapters(self) -> Iterator[str]:
        """Yield the names of the chapters in reading order."""
        contents = {self._path(item) for item in self._items.values() if _is_contents(item)}
        for reference in self._package.iterfind("{*}spine/{*}itemref"):
            item = self._items.get(reference.get("idref", ""))
            if item is not None and not self._is_beside(item) and self._path(item) not in contents:
                yield self._path(item)

    def _is_beside(self, item: etree._Element) -> bool:
        return _NO_PAGES.match(item.get("media-type", "")) is not None

    def _path(self, item: etree._Element) -> str:
        return _target(self._name, item.get("href", ""))

    def _labels(self) -> dict[str, str]:
        labels: dict[str, str] = {}
        for item in self._items.values():
            is_ncx = item.get("media-type") == "application/x-dtbncx+xml"
            if is_ncx or _is_contents(item):
                for target, label in self._entries(self._path(item)):
                    labels.setdefault(target, label)
        return labels

    def _entries(self, name: str) -> Iterator[tuple[str, str]]:
        try:
            root = self.archive.xml(name)
        except Unreadable:  # the chapters can be read without it
            return
        for element in root.iter() if root is not None else ():
            if local_name(element) == "navPoint":
                label, target = element.findtext("{*}navLabel/{*}text"), element.find("{*}content")
                yield _target(name, target.get("src", "") if target is not None else ""), one_line(label or "")
            elif local_name(element) == "a":
                yield _target(name, element.get("href", "")), one_line("".join(element.itertext()))


def _target(name: str, reference: str) -> str:
    path = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _is_contents(item: etree._Element) -> bool:
    return "nav" in item.get("properties", "").split()
