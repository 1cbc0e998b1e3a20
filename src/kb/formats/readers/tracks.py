"""Tracks and maps (GPX, KML, KMZ, TCX): the names and descriptions, and the number of points.

Coordinates are too many to read, and nobody searches them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.containers.map_archive import map_in
from kb.formats.containers.zip import Archive, attribute, local_name
from kb.formats.readers.geojson import counted
from kb.formats.readers.html import flat_text
from kb.formats.text.builder import TextBuilder
from kb.formats.text.dates import first_date
from kb.formats.text.encoding import one_line
from kb.formats.text.extracted import Extracted

ROOTS: Final = {"gpx", "kml", "TrainingCenterDatabase"}
_WHOLE: Final = {"gpx", "metadata", "Document", "kml"}
_PLACES: Final = {"trk": 2, "rte": 2, "wpt": 2, "Activity": 2, "Course": 2, "Folder": 2, "Placemark": 3}
"""The elements with a name, and the levels of their headings."""

_POINTS: Final = {"trkpt", "rtept", "Trackpoint", "coord"}
_WORDS: Final = {"name", "desc", "cmt"}
_TIMES: Final = ("{*}time", "{*}Time", "{*}when")
_UNSEEN: Final = {
    *("Style", "StyleMap", "styleUrl", "LookAt", "Camera", "Region", "Schema", "bounds", "LatLonBox", "LatLonAltBox"),
    *("altitudeMode", "extrude", "tessellate", "visibility", "open", "drawOrder", "ele", "time", "when", "Id"),
}


def read(data: bytes) -> Extracted:
    """Read a KMZ.

    Raises:
        Unreadable: it is damaged.
    """
    archive = Archive(data)
    root = archive.xml(map_in(archive.names) or "")
    if root is None:
        raise Unreadable("the archive has no map")
    return read_tracks(root)


def read_tracks(root: etree._Element) -> Extracted:
    text = TextBuilder()
    _write(root, text)
    names = (_name(element) for name in (*_WHOLE, *_PLACES) for element in root.iter(f"{{*}}{name}"))
    return text.build(next(filter(None, names), None), first_date(*_times(root)[:1]))


def _write(element: etree._Element, text: TextBuilder) -> None:
    points = 0
    for child in element:
        name, value = local_name(child), (child.text or "").strip()
        if name in _POINTS:
            points += 1
            for words in (each for each in child if local_name(each) in _WORDS):
                text.line(one_line(words.text or ""))
        elif name == "coordinates":
            points += len(value.split())
        elif name in _PLACES:
            _write_place(child, _PLACES[name], text)
        elif len(child) and name not in _UNSEEN:
            _write(child, text)
        elif name not in _UNSEEN:
            _write_value(child, name, value, text)
    if points > 1:
        times = _times(element)
        text.line(" ".join([counted(points), *([f"{times[0]} to {times[-1]}"] if len(times) > 1 else [])]))


def _write_place(element: etree._Element, level: int, text: TextBuilder) -> None:
    if name := _name(element):
        text.heading(level, name)
    _write(element, text)
    text.blank()


def _write_value(element: etree._Element, name: str, value: str, text: TextBuilder) -> None:
    above = element.getparent()
    owner = local_name(above) if above is not None else ""
    if name == "name" and owner in _WHOLE:
        text.heading(1, value)
    elif name in {"desc", "description", "cmt"}:
        text.paragraph(flat_text(value))
    elif name == "link":
        text.line(attribute(element, "href") or value)
    elif value and not (name == "name" and owner in _PLACES):
        label = attribute(element, "name") or (attribute(above, "name") if name == "value" else None)
        text.line(f"{label or (owner if name == 'name' else name)}: {one_line(value)}")


def _name(element: etree._Element) -> str:
    return one_line(element.findtext("{*}name") or "")


def _times(element: etree._Element) -> list[str]:
    moments: Iterable[etree._Element] = element.iter(*_TIMES)
    return [moment.text.strip() for moment in moments if moment.text and moment.text.strip()]
