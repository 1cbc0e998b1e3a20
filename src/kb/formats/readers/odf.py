"""OpenDocument texts and presentations (.odt, .odp), a text's headers and footers once at its end.

Deletions under revision are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.containers.properties import Properties
from kb.formats.containers.zip import Archive, attribute, local_name
from kb.formats.text.builder import TextBuilder, paged
from kb.formats.text.dates import first_date
from kb.formats.text.encoding import one_line
from kb.formats.text.margins import write_margins
from kb.formats.text.tables import write_table
from kb.formats.text.titles import meaningful

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from kb.formats.extracted import Extracted

_UNSEEN: Final = {
    *("tracked-changes", "forms", "sequence-decls", "variable-decls", "user-field-decls", "ruby-text", "note-citation"),
    *("settings", "table-header-columns", "table-column", "date-time-decl", "footer-decl", "header-decl"),
}
_CHARACTERS: Final = {"tab": "\t", "line-break": "\n"}
_BESIDE: Final = {"note", "annotation", "frame", "text-box", "custom-shape", "ruby-text", *_UNSEEN}
_SPACES: Final = re.compile(r"[ \t\r\n]+")
_TITLE: Final = 0
_TABLE: Final = 9
_SLIDE: Final = 1


def read(data: bytes) -> Extracted:
    """Read an OpenDocument file.

    Raises:
        Unreadable: the file is damaged or encrypted.
    """
    archive = Archive(data)
    if b"manifest:encryption-data" in (archive.read("META-INF/manifest.xml") or b""):
        raise Unreadable("the document is encrypted: it needs a password to be read")
    content = archive.xml("content.xml")
    body = next(iter(content.iterfind("{*}body/*")), None) if content is not None else None
    if content is None or body is None:
        raise Unreadable("the document is damaged: its content is missing")
    title, date = properties(archive)
    if local_name(body) == "presentation":
        slides = [_slide(page, archive) for page in body.iterfind("{*}page")]
        return paged(title or (slides[0].opening_title() if slides else None), slides, date)
    writer = _Writer(_title_styles(content), archive)
    writer.blocks(body)
    title = title or writer.text.opening_title()
    writer.notes()
    write_margins(writer.text, _margins(archive))
    return writer.text.build(title, date)


def properties(archive: Archive) -> Properties:
    """Return what a document says of itself; its date is when it was created, else when it was changed last."""
    meta = archive.xml("meta.xml")
    if meta is None:
        return Properties()
    dates = (meta.findtext(f"{{*}}meta/{{*}}{name}") for name in ("creation-date", "date"))
    return Properties(meaningful(meta.findtext("{*}meta/{*}title")), first_date(*dates))


def _title_styles(content: etree._Element) -> set[str]:
    """Return the names of the paragraph styles that show the document's title."""
    styles = content.iterfind("{*}automatic-styles/{*}style")
    derived = {attribute(style, "name") for style in styles if attribute(style, "parent-style-name") == "Title"}
    return {"Title", *filter(None, derived)}


def _margins(archive: Archive) -> Iterator[str]:
    """Yield the lines of the headers and footers that are shown."""
    styles = archive.xml("styles.xml")
    for part in styles.iterfind("{*}master-styles/{*}master-page/*") if styles is not None else ():
        if local_name(part).startswith(("header", "footer")) and attribute(part, "display") != "false":
            yield from _paragraphs(part)


def _slide(page: etree._Element, archive: Archive) -> TextBuilder:
    """Return a slide: its title, the other frames, the notes."""
    writer = _Writer(set(), archive)
    frames = [child for child in page if local_name(child) != "notes"]
    for frame in sorted(frames, key=lambda frame: attribute(frame, "class") != "title"):
        if attribute(frame, "class") == "title":
            title = one_line(" ".join(_inline(paragraph) for paragraph in frame.iter("{*}p")))
            writer.text.heading(_SLIDE, title)
        else:
            writer.blocks(frame)
            writer.text.blank()
    for notes in page.iterfind("{*}notes"):
        paragraphs = [_inline(paragraph).strip() for paragraph in notes.iter("{*}p")]
        if any(paragraphs):
            writer.text.paragraph("Notes:\n" + "\n".join(filter(None, paragraphs)))
    writer.notes()
    return writer.text


class _Writer:
    def __init__(self, title_styles: set[str], archive: Archive) -> None:
        self.text = TextBuilder()
        self._archive = archive
        self._title_styles = title_styles
        self._notes: list[tuple[str, str]] = []

    def blocks(self, container: etree._Element, depth: int = 0) -> None:
        """Write what stands in `container`, `depth` lists deep."""
        for child in container:
            name = local_name(child)
            if name == "h":
                self._heading(child)
            elif name == "p":
                self._paragraph(child, depth)
            elif name == "list":
                self._list(child, depth + 1)
            elif name == "table":
                self._table(child)
            elif name not in _UNSEEN:
                if name == "image":
                    self._picture(child)
                self.blocks(child, depth)  # what stands on a picture, too

    def notes(self) -> None:
        """Write the footnotes and comments under headings of their own."""
        for kind in ("Footnotes", "Comments"):
            notes = [note for of_kind, note in self._notes if of_kind == kind and note]
            if notes:
                self.text.heading(1, kind)
            for note in notes:
                self.text.line(f"- {note}")

    def _heading(self, heading: etree._Element) -> None:
        level = attribute(heading, "outline-level") or ""
        if title := _inline(heading).strip():
            self.text.heading(int(level) if level.isdecimal() else 1, title)
        self._beside(heading)

    def _paragraph(self, paragraph: etree._Element, depth: int) -> None:
        text = _inline(paragraph).strip()
        if text and attribute(paragraph, "style-name") in self._title_styles:
            self.text.heading(_TITLE, text)
        elif text and depth:
            self.text.line(text)
        elif text:
            self.text.paragraph(text)
        self._beside(paragraph)

    def _beside(self, paragraph: etree._Element) -> None:
        """What hangs on a paragraph without being part of its line: notes, comments, text frames, pictures."""
        for element in paragraph.iter("{*}note-body", "{*}annotation", "{*}text-box"):
            name = local_name(element)
            if name == "text-box":
                self.blocks(element)
            else:
                kind = "Footnotes" if name == "note-body" else "Comments"
                self._notes.append((kind, one_line(" ".join(_paragraphs(element)))))
        for image in paragraph.iter("{*}image"):
            self._picture(image)

    def _picture(self, image: etree._Element) -> None:
        self.text.picture(self._archive.picture(attribute(image, "href") or ""))

    def _list(self, items: etree._Element, depth: int) -> None:
        for item in items:
            for child in item:
                name = local_name(child)
                if name == "list":
                    self._list(child, depth + 1)
                elif name in {"p", "h"}:
                    if text := one_line(_inline(child)):
                        self.text.line(f"{'  ' * min(depth - 1, 8)}- {text}")
                    self._beside(child)
                else:
                    self.blocks(child, depth)
        if depth == 1:
            self.text.blank()

    def _table(self, table: etree._Element) -> None:
        self.text.blank()
        rows = [row for row in table.iter("{*}table-row") if next(row.iterancestors("{*}table")) is table]
        cells = [[cell for cell in row if local_name(cell) == "table-cell"] for row in rows]
        if any(next(cell.iter("{*}table"), None) is not None for row in cells for cell in row):
            for cell in (cell for row in cells for cell in row):
                self.blocks(cell)
        else:
            write_table(self.text, [[" ".join(_paragraphs(cell)) for cell in row] for row in cells], level=_TABLE)


def _paragraphs(container: etree._Element) -> Iterator[str]:
    for paragraph in container.iter("{*}p", "{*}h"):
        yield _inline(paragraph)


def _inline(element: etree._Element) -> str:
    return "".join(_pieces(element))


def _pieces(element: etree._Element) -> Iterator[str]:
    """Yield the text of a paragraph; what hangs on it is written elsewhere."""
    yield _spaced(element.text)
    for child in element:
        name = local_name(child)
        if name == "s":
            count = attribute(child, "c") or ""
            yield " " * (min(int(count), 80) if count.isdecimal() else 1)
        elif name in _CHARACTERS:
            yield _CHARACTERS[name]
        elif name not in _BESIDE:
            yield from _pieces(child)
        yield _spaced(child.tail)


def _spaced(text: str | None) -> str:
    """White space in the file is one space in the document; more is written as elements."""
    return _SPACES.sub(" ", text or "")
