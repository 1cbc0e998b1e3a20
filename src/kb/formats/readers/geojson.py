"""GeoJSON: the properties of the features of a map, and the number of points of each.

Coordinates are too many to read, and nobody searches them. kb also counts them in other JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kb.formats.text.builder import TextBuilder
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.extracted import Extracted

_GEOMETRIES: Final = ("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon")
_MAPS: Final = ("FeatureCollection", "Feature")
_NAMES: Final = ("name", "title", "label")
_FEATURE: Final = 2


def read_geojson(source: str) -> Extracted | None:
    """Read JSON with coordinates; None if it has none."""
    if '"coordinates"' not in source and '"Topology"' not in source:
        return None
    try:
        values = _values(source)
        if all(map(_is_map, values)):
            return _read_map(values)
        shown = [json.dumps(_counted(value), ensure_ascii=False, indent=2) for value in values]
        return Extracted.of_text(clean("\n".join(shown) + "\n")) if any(map(_has_geometry, values)) else None
    except (ValueError, RecursionError):
        return None


def counted(points: int) -> str:
    return f"[{points:,} point{'' if points == 1 else 's'}]"


def _values(source: str) -> list[Any]:
    """Return the value of a file, or of each of its lines."""
    try:
        return [json.loads(source)]
    except ValueError:
        return [json.loads(line) for line in source.split("\n") if line.strip()]


def _is_map(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") in _MAPS


def _read_map(maps: Sequence[dict[str, Any]]) -> Extracted:
    text, title = TextBuilder(), None
    for value in maps:
        if isinstance(name := value.get("name"), str):
            title = title or one_line(name)
            text.heading(1, name)
        features = value.get("features", [value])
        for feature in filter(_is_map, features if isinstance(features, list) else []):
            _write_feature(feature, text)
    return text.build(title)


def _write_feature(feature: Mapping[str, Any], text: TextBuilder) -> None:
    properties = feature.get("properties")
    shown = {name: value for name, value in (properties if isinstance(properties, dict) else {}).items() if value}
    named = next((name for name in shown if name.lower() in _NAMES), None)
    if named:
        text.heading(_FEATURE, str(shown.pop(named)))
    for name, value in shown.items():
        text.line(f"{name}: {one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}")
    if (points := sum(_geometries(feature.get("geometry")))) > 1:
        text.line(counted(points))
    text.blank()


def _geometries(value: object) -> Iterator[int]:
    """Yield the number of points of each geometry in a value."""
    if isinstance(value, dict) and _is_geometry(value):
        yield _points(value["coordinates"])
    elif isinstance(value, dict) and value.get("type") == "Topology":
        yield 0
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _geometries(item)


def _has_geometry(value: object) -> bool:
    return next(_geometries(value), None) is not None


def _is_geometry(value: Mapping[str, Any]) -> bool:
    return value.get("type") in _GEOMETRIES and isinstance(value.get("coordinates"), list)


def _counted(value: object) -> object:
    """Return a value with the number of points in place of coordinates."""
    if isinstance(value, list):
        return [_counted(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _is_geometry(value):
        return {"type": value["type"], "coordinates": counted(_points(value["coordinates"]))}
    return {name: _counted(item) for name, item in value.items() if not (name == "arcs" and isinstance(item, list))}


def _points(coordinates: Sequence[object]) -> int:
    """Return the number of points in nested lists; a point is a list of numbers."""
    return sum(_points(item) for item in coordinates if isinstance(item, list)) or 1
