"""Documents that are a zip archive of parts, most of them XML: Office Open XML, OpenDocument, EPUB."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Final

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.part_names import plain_name
from kb.formats.text.external_types import SUFFIXES

MAX_UNPACKED: Final = 512 * 1024 * 1024
MAX_PICTURE: Final = 32 * 1024 * 1024
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    etree.XMLSyntaxError,
    EOFError,
    NotImplementedError,
    OSError,
    ValueError,
)
_MOST_DIGITS: Final = 9
_ENCRYPTED: Final = "the document is encrypted and needs a password"


def xml_parser(**more: Any) -> etree.XMLParser:  # noqa: ANN401 - options of the library
    """Return a parser that opens nothing outside the file, and skips comments and processing instructions."""
    options = {"resolve_entities": False, "no_network": True, "remove_comments": True, "remove_pis": True}
    return etree.XMLParser(**options | more)


def local_name(element: etree._Element) -> str:
    """Return the element's name without its namespace, which differs between variants of a format."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: etree._Element | None, name: str) -> str | None:
    if element is None:
        return None
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), None)


def whole_number(element: etree._Element | None, name: str, otherwise: int = 0) -> int:
    """Return the attribute with that local name as a number from 0 on; `otherwise` if it is not one."""
    value = attribute(element, name) or ""
    return int(value) if value.isdecimal() and len(value) <= _MOST_DIGITS else otherwise


class Archive:
    """The parts of a document, unpacked on request.

    Raises:
        Unreadable: the zip or a part is damaged or encrypted, or the parts read unpack to more than `MAX_UNPACKED`.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _DAMAGE as error:
            raise Unreadable("the document is damaged: kb cannot open its zip archive") from error
        self._parts = {plain_name(part.filename): part for part in self._zip.infolist()}
        self._in_any_case = {name.lower(): name for name in self._parts}
        self.names = set(self._parts)
        self.length = len(data)
        self._unpacked = 0
        self._pictures = set[str]()

    def find(self, name: str) -> str | None:
        """Return the name of the part that another part means; Windows does not distinguish capitals in names."""
        return name if name in self._parts else self._in_any_case.get(name.lower())

    def size(self, name: str) -> int:
        return self._parts[name].file_size

    def read(self, name: str) -> bytes | None:
        found = self.find(name)
        if found is None:
            return None
        self._unpacked += self.size(found)
        if self._unpacked > MAX_UNPACKED:
            raise Unreadable(f"the document unpacks to more than {MAX_UNPACKED // 1024**2} MB, the limit")
        with _translated_damage(name):
            return self._zip.read(self._parts[found])

    def blocks(self, name: str, size: int) -> Iterator[bytes]:
        """Yield a part in blocks, without keeping it.

        Raises:
            Unreadable: the part is damaged or encrypted.
        """
        with _translated_damage(name), self._zip.open(self._parts[name]) as part:
            while block := part.read(size):
                yield block

    def elements(self, name: str, local: str) -> Iterator[etree._Element]:
        """Yield the elements of a part with this local name one by one, without keeping them.

        Raises:
            Unreadable: the part is damaged.
        """
        with _translated_damage(name), self._zip.open(self._parts[name]) as part:
            for _, element in etree.iterparse(
                part, tag=f"{{*}}{local}", resolve_entities=False, no_network=True, huge_tree=False
            ):
                yield element
                element.clear(keep_tail=False)
                while element.getprevious() is not None:
                    del element.getparent()[0]

    def picture(self, name: str) -> Callable[[], bytes] | None:
        """Return a function that reads a part; None if it is not a picture, is too large or was requested."""
        is_picture = name in self.names and PurePath(name.lower()).suffix in SUFFIXES["image"]
        if not is_picture or name in self._pictures or self.size(name) > MAX_PICTURE:
            return None
        self._pictures.add(name)
        return lambda: self.read(name) or b""

    def xml(self, name: str) -> etree._Element | None:
        data = self.read(name)
        if data is None:
            return None
        with _translated_damage(name):
            return etree.fromstring(data, xml_parser())


@contextmanager
def _translated_damage(name: str) -> Iterator[None]:
    """Raise `Unreadable` if a part is damaged or encrypted."""
    try:
        yield
    except _DAMAGE as error:
        raise Unreadable(f"the document is damaged: kb cannot read {name} in it") from error
    except (RuntimeError, KeyError) as error:
        raise Unreadable(_ENCRYPTED) from error
