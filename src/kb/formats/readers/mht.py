"""Web pages saved in one file (.mht): the page and its frames, without style sheets and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.message import Message
from typing import Final

from kb.api.errors import Unreadable
from kb.formats.readers.eml import POLICY, header_text, part_content, part_filename, part_text
from kb.formats.readers.html import read_markup
from kb.formats.text.dates import iso_date
from kb.formats.text.encoding import as_utf8, one_line
from kb.formats.text.extracted import Attachment, Extracted
from kb.formats.text.titles import meaningful

_PAGES: Final = {"text/html", "application/xhtml+xml"}
_PARTS_OF_PAGES: Final = ("image/", "font/", "audio/", "video/", "multipart/", "text/css", "text/javascript")
_SCRIPTS: Final = ("javascript", "ecmascript", "json", "xml", "font", "octet-stream")


def read(data: bytes) -> Extracted:
    message = message_from_bytes(as_utf8(data).lstrip(b"\xef\xbb\xbf\r\n"), policy=POLICY)
    parts = [part for part in message.walk() if not part.is_multipart()]
    pages = [part for part in parts if part.get_content_type() in _PAGES] or [
        part for part in parts if part.get_content_type() == "text/plain"
    ]
    if not pages:
        raise Unreadable("the saved web page contains no page")
    start = str(message.get_param("start") or "")
    pages.sort(key=lambda part: part.get("Content-ID") != start)
    first, *frames = map(part_text, pages)
    page = read_markup(first, [frame for frame in dict.fromkeys(frames) if frame != first])
    title = page.title or meaningful(one_line(header_text(message, "Subject")))
    date = page.date or iso_date(header_text(message, "Date"))
    return replace(page, title=title, date=date, attachments=tuple(_files(message)))


def files_of_page(data: bytes) -> list[Attachment]:
    return list(_files(message_from_bytes(as_utf8(data), policy=POLICY)))


def _files(message: Message) -> Iterator[Attachment]:
    for part in message.walk():
        if not part.is_multipart() and _is_file(part):
            yield Attachment(part_filename(part), part_content(part))


def _is_file(part: Message) -> bool:
    """Return whether a part is a separate document, such as a PDF that a page shows."""
    kind = part.get_content_type()
    is_of_page = kind in _PAGES or kind.startswith(_PARTS_OF_PAGES) or kind.endswith(_SCRIPTS)
    return not is_of_page and kind != "text/plain"
