"""What there is and what goes on, on the wire: the map, the last hour, the care of the data."""

from __future__ import annotations

from kb.api.models import Reply, TagCount


class MappedDocument(Reply):
    """A document on the map: `x` and `y` from -1 to 1. The title may be cut; `tags` are places in the map's list."""

    id: int
    title: str
    doc_type: str
    tags: list[int]
    x: float
    y: float


class DocumentMap(Reply):
    """Where the documents lie that were changed last: near each other, if they are about the same.

    `total` counts all documents, `tags` are the most used ones. Unless `is_current` another map is being made; ask
    again.
    """

    documents: list[MappedDocument]
    total: int
    tags: list[TagCount]
    is_current: bool
