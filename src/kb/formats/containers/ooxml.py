"""The package around an Office Open XML document: parts in a zip, found by the relations between them.

Not python-docx, whose way in reads every part, pictures included, and refuses the whole document over one
relation that leads nowhere, a macro (.docm), a template (.dotx) or the Strict variant of the format.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from kb.api.errors import Unreadable
from kb.formats.containers.zip import Archive
from kb.formats.text.titles import meaningful

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree


class Relation(NamedTuple):
    """That a part refers to the part `target`, as its `kind`, by the name `id`."""

    id: str
    kind: str
    target: str


class Package(Archive):
    """The parts of an Office file. Raises what `Archive` does."""

    def main_part(self) -> str:
        """Return the name of the part that holds the document itself."""
        for name in self.related("", "officeDocument"):
            return name
        raise Unreadable("the document is damaged: its main part is missing")

    def relations(self, part: str) -> Iterator[Relation]:
        """Yield what `part` (or the package, if empty) refers to, as far as it is there."""
        folder, name = posixpath.split(part)
        relations = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        for relation in relations if relations is not None else ():
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            if target in self.names:
                yield Relation(relation.get("Id", ""), posixpath.basename(relation.get("Type", "")), target)

    def related(self, part: str, kind: str) -> Iterator[str]:
        """Yield the names of the parts that `part` (or the package, if empty) says are its `kind`."""
        return (relation.target for relation in self.relations(part) if relation.kind == kind)

    def related_xml(self, part: str, kind: str) -> Iterator[etree._Element]:
        """Yield the roots of those parts."""
        return (root for name in self.related(part, kind) if (root := self.xml(name)) is not None)

    def title(self) -> str | None:
        """Return the title among the document's properties, if it says anything."""
        for properties in self.related_xml("", "core-properties"):
            return meaningful(properties.findtext("{*}title"))
        return None
