"""OpenDocument in one XML file (.fodt, .fods, .fodp), which has the parts of a package in one."""

import io
import re
import zipfile
from typing import Final

_MIMETYPE: Final = re.compile(
    r"""<office:document\s[^<>]{0,16000}?office:mimetype=["'](application/vnd\.oasis\.opendocument\.\w{1,20})["']"""
)
_BEGINNING: Final = 20_000
_PARTS: Final = ("content.xml", "styles.xml", "meta.xml")


def flat_mimetype(text: str) -> str:
    """Return the media type of a file; an empty string if it is no such file."""
    found = _MIMETYPE.search(text[:_BEGINNING])
    return found[1] if found else ""


def packaged(data: bytes) -> bytes:
    """Return such a file as a package with the whole file as each part, and others as they are."""
    mimetype = flat_mimetype(data[:_BEGINNING].decode("utf-8", "replace"))
    if not mimetype:
        return data
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("mimetype", mimetype)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        for part in _PARTS:
            archive.writestr(part, data)
    return package.getvalue()
