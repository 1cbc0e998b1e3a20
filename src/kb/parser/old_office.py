"""The installed programs that read documents of old office programs: antiword, catdoc and others.

A kind has several programs; if one fails, the next one is tried. LibreOffice does not start confined on Linux, because
it creates a socket in /tmp.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kb.formats.text.external_types import Kind


FILE: Final = "{file}"
"""In a command, the path of the file; without it, the file is on standard input."""


class _Program(NamedTuple):
    """The name of a program, and its arguments to print the text of the file `$0`."""

    name: str
    arguments: str


# HOME is a separate folder for each run. LibreOffice converts to a format that kb reads with its full structure.
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
    """Return a name and a shell's arguments to read documents of a kind; None if no program for it is installed.

    The programs follow the file as $1, $2…, because a confined process may run the programs in its command.
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
