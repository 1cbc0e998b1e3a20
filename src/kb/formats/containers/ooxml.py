"""The package around an Office Open XML document: parts in a zip, found by the relations between them.

kb does not use python-docx, because it reads every part, pictures included, and refuses the whole document over one
broken relation, a macro (.docm), a template (.dotx) or the Strict variant of the format.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.ole import OLE_SIGNATURE
from kb.formats.containers.ole_object import document_in
from kb.formats.containers.zip import Archive
from kb.formats.text.dates import first_date
from kb.formats.text.extracted import Attachment, Properties, attached_room
from kb.formats.text.titles import meaningful

# The creation dates of the templates of python-docx, python-pptx, Excel and PowerPoint.
_TEMPLATES: Final = {
    *("2013-12-23T23:15:00Z", "2013-01-27T09:14:16Z", "2006-08-16T00:00:00Z", "2006-09-16T00:00:00Z"),
    *("2015-06-05T18:17:20Z", "2015-06-05T18:19:34Z"),
}
_DOCUMENTS: Final = {
    *(".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".xlsb", ".xls", ".odt", ".ods", ".odp", ".rtf", ".pdf"),
    *(".txt", ".md", ".csv", ".json", ".xml", ".html", ".htm", ".eml", ".msg"),
}


class Relation(NamedTuple):
    """A part's reference to the part `target`, with the type `kind` and the name `id`."""

    id: str
    kind: str
    target: str


class Package(Archive):
    """The parts of an Office file; `damaged` contains the unreadable ones. Raises the same errors as `Archive`."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.damaged = set[str]()
        self._room = attached_room(len(data))

    def side_xml(self, name: str) -> etree._Element | None:
        """Return the root of an optional part; None if it is missing or damaged."""
        try:
            return self.xml(name)
        except Unreadable:
            self.damaged.add(name)
            return None

    def main_part(self) -> str:
        for name in self.related("", "officeDocument"):
            return name
        raise Unreadable("the document is damaged: its main part is missing")

    def relations(self, part: str) -> Iterator[Relation]:
        """Yield the relations of `part` (or of the package, if empty) to existing parts."""
        folder, name = posixpath.split(part)
        relations = self.side_xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        for relation in relations if relations is not None else ():
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            if found := self.find(target):
                yield Relation(relation.get("Id", ""), posixpath.basename(relation.get("Type", "")), found)

    def related(self, part: str, kind: str) -> Iterator[str]:
        """Yield the names of the parts to which `part` (or the package, if empty) has a relation of this `kind`."""
        return (relation.target for relation in self.relations(part) if relation.kind == kind)

    def related_xml(self, part: str, kind: str) -> Iterator[etree._Element]:
        """Yield the root of each readable part that `related` yields."""
        return (root for name in self.related(part, kind) if (root := self.side_xml(name)) is not None)

    def embedded(self, part: str) -> tuple[list[Attachment], dict[str, int]]:
        """Return the documents embedded in `part`, and the number of embedded objects left out, by kind."""
        files, left_out = list[Attachment](), Counter[str]()
        for relation in {relation.target: relation for relation in self.relations(part)}.values():
            if relation.kind in {"package", "oleObject"}:
                file = self._document(relation)
                if isinstance(file, Attachment):
                    files.append(file)
                else:
                    left_out[file] += 1
        return files, left_out

    def _document(self, relation: Relation) -> Attachment | str:
        """Return an embedded document, or the kind under which it is counted as left out."""
        if self.size(relation.target) > self._room:
            return "files"
        try:
            file = self._unwrapped(relation)
        except Unreadable:
            return "parts"
        if file is None:
            return "objects"
        self._room -= len(file.data)
        return file

    def _unwrapped(self, relation: Relation) -> Attachment | None:
        """Return the document that is a part, or that is in an object of its own, or None if there is none."""
        name = posixpath.basename(relation.target)
        if relation.kind == "package":
            return Attachment(name, self.read(relation.target) or b"") if _is_document(name) else None
        data = self.read(relation.target) or b""
        named, content = (document_in(data) if data.startswith(OLE_SIGNATURE) else None) or ("", b"")
        if named.startswith("."):
            named = posixpath.splitext(name)[0] + named
        return Attachment(named, content) if _is_document(named) else None

    def properties(self) -> Properties:
        """Return the document's title and its date: the creation or, failing that, the last change."""
        for properties in self.related_xml("", "core-properties"):
            written = (properties.findtext(f"{{*}}{name}") for name in ("created", "modified"))
            date = first_date(*(moment for moment in written if moment not in _TEMPLATES))
            return Properties(meaningful(properties.findtext("{*}title")), date)
        return Properties()


def _is_document(name: str) -> bool:
    return posixpath.splitext(name.lower())[1] in _DOCUMENTS
