"""The list of tools that a client gets, and its size."""

from __future__ import annotations

import json

import pytest
import quicktok
from fastmcp import Client

from kb_mcp.middleware.arguments import LIST_PARAMETERS
from kb_mcp.server import UNLISTED
from tests.conftest import MCP_KEY
from tests.mcp.conftest import ERAS, call, done, noted, refusal

MOST_TOKENS = 2600
KEYWORDS = {"type", "description", "enum", "items", "minimum"}
"""What there is in the schema of a parameter: other words are unknown to JSON Schema, or to some clients."""


@pytest.fixture(params=ERAS)
def era(request):
    """Each in turn: what a session or the list of tools is differs between them."""
    return request.param


def size(tool):
    """The tokens of a tool's name, description and schema. Its title and annotations are for people and programs."""
    sent = tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"annotations", "meta", "title"})
    return len(quicktok.get_encoding("o200k_base").encode(json.dumps(sent, ensure_ascii=False)))


async def test_the_whole_list_costs_a_client_under_2600_tokens(agent):
    assert sum(map(size, await agent.list_tools())) <= MOST_TOKENS


async def test_the_collections_surface_costs_little_more(start_gateway):
    with start_gateway(KB_MCP_COLLECTIONS="1") as gateway:
        async with Client(f"{gateway.url}/collections/mcp") as agent:
            assert sum(map(size, await agent.list_tools())) < MOST_TOKENS + 500


async def test_input_schemas_are_flat_and_portable(agent):
    for tool in await agent.list_tools():
        text = json.dumps(tool.input_schema)
        for word in ("anyOf", "oneOf", "allOf", "$ref", "$defs", '"null"', "patternProperties"):
            assert word not in text, (tool.name, word)
        assert tool.input_schema["additionalProperties"] is False
        for name, schema in tool.input_schema["properties"].items():
            assert schema["type"] in ("string", "integer", "boolean", "array"), (tool.name, name)
            assert schema.keys() <= KEYWORDS, (tool.name, name)


async def test_every_parameter_has_a_description_and_no_tool_has_an_output_schema(agent):
    for tool in await agent.list_tools():
        assert tool.output_schema is None
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), (tool.name, name)
            assert "" not in schema.get("enum", ()), (tool.name, name)


@pytest.mark.requirement("G-15")
async def test_descriptions_have_three_to_six_sentences(agent):
    for tool in await agent.list_tools():
        sentences = tool.description.replace(";", ".").replace("\n", " ").split(". ")
        assert 3 <= len(sentences) <= 9, tool.name
        assert "kb_" in tool.description, tool.name


async def test_the_parameters_that_are_lists_are_known(agent):
    properties = [tool.input_schema["properties"].items() for tool in await agent.list_tools()]
    assert {name for each in properties for name, schema in each if schema.get("type") == "array"} <= LIST_PARAMETERS


async def test_parameters_that_the_list_leaves_out_still_count(agent, word):
    await noted(agent, text=f"{word} has a lamp.", tags=[word])
    for tool, names in UNLISTED.items():
        [listed] = [each for each in await agent.list_tools() if each.name == tool]
        assert names.isdisjoint(listed.input_schema["properties"])
    found = await call(agent, "kb_search", query=f"{word} lamp", tag_not=[word])
    assert word not in json.dumps(found["results"])
    assert "tag_nut" in await refusal(agent, "kb_search", query="lamp", tag_nut=[word])


async def test_descriptions_and_instructions_are_whole_in_clients_that_cut_them_at_two_kilobytes(server, agent, word):
    for number in range(24):
        await noted(agent, text=f"{word} {number}", tags=[f"天気予報と台風と雨と風と雲と{number:02}"])
    for tool in await agent.list_tools():
        assert len(tool.description.encode()) < 2048
    async with Client(f"{server.url}/mcp", auth=MCP_KEY, mode="auto") as other:
        assert len(other.instructions.encode()) < 2048


@pytest.mark.parametrize(
    ("name", "meant"),
    [("kb_find", "kb_search"), ("search", "kb_search"), ("kb_read", "kb_get"), ("kb_serch", "kb_search"),
     ("kb_remove", ""), ("kb_undelete", ""), ("kb_deleted", ""), ("kb_add", ""), ("upload", "")],
)  # fmt: skip
async def test_an_unknown_tool_never_leads_to_one_that_writes(agent, name, meant):
    said = await refusal(agent, name)
    assert (f"Did you mean {meant}?" in said) if meant else ("Did you mean" not in said)


async def test_answers_in_which_no_document_speaks_are_the_same_json_twice(agent, word):
    for tool, arguments in (
        ("kb_status", {}),
        ("kb_addnote", {"text": word}),
        ("kb_upload_start", {"filename": "a", "total_size": 1}),
    ):
        result = await agent.call_tool(tool, arguments)
        assert json.loads(result.content[0].text) == result.structured_content, tool


async def test_what_a_document_says_stands_in_both_forms_of_an_answer(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=f"{word} in both forms", tags=[word]))
    for tool, arguments in (
        ("kb_search", {"query": word}),
        ("kb_get", {"document_id": document_id}),
        ("kb_list", {"tags": [word]}),
    ):
        result = await agent.call_tool(tool, arguments)
        assert f"{word} in both forms" in result.content[0].text, tool
        assert f"{word} in both forms" in json.dumps(result.structured_content), tool
