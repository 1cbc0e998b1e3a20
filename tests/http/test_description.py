"""The API describes itself correctly."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import httpx2
import pytest

import kb.api
from kb.routes.openapi import read_examples

MODELS = [f"kb.api.{found.name}" for found in iter_modules(kb.api.__path__) if found.name.endswith("_models")]

ROUTES = """
search     POST    /search
search     GET     /documents/{document_id}/similar
status     GET     /activity
status     GET     /storage
status     GET     /status
jobs       POST    /jobs
jobs       GET     /jobs
jobs       GET     /jobs/{job_id}
jobs       DELETE  /jobs/{job_id}
jobs       POST    /jobs/{job_id}/retry
documents  GET     /documents
documents  GET     /documents/{document_id}
documents  PATCH   /documents/{document_id}
documents  DELETE  /documents/{document_id}
documents  GET     /documents/{document_id}/text
documents  GET     /documents/{document_id}/links
documents  POST    /links
documents  GET     /documents/{document_id}/file
tags       PATCH   /documents/{document_id}/tags
documents  GET     /paths
tags       GET     /tags
tags       POST    /tags/rename
tags       POST    /tags/delete
documents  GET     /documents/{document_id}/pages
documents  GET     /documents/{document_id}/pages/{number}.png
documents  GET     /documents/{document_id}/thumbnail
documents  GET     /map
documents  GET     /duplicates
documents  PUT     /duplicates/dismissed
documents  GET     /documents/{document_id}/compare/{other_id}
notes      PATCH   /notes/{document_id}
history    GET     /documents/{document_id}/history
history    GET     /documents/{document_id}/history/{number}
history    GET     /documents/{document_id}/history/{number}/diff
history    POST    /documents/{document_id}/revert
history    POST    /documents/{document_id}/restore
history    GET     /bin
history    POST    /undo
history    GET     /operations
folders    GET     /folders
folders    PUT     /folders
folders    PUT     /folders/watches/{watch_id}
folders    DELETE  /folders/watches/{watch_id}
folders    POST    /folders/watches/{watch_id}/sync
folders    POST    /folders/watches/{watch_id}/report
folders    POST    /folders/seen
reembed    GET     /reembed
reembed    POST    /reembed
reembed    GET     /models
maintenance GET    /maintenance
maintenance POST   /maintenance
maintenance POST   /notes-folder
keys       GET     /keys
keys       POST    /keys
keys       POST    /first-key
keys       GET     /key
keys       POST    /key/identify
keys       POST    /keys/{name}/rotate
keys       DELETE  /keys/{name}
keys       GET     /audit
keys       GET     /grants
keys       POST    /grants
keys       POST    /grant/find
keys       POST    /grant/exchange
keys       DELETE  /grants/{grant_id}
settings   GET     /settings
settings   PATCH   /settings
"""

EXAMPLES = read_examples()


@pytest.fixture(scope="module")
def description(server):
    return httpx2.get(f"{server.url}/openapi.json").json()


@pytest.fixture(scope="module")
def operations(description):
    return [operation for path in description["paths"].values() for operation in path.values()]


def test_every_route_stands_in_the_table(description):
    made = [
        (operation["tags"][0], method.upper(), path.removeprefix("/api/v1"))
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    assert [tuple(row.split()) for row in ROUTES.strip().splitlines()] == made


def test_every_call_says_in_a_line_what_it_does(operations):
    assert all(operation["summary"] and operation["description"] for operation in operations)
    summaries = [operation["summary"] for operation in operations]
    assert len(set(summaries)) == len(summaries)


def bodies(operation):
    """What a call takes, and what it answers when all is well."""
    answers = [answer for status, answer in operation["responses"].items() if status < "300"]
    for place in [operation.get("requestBody", {}), *answers]:
        yield place.get("content", {}).get("application/json")


def test_every_body_has_an_example(description, operations):
    for operation in operations:
        for body in filter(None, bodies(operation)):
            schema = body["schema"]
            name = schema.get("$ref", "").rpartition("/")[2]
            assert (description["components"]["schemas"][name] if name else schema)["examples"], operation["summary"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_it_is_an_example_of(name):
    model = next(getattr(module, name) for module in map(import_module, MODELS) if hasattr(module, name))
    assert model.model_validate(EXAMPLES[name]).model_dump(exclude_unset=True, mode="json") == EXAMPLES[name]


@pytest.mark.parametrize("status", ["401", "422", "500", "503"])
def test_every_call_documents_every_error_that_any_may_answer(operations, status):
    for operation in operations:
        problem = operation["responses"][status]["content"]["application/problem+json"]["schema"]
        assert problem["examples"][0]["status"] == int(status)


def test_limits_are_in_the_description(start_server, tmp_path):
    with start_server(tmp_path, KB_MAX_TOP="77") as server:
        api = httpx2.get(f"{server.url}/openapi.json").json()
    search = api["components"]["schemas"]["SearchRequest"]["properties"]
    assert search["top"]["maximum"] == 77
    assert (search["tag_not"]["maxItems"], search["tag_not"]["items"]["maxLength"]) == (100, 200)
    listed = {each["name"]: each["schema"] for each in api["paths"]["/api/v1/documents"]["get"]["parameters"]}
    assert (listed["limit"]["maximum"], listed["tag"]["maxItems"]) == (500, 100)
