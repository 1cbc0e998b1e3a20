"""A note as a Markdown file of its own, with its fields as front matter."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

FIELDS: Final = {
    "title": "title",
    "tags": "tags",
    "date": "date",
    "source_path": "source_path",
    "source": "source",
    "valid_until": "valid_until",
    "replaces": "replaces",
    "created_at": "created",
    "updated_at": "updated",
}
"""The fields of a document by their names in front matter."""


def note_file(document: Mapping[str, Any], text: str) -> str:
    """Return the Markdown file of a document with this text; fields without a value are left out."""
    given = {name: document.get(field) for field, name in FIELDS.items()}
    fields = {name: list(value) if name == "tags" else value for name, value in given.items() if value}
    header = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False)
    return f"---\n{header}---\n\n{text}"
