"""Files that contain messages: mailboxes (mbox, RFC 4155) and Apple Mail files.

In a mailbox, each message follows a line that begins with "From ". Apple Mail stores each message in a file (.emlx),
with its length on the first line and a list of properties after it.
"""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import Final

# A line of a message may also begin like this, but the separator contains a time, and a header follows it.
_SEPARATOR: Final = re.compile(
    rb"(?m)^From (?=[^\n]*?\d:\d\d)(?=[^\n]*?\b(?:19|20)\d\d\b)[^\n]*\n(?=>From |[!-9;-~]+:)"
)
_FIRST: Final = re.compile(rb"From [^\r\n]*\r?\n(?:>From [^\r\n]*\r?\n)*+(?=[!-9;-~]+:)")
_QUOTED: Final = re.compile(rb"(?m)^>(>*From )")
_LENGTH: Final = re.compile(rb"\s{0,99}(\d{1,10})[ \t]{0,99}\r?\n(?=(?:>?From [^\r\n]*\r?\n)?[!-9;-~]+:)")


def begins_message(data: bytes) -> bool:
    """Return whether data begins with the line that precedes a message in a mailbox."""
    return _SEPARATOR.match(data) is not None


def is_mailbox(data: bytes) -> bool:
    return len(list(islice(_SEPARATOR.finditer(data), 2))) > 1


def split(data: bytes) -> list[bytes]:
    """Return the messages, each with its separator line."""
    starts = [match.start() for match in _SEPARATOR.finditer(data)]
    return [data[start:end] for start, end in pairwise([*starts, len(data)])]


def without_separator(message: bytes) -> bytes:
    """Return a message without the lines and marks of its mailbox; other messages are returned unchanged."""
    first = _FIRST.match(message)
    return _QUOTED.sub(rb"\1", message[first.end() :]) if first else message


def message_in(data: bytes) -> bytes:
    """Return the message in an Apple Mail file; other files are returned unchanged."""
    length = _LENGTH.match(data)
    return data[length.end() : length.end() + int(length[1])] if length else data
