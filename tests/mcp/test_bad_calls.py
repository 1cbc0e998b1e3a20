"""Bad calls, made from the schemas: each is refused in one line that names the field, and nothing is left of it."""

from __future__ import annotations

import base64
import json

import httpx2
import pytest
from fastmcp import Client

from kb_mcp.middleware.arguments import BLANKS, EXACT
from kb_mcp.upload_chunks import MAX_CHUNK
from tests.conftest import KEY
from tests.mcp.conftest import call, refusal
from tests.support.eventually import eventually_async

VALID = {"string": "x", "integer": 1, "boolean": True, "array": ["x"]}
WRONG_TYPES = {
    "string": [1, 1.5, True, [], {}, ["x"]],
    "integer": ["many", 1.5, True, [], {}, "1.5", ""],
    "boolean": ["perhaps", 2, [], {}],
    "array": [1, {}, [1], [None], [["x"]], '["x"', "[1]", '{"0": "x"}', "null"],
}
UNDERSTOOD = {("kb_jobs", "cursor", 1)}
"""What is of another type, and good for all that."""

EXTREMES = {"string": [], "integer": [-1, -(2**63), 2**63, 10**30], "boolean": [], "array": [[""], ["a,b"], ["x\ty"]]}


@pytest.fixture(scope="module")
def staging(tmp_path_factory):
    return tmp_path_factory.mktemp("staging")


@pytest.fixture(scope="module")
def gateway(start_gateway, server, staging):
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_UPLOAD_DIR": str(staging)}
    with start_gateway(**settings, KB_MCP_UPLOAD_SECONDS="5", KB_MCP_COLLECTIONS="1") as running:
        yield running


@pytest.fixture
async def agent(era, gateway):
    async with Client(gateway.url + "/mcp", mode=era) as client:
        yield client


@pytest.fixture
async def agent_of_collections(gateway):
    async with Client(gateway.url + "/collections/mcp") as client:
        yield client


def bad_calls(tools):
    """(tool, arguments, field) for every way in which one argument is wrong while the others are right."""
    for tool in tools:
        properties = tool.input_schema["properties"]
        required = {name: VALID[properties[name]["type"]] for name in tool.input_schema.get("required", ())}
        yield tool.name, required | {"unheard_of": 1}, "unheard_of"
        yield tool.name, required | {"x" * 5000: 1}, "x" * 100
        for name in required:
            yield tool.name, {other: value for other, value in required.items() if other != name}, name
            yield tool.name, required | {name: None}, name
        for name, schema in properties.items():
            for value in WRONG_TYPES[schema["type"]] + EXTREMES[schema["type"]]:
                if value in ([1], "[1]") and schema.get("items", {}).get("type") == "integer":
                    continue
                if type(value) is int and (tool.name, name, value) in UNDERSTOOD:
                    continue
                if value == "null" and tool.name in ("kb_search", "kb_list"):  # no filter
                    continue
                if value in BLANKS and schema["type"] != "string" and tool.name not in EXACT and name not in required:
                    continue
                if type(value) is not int or value not in range(schema.get("minimum", 0), 2**63):
                    yield tool.name, required | {name: value}, name


async def test_bad_calls_made_from_the_schemas_are_refused_in_one_line_that_names_the_field(agent, staging):
    await refuse_bad_calls(agent, staging)


@pytest.mark.rare
@pytest.mark.requirement("C-2")
async def test_bad_calls_are_refused_in_the_same_way_where_there_are_collections(agent_of_collections, staging):
    await refuse_bad_calls(agent_of_collections, staging)


async def refuse_bad_calls(agent, staging):
    calls = list(bad_calls(await agent.list_tools()))
    assert len(calls) >= 200
    for tool, arguments, field in calls:
        result = await agent.call_tool(tool, arguments, raise_on_error=False)
        assert result.is_error, (tool, arguments)
        said = result.content[0].text
        assert field in said.partition(" ")[0], (tool, arguments, said)
        assert len(said.splitlines()) == 1, (tool, arguments, said)
        assert len(said) < 400, (tool, arguments, said)
        assert "pydantic" not in said, (tool, arguments, said)
        assert "Traceback" not in said
    assert (await call(agent, "kb_status"))["version"] == "3.0.0"
    await eventually_async(
        "what was staged has expired",
        lambda: [path for path in staging.iterdir() if path.name != "lock"],
        until=lambda staged: not staged,
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("kb_search", {"query": "x" * 20_001}, "query: "),
        ("kb_search", {"query": "x", "tags": ["t" * 201]}, "tags: "),
        ("kb_search", {"query": "x", "tags": [str(n) for n in range(101)]}, "tags: "),
        ("kb_search", {"query": "x", "tags": "[" * 100_000 + "]"}, "tags: "),
        ("kb_search", {"query": "x", "tags": '["\\ud800"]'}, "tags: "),
        ("kb_search", {"query": "x", "tags": '["work"'}, 'tags: must be a list, such as ["work", "home"]'),
        ("kb_search", {"query": "x", "doc_type": "y" * 101}, "doc_type: "),
        ("kb_addnote", {"text": "x" * 1_000_001}, "text: "),
        ("kb_addnote", {"text": "\n \t"}, "text: "),
        ("kb_update_note", {"document_id": 1, "text": " "}, "text: "),
        ("kb_jobs", {"cursor": "nowhere"}, "cursor: "),
        ("kb_upload_start", {"filename": "", "total_size": 1}, "filename: "),
        ("kb_upload_start", {"filename": "x" * 256, "total_size": 1}, "filename: "),
        ("kb_upload_start", {"filename": "a", "total_size": 0}, "total_size: "),
        ("kb_upload_start", {"filename": "a", "total_size": 2**40}, "total_size: a file can have"),
    ],
)
async def test_what_schemas_cannot_say_is_refused_by_the_name_of_the_field_too(agent, tool, arguments, said):
    assert (await refusal(agent, tool, **arguments)).startswith(said)


@pytest.mark.parametrize(
    "message",
    ["", "{nope", "1", "[]", '[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]', '{"jsonrpc": "2.0", "id": 1}']
    + [
        f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
        for params in ("[1]", '"my secret"', '{"name": "kb_status", "arguments": "my secret"}', "[" * 50_000)
    ],
)
@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}])
async def test_a_message_that_is_none_is_refused_in_one_line_that_repeats_nothing_of_it(gateway, message, version):
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"} | version
    async with httpx2.AsyncClient(headers=headers) as http:
        reply = await http.post(f"{gateway.url}/mcp", content=message)
    error = json.loads(reply.text.partition("data: ")[2] or reply.text)["error"]["message"]
    assert len(error.splitlines()) == 1
    assert len(error) < 300
    assert "pydantic" not in reply.text
    assert "my secret" not in reply.text
    assert "my secret" not in gateway.log.read_text()


async def test_the_largest_chunk_there_may_be_fits_a_request(agent):
    raw = bytes(MAX_CHUNK)
    upload_id = (await call(agent, "kb_upload_start", filename="a", total_size=len(raw) + 1))["upload_id"]
    for data in (base64.b64encode(raw), base64.encodebytes(raw)):
        kept = await call(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=0, data=data.decode())
        assert kept["received"] == len(raw)
    data = base64.b64encode(raw + b"x").decode()
    said = await refusal(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=0, data=data)
    assert said == f"data: a part has 1 to {MAX_CHUNK} bytes. Use 1 MiB."


async def test_a_body_over_four_mib_is_refused_before_it_is_read(gateway):
    async with httpx2.AsyncClient() as http:
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        reply = await http.post(f"{gateway.url}/mcp", content=b"x" * (4 << 20) + b"x", headers=headers)
    assert reply.status_code == 413


async def test_a_message_that_brings_no_text_and_no_file_is_small(gateway):
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with httpx2.AsyncClient(headers=headers) as http:
        for arguments, said in (
            ({"query": "x" * (300 << 10)}, "Too large: a message can have 262144 bytes"),
            ({"query": "x", "tags": ["t"] * 3000}, "Too many values"),
        ):
            params = {"name": "kb_search", "arguments": arguments}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            reply = await http.post(f"{gateway.url}/mcp", json=call)
            assert reply.status_code == 413
            assert reply.json()["error"]["message"].startswith(said)


async def test_a_file_may_be_sent_as_a_text_as_long_as_a_note(agent):
    said = await refusal(agent, "kb_upload_start", filename="a.mp3", text="x" * (300 << 10))
    assert said.startswith("filename: this is a sound recording")


async def test_a_list_in_a_text_is_read_only_if_it_may_be_one(agent):
    many = f"[{', '.join(['1'] * 60_000)}]"
    assert (await refusal(agent, "kb_search", query="x", tags=many)).startswith("tags: must be a list")
