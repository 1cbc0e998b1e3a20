"""Collections as tags, which the engine keeps, and as a field, which agents see."""

from __future__ import annotations

from typing import Any, Final

from kb.client.client import JSON

PREFIX: Final = "collection:"


def is_collection(tag: object) -> bool:
    return isinstance(tag, str) and tag.strip().startswith(PREFIX)


def collections_of(holder: JSON) -> set[str]:
    """Return the tags of a document or a job that are collections."""
    return set(filter(is_collection, holder["tags"]))


def tags_to_field(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON with a field `collection` beside every `tags`, in place of the tag."""
    if isinstance(value, list):
        return [tags_to_field(each) for each in value]
    if not isinstance(value, dict):
        return value
    converted = {name: tags_to_field(each) for name, each in value.items()}
    if isinstance(value.get("tags"), list):
        first = min(collections_of(value), default=None)
        converted["tags"] = [tag for tag in value["tags"] if not is_collection(tag)]
        converted["collection"] = first.removeprefix(PREFIX) if first else None
    return converted


def field_to_tags(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON with each `collection` among the tags, as it is shown in texts."""
    if isinstance(value, list):
        return [field_to_tags(each) for each in value]
    if not isinstance(value, dict):
        return value
    shown = {name: field_to_tags(each) for name, each in value.items()}
    if value.get("collection") and isinstance(value.get("tags"), list):
        shown["tags"] = [*value["tags"], f"collection={value['collection']}"]
    return shown


def schema_with_field(schema: Any) -> Any:  # noqa: ANN401 - any JSON schema
    """Return the schema of what `tags_to_field` makes of an answer."""
    if not isinstance(schema, dict):
        return schema
    converted = {name: schema_with_field(each) for name, each in schema.items()}
    if "tags" in converted.get("properties", {}):
        converted["properties"]["collection"] = {"type": ["string", "null"]}
    return converted
