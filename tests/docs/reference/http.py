"""The HTTP API, from the OpenAPI description of the engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kb.app import create_app
from kb.asgi.subapps import AppContext
from tests.docs.reference import markdown
from tests.docs.reference.schemas import fields, kind, meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    Schema = dict[str, Any]
    Error = tuple[str, str, str]

INTRO = (
    "Every call of the HTTP API. A running engine shows the same at `/docs` and `/openapi.json`, with its own limits"
    " instead of the defaults. [Use the HTTP API](../api.md) explains authentication, paging, and errors;"
    " [Scripts](../scripts.md) has examples."
)
ERRORS = "## Errors of every call\n\n[Errors](errors.md) lists all types, with the exit codes of `kb`."
FAILED = "application/problem+json"


def page() -> str:
    """Return every call, then the models of the responses."""
    api = create_app(AppContext({})).openapi()
    models = api["components"]["schemas"]
    every = set.intersection(
        *(set(errors(operation)) for operations in api["paths"].values() for operation in operations.values())
    )
    calls = (
        call(f"{method.upper()} {path}", operation, models, every)
        for path, operations in api["paths"].items()
        for method, operation in operations.items()
    )
    replies = (model(name, models) for name in replied(api))
    return markdown.page("# HTTP API", INTRO, ERRORS, error_table(every), *calls, "## Models", *replies)


def call(title: str, operation: Schema, models: dict[str, Schema], every: set[Error]) -> str:
    """Return the section of a call: description, parameters, bodies, responses."""
    return markdown.page(
        f"## {title}",
        str(operation.get("description", operation["summary"])),
        parameters(operation, models),
        *bodies(operation, models),
        *answers(operation, models),
        error_table(set(errors(operation)) - every),
    )


def parameters(operation: Schema, models: dict[str, Schema]) -> str:
    """Return a table of the parameters in the path, the query, and headers."""
    return markdown.table(
        ("Parameter", "In", "Type", "Meaning"),
        (
            (f"`{each['name']}`", each["in"], kind(each["schema"], models), meaning(each["schema"] | described(each)))
            for each in operation.get("parameters", [])
        ),
    )


def described(part: Schema) -> Schema:
    """Return only the description of a parameter, if it has one."""
    return {name: part[name] for name in ("description",) if name in part}


def bodies(operation: Schema, models: dict[str, Schema]) -> Iterator[str]:
    """Yield the fields of each request body, with an example."""
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        schema = resolved(body["schema"], models)
        yield f"Send `{media}`:"
        yield fields(schema, models)
        yield example(schema)


def answers(operation: Schema, models: dict[str, Schema]) -> Iterator[str]:
    """Yield the responses without errors."""
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if FAILED not in content:
            yield f"Returns {status}{named(content)}"
            yield from (example(resolved(each["schema"], models)) for each in content.values() if "schema" in each)


def errors(operation: Schema) -> Iterator[Error]:
    """Yield status, type and description of each error."""
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if FAILED in content:
            yield status, problem(content[FAILED]["schema"]), answer["description"]


def error_table(found: set[Error]) -> str:
    """Return a table of errors, by status."""
    return markdown.table(("Status", "Error type", "When"), sorted(found))


def named(content: Schema) -> str:
    """Return the model of a response, or its media type."""
    for media, body in content.items():
        name = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
        return f", a [{name}](#{name.lower()}):" if name else f", `{media}`."
    return "."


def problem(schema: Schema) -> str:
    """Return the type of an error."""
    name = next((each["type"] for each in schema.get("examples", []) if "type" in each), "")
    return markdown.code(name.removeprefix("urn:kb:problem:"))


def example(schema: Schema) -> str:
    """Return an example of a model, if it has one."""
    examples = schema.get("examples")
    return markdown.block("json", json.dumps(examples[0], indent=2, ensure_ascii=False)) if examples else ""


def resolved(schema: Schema, models: dict[str, Schema]) -> Schema:
    """Return a schema, or the model that it refers to."""
    return models[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def replied(api: Schema) -> list[str]:
    """Return the names of the models with fields that responses use."""
    models = api["components"]["schemas"]
    asked = json.dumps([each.get("requestBody") for path in api["paths"].values() for each in path.values()])
    return sorted(name for name in models if f'/{name}"' not in asked and models[name].get("properties"))


def model(name: str, models: dict[str, Schema]) -> str:
    """Return the section of a model."""
    return markdown.page(
        f"### {name}", models[name].get("description", ""), fields(models[name], models, is_reply=True)
    )
