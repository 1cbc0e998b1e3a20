"""Mailboxes (.mbox): a list of the messages, each of which is a document of its own."""

from __future__ import annotations

import re
from dataclasses import replace
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING, Final

from kb.formats.containers.mbox import split, without_separator
from kb.formats.extracted import Attachment
from kb.formats.readers.eml import header_text
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import as_utf8, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.formats.extracted import Extracted

MOST: Final = 100
"""How many files are taken out of one: a larger mailbox becomes mailboxes, which become messages."""

_IN_NO_NAME: Final = re.compile(r"[\\/:*?\"<>|\0-\x1f]+")
_NAME_CHARS: Final = 100


def read(data: bytes) -> Extracted:
    """Read a mailbox of several messages."""
    messages = split(as_utf8(data))
    text = TextBuilder()
    text.line(f"{len(messages)} messages")
    text.blank()
    files = _mailboxes(messages, text) if len(messages) > MOST else _messages(messages, text)
    return replace(text.build(), attachments=tuple(files))


def _messages(messages: Sequence[bytes], text: TextBuilder) -> list[Attachment]:
    files = []
    for number, message in enumerate(map(without_separator, messages), start=1):
        headers = BytesHeaderParser().parsebytes(message)
        date, sender, subject = (one_line(header_text(headers, name)) for name in ("Date", "From", "Subject"))
        text.line(" · ".join(filter(None, (date, sender, subject))))
        name = _IN_NO_NAME.sub("-", subject)[:_NAME_CHARS].strip() or "message"
        files.append(Attachment(f"{number:04} {name}.eml", message))
    return files


def _mailboxes(messages: Sequence[bytes], text: TextBuilder) -> list[Attachment]:
    size = MOST
    while size * MOST < len(messages):
        size *= MOST
    files = []
    for start in range(0, len(messages), size):
        batch = messages[start : start + size]
        files.append(Attachment(f"{start + 1:04}-{start + len(batch):04}.mbox", b"".join(batch)))
        text.line(files[-1].filename)
    return files
