"""Tables of the fields in JSON schemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.docs.reference import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Schema = dict[str, Any]

HUGE = 1 << 53
"""Limits of at least this size are left out."""

PLURALS = {"string": "strings", "integer": "integers", "number": "numbers", "object": "objects", "file": "files"}
LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {}",
}


def fields(schema: Schema, models: Mapping[str, Schema], *, is_reply: bool = False) -> str:
    """Return a table of the fields of an object; a reply has no defaults."""
    required = schema.get("required", [])
    return markdown.table(
        ("Field", "Type", "Default", "Meaning"),
        (
            (f"`{name}`", kind(field, models), "" if is_reply else default(name, field, required), meaning(field))
            for name, field in schema.get("properties", {}).items()
        ),
    )


def kind(field: Schema, models: Mapping[str, Schema]) -> str:
    """Return the name of a field's type."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return kind(models[name], models) if "enum" in models.get(name, {}) else name
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]) if value != "")
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(kind(each, models) for each in field["anyOf"]))
    if field.get("type") == "array":
        item = kind(field.get("items", {}), models)
        return f"list of {PLURALS.get(item, item) or 'anything'}"
    if field.get("format") == "date-time":
        return "time"
    return "file" if field.get("format") == "binary" else str(field.get("type", ""))


def default(name: str, field: Schema, required: list[str]) -> str:
    """Return the default of a field."""
    if name in required:
        return "required"
    return f"`{json.dumps(field['default'])}`" if field.get("default") is not None else ""


def meaning(field: Schema) -> str:
    """Return the description and the limits of a field."""
    said = (field.get("description") or "").rstrip()
    bounds = ", ".join(limits(field))
    return " ".join(filter(None, (said, bounds and f"{bounds.capitalize()}.")))


def limits(field: Schema) -> Iterator[str]:
    """Yield the limits of a field and of its alternatives."""
    for part in (field, *field.get("anyOf", [])):
        for name, words in LIMITS.items():
            if part.get(name, HUGE) < HUGE:
                yield words.format(f"{int(part[name]):,}")
