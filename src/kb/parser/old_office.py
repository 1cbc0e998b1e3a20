"""The programs that read documents of old office programs where they are installed: antiword, catdoc and others.

Each kind has several; the next one is tried where one fails. LibreOffice does not start where Linux confines it: it
puts a socket into /tmp.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kb.formats.text.external_types import Kind


FILE: Final = "{file}"
"""In a command, the path of the file; without it the file comes on standard input."""


class _Program(NamedTuple):
    """What a program is called, and how it prints the text of the file `$0`."""

    name: str
    arguments: str


# HOME is a folder of its own for each run. LibreOffice converts to a format that kb reads with all its structure.
_LIBREOFFICE: Final = (
    '--headless --norestore "-env:UserInstallation=file://$HOME/profile" --convert-to {suffix} --outdir "$HOME/out"'
    ' "$0" >&2 && cat "$HOME"/out/*'
)
_NOT_CONFINED: Final = {"soffice"}
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


def old_office_command(kind: Kind) -> tuple[str, tuple[str, ...]] | None:
    """Return a name and the arguments of a shell that reads documents of a kind; None if nothing is installed for it.

    The programs follow the file as $1, $2…: what the command names, a confined process may run.
    """
    usable = (
        program for program in _PROGRAMS.get(kind, ()) if program.name not in _NOT_CONFINED or sys.platform != "linux"
    )
    installed = [(program, path) for program in usable if (path := shutil.which(program.name))]
    if not installed:
        return None
    line = " || ".join(
        f'{{ "${place}" {program.arguments}; }}' for place, (program, _) in enumerate(installed, start=1)
    )
    return installed[0][0].name, ("-c", line, FILE, *(path for _, path in installed))
