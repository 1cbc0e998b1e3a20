"""Output schemas of the tools: the API's models, with what the gateway adds and leaves out.

They are as short as they can be: each client pays for them in every conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kb.api.models import DocumentList, DocumentWithChunks, SearchReply, Status
from kb_mcp.tools.answer_limiter import OMITTED_FIELDS

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]

STRING: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
INTEGER_OR_NULL: Final[Schema] = {"type": ["integer", "null"]}


def schema_of(model: type[BaseModel]) -> Schema:
    return object_schema(fields_of(model))


def schema_with_notice(model: type[BaseModel]) -> Schema:
    return object_schema({"notice": STRING, **fields_of(model)})


def status() -> Schema:
    """Return the schema of the engine's state; there is more, which agents need not know."""
    fields = fields_of(Status)
    del fields["parser"], fields["history"]
    return object_schema(fields)


def search_results() -> Schema:
    fields = fields_of(SearchReply, depth=1)
    items = fields["results"]["items"]
    shown = {name: each for name, each in items["properties"].items() if name not in OMITTED_FIELDS}
    items["properties"] = {"citation": STRING, **shown}
    return object_schema({"notice": STRING, **fields, "rest": STRING})


def chunk_page() -> Schema:
    fields = fields_of(DocumentWithChunks)
    del fields["chunk_count"]
    return object_schema({"notice": STRING, **fields, "next_chunk": INTEGER_OR_NULL, "rest": STRING})


def chunk_page_or_document_list() -> Schema:
    return object_schema(chunk_page()["properties"] | fields_of(DocumentList))


def history() -> Schema:
    """Return the schema of a list of versions, of one with its text, or of a document."""
    fields = {"versions": {"type": "array", "items": {"type": "object"}}, "text": STRING, "rest": STRING}
    return object_schema({"notice": STRING, "document_id": INTEGER, **fields, "id": INTEGER})


def upload_started() -> Schema:
    return object_schema({"upload_id": STRING})


def upload_progress() -> Schema:
    return object_schema({"upload_id": STRING, "chunk_index": INTEGER, "received": INTEGER, "total_size": INTEGER})


def object_schema(fields: Schema) -> Schema:
    return {"type": "object", "properties": fields}


def fields_of(model: type[BaseModel], depth: int = 0) -> Schema:
    """Return the reduced schemas of a model's fields."""
    schema = model.model_json_schema(mode="serialization")
    fields: Schema = reduce_schema(schema, schema.get("$defs", {}), depth + 1)["properties"]
    return fields


def reduce_schema(schema: Schema, definitions: Schema, depth: int) -> Schema:
    """Return a schema of pydantic's with its types alone: no references, unions, titles or descriptions.

    Objects deeper than `depth` are objects of any kind, and only lists of objects say what is in them.
    """
    if "$ref" in schema:
        return reduce_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions, depth)
    if "anyOf" in schema:
        options = [reduce_schema(option, definitions, depth) for option in schema["anyOf"]]
        return {"type": [option["type"] for option in options]}
    reduced: Schema = {"type": schema["type"]}
    if "properties" in schema and depth:
        reduced["properties"] = {
            name: reduce_schema(each, definitions, depth - 1) for name, each in schema["properties"].items()
        }
    if depth and "$ref" in schema.get("items", {}):
        reduced["items"] = reduce_schema(schema["items"], definitions, depth)
    return reduced
