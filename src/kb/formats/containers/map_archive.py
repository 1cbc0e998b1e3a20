"""KMZ: a zip archive with a map (KML), and the pictures of the map in folders."""

from collections.abc import Iterable


def map_in(names: Iterable[str]) -> str | None:
    """Return the part of an archive that is a map, or None if there is none."""
    maps = (name for name in names if name.lower().endswith(".kml") and "/" not in name)
    return min(maps, key=lambda name: (name != "doc.kml", name), default=None)
