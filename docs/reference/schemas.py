"""JSON schemas as tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reference import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Schema = dict[str, Any]

HUGE = 1 << 53
"""A limit as large as this is none that anyone meets."""

LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {}",
}


def fields(schema: Schema, models: Mapping[str, Schema]) -> str:
    """The fields of an object, with what each may be."""
    required = schema.get("required", [])
    return markdown.table(
        ("field", "type", "default", ""),
        (
            (f"`{name}`", kind(field, models), default(name, field, required), meaning(field))
            for name, field in schema.get("properties", {}).items()
        ),
    )


def kind(field: Schema, models: Mapping[str, Schema]) -> str:
    """What a field's type is called."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return kind(models[name], models) if "enum" in models.get(name, {}) else name
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(kind(each, models) for each in field["anyOf"]))
    if field.get("type") == "array":
        return f"list of {kind(field.get('items', {}), models) or 'anything'}"
    if field.get("format") == "date-time":
        return "time"
    return "file" if field.get("format") == "binary" else str(field.get("type", ""))


def default(name: str, field: Schema, required: list[str]) -> str:
    """What counts when it is left out."""
    if name in required:
        return "required"
    return f"`{json.dumps(field['default'])}`" if field.get("default") is not None else ""


def meaning(field: Schema) -> str:
    """Its description and its limits."""
    said = (field.get("description") or "").rstrip()
    bounds = ", ".join(limits(field))
    return " ".join(filter(None, (said, bounds and f"{bounds.capitalize()}.")))


def limits(field: Schema) -> Iterator[str]:
    """Its limits, of the parts of a choice as well."""
    for part in (field, *field.get("anyOf", [])):
        for name, words in LIMITS.items():
            if part.get(name, HUGE) < HUGE:
                yield words.format(f"{int(part[name]):,}")
