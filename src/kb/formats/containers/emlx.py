"""Messages as Apple Mail keeps them (.emlx): their length on the first line, and a list of properties behind them."""

from __future__ import annotations

import re
from typing import Final

_LENGTH: Final = re.compile(rb"\s{0,99}(\d{1,10})[ \t]{0,99}\r?\n(?=(?:>?From [^\r\n]*\r?\n)?[!-9;-~]+:)")


def message_in(data: bytes) -> bytes:
    """Return the message in a file of Apple Mail's; any other file as it is."""
    length = _LENGTH.match(data)
    return data[length.end() : length.end() + int(length[1])] if length else data
