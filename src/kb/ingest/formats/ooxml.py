"""The package around an Office Open XML document: parts in a zip, found by the relations between them.

Not python-docx, whose way in reads every part, pictures included, and refuses the whole document over one
relation that leads nowhere, a macro (.docm), a template (.dotx) or the Strict variant of the format.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from typing import TYPE_CHECKING, Final

from lxml import etree

from kb.contract.errors import Unreadable
from kb.ingest.formats.titles import sensible_title

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_UNPACKED: Final = 512 * 1024 * 1024
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    etree.XMLSyntaxError,
    EOFError,
    NotImplementedError,
    OSError,
    ValueError,
)


def local_name(element: etree._Element) -> str:
    """The element's name without its namespace, which differs between the Transitional and the Strict variant."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: etree._Element | None, name: str) -> str | None:
    """The element's attribute of that local name."""
    if element is None:
        return None
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), None)


class Package:
    """The parts of an Office file.

    Raises:
        Unreadable: the zip is damaged, encrypted, or unpacks to more than `MAX_UNPACKED`.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _DAMAGE as error:
            raise Unreadable("the document is damaged: its zip archive cannot be opened") from error
        if sum(entry.file_size for entry in self._zip.infolist()) > MAX_UNPACKED:
            raise Unreadable(f"the document unpacks to more than {MAX_UNPACKED // 1024**2} MB, the limit")
        self._names = set(self._zip.namelist())

    def main_part(self) -> str:
        """The name of the part that holds the document itself."""
        for name in self.related("", "officeDocument"):
            return name
        raise Unreadable("the document is damaged: its main part is missing")

    def related(self, part: str, kind: str) -> Iterator[str]:
        """The names of the parts that `part` (or the package, if empty) says are its `kind`."""
        folder, name = posixpath.split(part)
        relations = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        for relation in relations if relations is not None else ():
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            if posixpath.basename(relation.get("Type", "")) == kind and target in self._names:
                yield target

    def xml(self, name: str) -> etree._Element | None:
        """The root of a part, or None when there is no such part."""
        if name not in self._names:
            return None
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
        )
        try:
            return etree.fromstring(self._zip.read(name), parser)
        except _DAMAGE as error:
            raise Unreadable(f"the document is damaged: {name} in it cannot be read") from error
        except RuntimeError as error:
            raise Unreadable("the document is encrypted: it needs a password to be read") from error

    def title(self) -> str | None:
        """The title among the document's properties, if it says anything."""
        for name in self.related("", "core-properties"):
            properties = self.xml(name)
            if properties is not None:
                return sensible_title(properties.findtext("{*}title"))
        return None
