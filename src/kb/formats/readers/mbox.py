"""Mailboxes (.mbox): a list of the messages, each a separate document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from email.parser import BytesHeaderParser
from typing import Final

from kb.formats.containers.mailbox import split, without_separator
from kb.formats.readers.eml import header_text
from kb.formats.text.batches import MAX_PARTS, batch_name, batches, filename_from_title
from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import as_utf8, one_line
from kb.formats.text.extracted import Attachment, Extracted

_NOT_IN_NAMES: Final = re.compile(r"[\\/:*?\"<>|\0-\x1f]+")
"""Without `#`, unlike for other parts: existing documents of messages may contain it and are found by name."""


def read(data: bytes) -> Extracted:
    messages = split(as_utf8(data))
    text = TextBuilder()
    text.line(f"{len(messages)} messages")
    text.blank()
    files = _mailboxes(messages, text) if len(messages) > MAX_PARTS else _messages(messages, text)
    return replace(text.build(), attachments=tuple(files))


def _messages(messages: Sequence[bytes], text: TextBuilder) -> list[Attachment]:
    files = []
    for number, message in enumerate(map(without_separator, messages), start=1):
        headers = BytesHeaderParser().parsebytes(message)
        date, sender, subject = (one_line(header_text(headers, name)) for name in ("Date", "From", "Subject"))
        text.line(" · ".join(filter(None, (date, sender, subject))))
        name = filename_from_title(subject, _NOT_IN_NAMES) or "message"
        files.append(Attachment(f"{number:04} {name}.eml", message))
    return files


def _mailboxes(messages: Sequence[bytes], text: TextBuilder) -> list[Attachment]:
    files = []
    for batch in batches(messages):
        files.append(Attachment(batch_name(batch, ".mbox"), b"".join(batch.items)))
        text.line(files[-1].filename)
    return files
