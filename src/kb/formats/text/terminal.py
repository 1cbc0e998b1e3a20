"""The signs with which a program controls a terminal, such as colours: they occur inside words, and nobody reads them.

See ECMA-48, https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
"""

from __future__ import annotations

import re
from typing import Final

_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,200}[ -/]{0,9}(?P<final>[@-~])"  # colours, movements of the cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,9999}(?:\x07|\x1b\\|\x9c)"  # titles of windows, addresses of links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]{0,9999}(?:\x1b\\|\x9c)"
    r"|\x1b[ -/]{1,3}[0-~]|\x1b[0-OQ-WYZ`-~]"
)
_MOVES: Final = frozenset("ABCDEFGHIdef`")
"""The last letters of sequences that put the following text in another place, so that it is another word."""

_STRUCK_OVER: Final = re.compile(r"[^\n\x08]\x08")
"""A character and a backspace: manuals print a letter twice for bold, and a low line below it for italics."""


def without_terminal_signs(text: str) -> str:
    if "\x08" in text:
        text = _STRUCK_OVER.sub("", text)
    if "\x1b" in text or "\x9b" in text:
        text = _SEQUENCE.sub(lambda sequence: " " if sequence["final"] in _MOVES else "", text)
    return text
