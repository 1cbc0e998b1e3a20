"""The OpenAPI description: FastAPI's own, with examples and this engine's limits."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import Response

from kb.api.limit_errors import most_results
from kb.api.limits import MAX_TAG_CHARS, MAX_TAGS
from kb.asgi.security_headers import with_own_scripts
from kb.settings import Settings

Schema = dict[str, Any]

STATIC: Final = "/docs/static"


def describe(app: FastAPI, settings: Settings) -> None:
    """Complete the description at `/openapi.json`, which is made on the first request."""
    generate = app.openapi

    def complete() -> Schema:
        if app.openapi_schema is None:
            api = generate()
            examples = read_examples()
            models = [*api["components"]["schemas"].values(), *(body["schema"] for body in _bodies(api))]
            for model in models:
                if model.get("title") in examples:
                    model["examples"] = [examples[model["title"]]]
            add_limits(api, settings)
        return generate()

    app.openapi = complete  # type: ignore[method-assign] # as FastAPI says to


def read_examples() -> dict[str, Any]:
    """Return the examples by name of the model."""
    import yaml  # delayed, so that the engine starts faster

    examples: dict[str, Any] = yaml.safe_load(files("kb.routes").joinpath("examples.yaml").read_text("utf-8"))
    del examples[".shared"]
    return examples


def add_limits(api: Schema, settings: Settings) -> None:
    """Add the limits of the settings to the schemas of requests."""
    tags = {"maxItems": MAX_TAGS, "items": {"maxLength": MAX_TAG_CHARS}}
    limits: dict[str, Schema] = {
        "top": {"maximum": most_results(settings.max_top)},
        "text": {"maxLength": settings.max_note_chars},
        **dict.fromkeys(("tag", "tags", "tag_any", "tag_not", "add", "remove"), tags),
    }
    for name, schema in _asked(api):
        for key, limit in limits.get(name, {}).items():
            schema[key] = schema[key] | limit if isinstance(limit, dict) else limit


def _asked(api: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield each parameter and each field of a body, with its schema."""
    for path in api["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                yield parameter["name"], parameter["schema"]
    for body in _bodies(api):
        model = body["schema"].get("$ref", "").rpartition("/")[2]
        yield from (api["components"]["schemas"][model] if model else body["schema"])["properties"].items()


def _bodies(api: Schema) -> Iterator[Schema]:
    for path in api["paths"].values():
        for operation in path.values():
            yield from operation.get("requestBody", {}).get("content", {}).values()


def add_docs(app: FastAPI) -> None:
    """Add the page `/docs`."""

    async def docs(request: Request) -> Response:
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title=f"{app.title}: HTTP API",
            swagger_js_url=f"{root}{STATIC}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{STATIC}/swagger-ui.css",
            swagger_favicon_url=f"{root}{STATIC}/favicon.png",
        )
        page.headers.update(with_own_scripts(bytes(page.body), forms="'none'"))
        return page

    app.add_route("/docs", docs)
