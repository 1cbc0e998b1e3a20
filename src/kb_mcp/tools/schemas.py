"""The tools' output schemas: those of the wire, with what the gateway adds and leaves out.

They are as short as they can be: each client pays for them in every conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kb.api.models import DocumentList, DocumentWithChunks, SearchReply
from kb_mcp.tools.answers import NOT_FOR_AGENTS

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def slim(schema: Schema, definitions: Schema, depth: int) -> Schema:
    """A schema that pydantic wrote with its types alone: no references, unions, titles or descriptions.

    Objects deeper than `depth` are objects of any kind, and only lists of objects say what is in them.
    """
    if "$ref" in schema:
        return slim(definitions[schema["$ref"].rpartition("/")[2]], definitions, depth)
    if "anyOf" in schema:
        options = [slim(option, definitions, depth) for option in schema["anyOf"]]
        return {"type": [option["type"] for option in options]}
    short = {"type": schema["type"]}
    if "properties" in schema and depth:
        short["properties"] = {name: slim(each, definitions, depth - 1) for name, each in schema["properties"].items()}
    if depth and "$ref" in schema.get("items", {}):
        short["items"] = slim(schema["items"], definitions, depth)
    return short


def properties(model: type[BaseModel], depth: int = 0) -> Schema:
    """The slim schemas of a model's fields."""
    schema = model.model_json_schema(mode="serialization")
    fields: Schema = slim(schema, schema.get("$defs", {}), depth + 1)["properties"]
    return fields


def answer_of(fields: Schema) -> Schema:
    """An answer with these fields."""
    return {"type": "object", "properties": fields}


def plain(model: type[BaseModel]) -> Schema:
    """What the engine answers, as it came."""
    return answer_of(properties(model))


def found() -> Schema:
    """What kb_search answers."""
    fields = properties(SearchReply, depth=1)
    result = fields["results"]["items"]["properties"]
    shown = {"citation": TEXT} | {name: each for name, each in result.items() if name not in NOT_FOR_AGENTS}
    fields["results"]["items"]["properties"] = shown
    return answer_of({"notice": TEXT, **fields, "rest": TEXT})


def part() -> Schema:
    """What kb_update_note answers."""
    fields = properties(DocumentWithChunks)
    more = {"next_chunk": {"type": ["integer", "null"]}}
    return answer_of({"notice": TEXT, **fields, **more, "rest": TEXT})


def part_or_list() -> Schema:
    """What kb_get answers: a document, or a list of them."""
    return answer_of(part()["properties"] | properties(DocumentList))


def upload_started() -> Schema:
    """What kb_upload_start answers."""
    return answer_of({"upload_id": TEXT})


def chunk_kept() -> Schema:
    """What kb_upload_chunk answers."""
    return answer_of({"upload_id": TEXT, "chunk_index": NUMBER, "received": NUMBER, "total_size": NUMBER})
