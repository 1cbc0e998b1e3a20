"""The programs that read documents of old office programs where they are installed: antiword, catdoc, LibreOffice…

Each kind has several; the next one is tried where one fails.
"""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kb.formats.opaque import Kind


class _Program(NamedTuple):
    """What a program is called, and how it prints the text of the file `$0`."""

    name: str
    arguments: str


# HOME is a folder of its own for each run. LibreOffice converts to a format that kb reads with all its structure.
_LIBREOFFICE: Final = (
    '--headless --norestore "-env:UserInstallation=file://$HOME/profile" --convert-to {suffix} --outdir "$HOME/out" "$0"'
    ' >&2 && cat "$HOME"/out/*'
)
_PROGRAMS: Final[dict[str, tuple[_Program, ...]]] = {
    "doc": (
        _Program("antiword", '-w 0 -m UTF-8.txt "$0"'),
        _Program("catdoc", '-w -d utf-8 "$0"'),
        _Program("textutil", '-convert html -stdout "$0"'),
        _Program("soffice", _LIBREOFFICE.format(suffix="docx")),
    ),
    "ppt": (_Program("soffice", _LIBREOFFICE.format(suffix="pptx")), _Program("catppt", '-d utf-8 "$0"')),
    "wpd": (_Program("wpd2text", '"$0"'), _Program("soffice", _LIBREOFFICE.format(suffix="docx"))),
}


def old_office_command(kind: Kind) -> tuple[str, str] | None:
    """Return the program that reads documents of a kind, and a line for the shell; None if none is installed."""
    found = [(each, path) for each in _PROGRAMS.get(kind, ()) if (path := shutil.which(each.name))]
    if not found:
        return None
    line = " || ".join(f"{{ {shlex.quote(path)} {each.arguments}; }}" for each, path in found)
    return found[0][0].name, line
