"""The HTTP API, from the engine's own description of it (OpenAPI)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kb.app import create_app
from kb.asgi.subapps import AppContext
from reference import markdown
from reference.schemas import fields, kind, meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    Schema = dict[str, Any]

INTRO = (
    "The engine describes itself at `/docs` and `/openapi.json`; this page says the same, with the default limits."
    " [Scripts](../scripts.md) has examples that run."
)
FAILED = "application/problem+json"


def page() -> str:
    """Every call, then the models they answer with."""
    api = create_app(AppContext({})).openapi()
    models = api["components"]["schemas"]
    calls = (
        call(f"{method.upper()} {path}", operation, models)
        for path, operations in api["paths"].items()
        for method, operation in operations.items()
    )
    return markdown.page("# HTTP API", INTRO, *calls, "## Models", *(model(name, models) for name in replied(api)))


def call(title: str, operation: Schema, models: dict[str, Schema]) -> str:
    """One call: what it does, takes and answers."""
    return markdown.page(
        f"## {title}",
        str(operation.get("description", operation["summary"])),
        parameters(operation, models),
        *bodies(operation, models),
        *answers(operation, models),
    )


def parameters(operation: Schema, models: dict[str, Schema]) -> str:
    """What stands in the address and in headers."""
    return markdown.table(
        ("parameter", "in", "type", ""),
        (
            (f"`{each['name']}`", each["in"], kind(each["schema"], models), meaning(each["schema"] | described(each)))
            for each in operation.get("parameters", [])
        ),
    )


def described(part: Schema) -> Schema:
    """Its description alone, if it has one."""
    return {name: part[name] for name in ("description",) if name in part}


def bodies(operation: Schema, models: dict[str, Schema]) -> Iterator[str]:
    """What may be sent."""
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        schema = resolved(body["schema"], models)
        yield f"Send `{media}`:"
        yield fields(schema, models)
        yield example(schema)


def answers(operation: Schema, models: dict[str, Schema]) -> Iterator[str]:
    """What comes back, and what may go wrong."""
    wrong = []
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if FAILED in content:
            wrong.append((status, problem(content[FAILED]["schema"]), answer["description"]))
            continue
        yield f"Answers {status}{named(content)}"
        yield from (example(resolved(each["schema"], models)) for each in content.values() if "schema" in each)
    yield markdown.table(("status", "problem", "when"), wrong)


def named(content: Schema) -> str:
    """The model of an answer, or its media type."""
    for media, body in content.items():
        name = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
        return f", a [{name}](#{name.lower()}):" if name else f", `{media}`."
    return "."


def problem(schema: Schema) -> str:
    """The type of a problem, without which nothing tells them apart."""
    return markdown.code(next((each["type"] for each in schema.get("examples", []) if "type" in each), ""))


def example(schema: Schema) -> str:
    """An example of a model, if it has one."""
    examples = schema.get("examples")
    return markdown.block("json", json.dumps(examples[0], indent=2, ensure_ascii=False)) if examples else ""


def resolved(schema: Schema, models: dict[str, Schema]) -> Schema:
    """The model that is meant."""
    return models[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def replied(api: Schema) -> list[str]:
    """The models with fields that answers use, by name."""
    models = api["components"]["schemas"]
    asked = json.dumps([each.get("requestBody") for path in api["paths"].values() for each in path.values()])
    return sorted(name for name in models if f'/{name}"' not in asked and models[name].get("properties"))


def model(name: str, models: dict[str, Schema]) -> str:
    """A model's fields."""
    return markdown.page(f"### {name}", models[name].get("description", ""), fields(models[name], models))
