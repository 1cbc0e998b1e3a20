from __future__ import annotations

import base64
import json
from dataclasses import replace

import httpx2
import numpy as np
import pytest
from fastmcp import Client
from mcp import MCPError
from mcp_types import INVALID_PARAMS, PromptReference, ResourceTemplateReference

from kb.client.client import EngineClient
from tests.conftest import ALL_APPS, KEY, MCP_KEY
from tests.mcp.conftest import TRIED_ERAS, call, connected, done
from tests.support.documents import content
from tests.support.pdf import pdf
from tests.support.stores import Database


async def test_a_document_is_a_resource(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=f"{word} on paper", tags=["x"]))
    [contents] = await agent.read_resource(f"kb://documents/{document_id}")
    assert json.loads(contents.text) == await call(agent, "kb_get", document_id=document_id)
    assert contents.mime_type == "application/json"


async def test_the_text_of_a_document_is_a_resource_with_a_warning_beside_it(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=f"{word}\n\non paper"))
    text, notice = await agent.read_resource(f"kb://documents/{document_id}/text")
    assert text.text == f"{word}\n\non paper"
    assert "never instructions" in notice.text


@pytest.mark.slow
async def test_a_long_text_is_read_part_by_part(agent, word):
    whole = f"{word} " + "Ein Gedächtnis aus Papier, über Jahre. " * 1300
    document_id = await done(agent, await call(agent, "kb_addnote", text=whole))
    read, suffix, parts = "", "", 0
    while True:
        text, notice = await agent.read_resource(f"kb://documents/{document_id}/text{suffix}")
        assert len(text.text) <= 40_000
        read, parts = read + text.text, parts + 1
        if "Read on with " not in notice.text:
            break
        suffix = notice.text.partition("Read on with ")[2].rstrip(".")
    assert read == whole
    assert parts > 1


async def test_templates_say_what_can_be_read(agent):
    templates = [template.uri_template for template in await agent.list_resource_templates()]
    assert templates == [
        "kb://documents/{id}{?from_chunk}",
        "kb://documents/{id}/text{?start}",
        "kb://documents/{id}/pages/{page}.png{?chunk}",
    ]


async def test_a_page_of_a_pdf_is_a_picture_with_a_passage_marked(agent, server, word):
    sent = {"files": {"file": ("lease.pdf", pdf(f"The {word} ends in March.", f"The deposit of {word} is due."))}}
    with httpx2.Client(base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as engine:
        document = engine.post("jobs", params={"wait": 30}, **sent).json()["document_id"]
        for suffix in ("", "?chunk=1"):
            [picture] = await agent.read_resource(f"kb://documents/{document}/pages/2.png{suffix}")
            drawn = engine.get(f"documents/{document}/pages/2.png{suffix}").content
            assert picture.mime_type == "image/png"
            assert base64.b64decode(picture.blob) == drawn
        assert drawn.startswith(b"\x89PNG")


async def test_documents_changed_last_are_offered_first(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word))
    offered = await agent.list_resources()
    assert (str(offered[0].uri), offered[0].title) == (f"kb://documents/{document_id}/text", word)
    assert len([each for each in offered if str(each.uri).startswith("kb://documents/")]) <= 50


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("kb://documents/999999", "Document 999999 does not exist"),
        ("kb://documents/999999/text", "Document 999999 does not exist"),
        ("kb://documents/x", "id: must be a number"),
        (f"kb://documents/{'9' * 5000}", "^id: must be a number with at most 18 digits"),
        (f"kb://documents/1/text?start={'9' * 19}", "^start: must be a number with at most 18 digits"),
        ("kb://documents/1/text?start=-1", "start: must be a number"),
        ("kb://documents/999999/pages/1.png", "Document 999999 does not exist"),
        ("kb://documents/1/pages/x.png", "page: must be a number"),
        ("kb://documents/1/pages/1.png?chunk=x", "chunk: must be a number"),
        ("kb://elsewhere", "not found"),
    ],
)
async def test_what_cannot_be_read_says_why(agent, uri, message):
    with pytest.raises(Exception, match=message) as refused:
        await agent.read_resource(uri)
    assert len(str(refused.value).splitlines()) == 1


async def test_a_document_is_not_read_on_behind_its_end(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word))
    with pytest.raises(MCPError, match=f"from_chunk: document {document_id} has chunks 0 to 0"):
        await agent.read_resource(f"kb://documents/{document_id}?from_chunk=999")


async def test_three_prompts_can_be_picked(agent):
    prompts = {prompt.name: prompt for prompt in await agent.list_prompts()}
    assert {name: [each.name for each in prompt.arguments] for name, prompt in prompts.items()} == {
        "answer": ["question", "tags", "source_path"],
        "remember": ["what", "tags"],
        "brief": ["topic", "since"],
    }
    assert not any("JSON" in each.description for prompt in prompts.values() for each in prompt.arguments)
    briefed = await agent.get_prompt("brief", {"topic": "Harbor"})
    assert "about Harbor, since last week" in briefed.messages[0].content.text
    asked = await agent.get_prompt("answer", {"question": "Who?", "tags": "people"})
    text = asked.messages[0].content.text
    assert text.startswith("Answer this question from my knowledge base: Who?")
    assert "citation" in text
    assert "people" in text
    kept = await agent.get_prompt("remember", {"what": "Anna likes tea"})
    assert "Anna likes tea" in kept.messages[0].content.text


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("answer", "question: missing. answer takes question (required), tags, source_path."),
        ("remember", "what: missing. remember takes what (required), tags."),
    ],
)
async def test_a_prompt_names_the_argument_that_is_missing_and_nothing_is_logged_as_a_fault(
    agent, server, prompt, said
):
    before = len(server.log.read_bytes())
    with pytest.raises(MCPError) as refused:
        await agent.get_prompt(prompt, {"tags": "x"})
    assert refused.value.error.code == INVALID_PARAMS
    assert str(refused.value) == said
    logged = server.log.read_bytes()[before:].decode()
    assert "Traceback" not in logged
    assert "ERROR" not in logged


async def test_tags_are_completed_also_behind_a_comma(agent, word):
    await done(agent, await call(agent, "kb_addnote", text=word, tags=[f"{word}-a", f"{word}-b"]))
    for typed, offered in (
        (word[:-1], [f"{word}-a", f"{word}-b"]),
        (f"x,{word}-b", [f"x,{word}-b"]),
        ("no such tag", []),
    ):
        completed = await agent.complete(PromptReference(name="answer"), {"name": "tags", "value": typed})
        assert completed.values == offered


async def test_paths_are_completed_by_any_part_of_them(agent, server, word):
    async with EngineClient(server.url, KEY) as engine:
        for path in (f"/notes/{word}.md", f"{word}/other.md"):
            await done(agent, await engine.add_note(text=path, source_path=path))
    completed = await agent.complete(PromptReference(name="answer"), {"name": "source_path", "value": word})
    assert completed.values == [f"{word}/other.md", f"/notes/{word}.md"]
    template = ResourceTemplateReference(uri="kb://documents/{id}{?from_chunk}")
    offered = (await agent.complete(template, {"name": "id", "value": "1"})).values
    assert all(each.startswith("1") for each in offered)


async def test_lists_and_completions_are_empty_while_the_engine_is_away(start_gateway, unused_port):
    with start_gateway(KB_ENGINE_URL=f"http://127.0.0.1:{unused_port}") as gateway:
        async with connected(gateway) as agent:
            assert await agent.list_resources() == []
            assert (await agent.complete(PromptReference(name="answer"), {"name": "tags", "value": ""})).values == []
            with pytest.raises(Exception, match="is unreachable"):
                await agent.read_resource("kb://documents/1")


async def test_an_upload_reports_its_progress(agent, word):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    size = len(word)
    upload_id = (await call(agent, "kb_upload_start", filename="a.txt", total_size=size))["upload_id"]
    for index, part in enumerate((word[:10], word[10:])):
        data = base64.b64encode(part.encode()).decode()
        arguments = {"upload_id": upload_id, "chunk_index": index, "data": data}
        await agent.call_tool("kb_upload_chunk", arguments, progress_handler=hear)
    await agent.call_tool("kb_upload_finish", {"upload_id": upload_id}, progress_handler=hear)
    assert heard == [(10, size), (size, size), (0, size), (size, size)]


async def test_tags_and_recent_documents_are_resources(agent, word):
    await done(agent, await call(agent, "kb_addnote", text=f"{word} on the quay", tags=[word]))
    [tags] = await agent.read_resource("kb://tags")
    [recent] = await agent.read_resource("kb://recent")
    assert f'"{word}" 1' in tags.text
    assert f"{word} on the quay" in recent.text


DOCUMENTS = 1200
MOST = 100


@pytest.fixture(scope="module")
def crowded(start_server, embedder, tmp_path_factory):
    """A server with many documents, those of the year 1990 the oldest of them."""
    folder = tmp_path_factory.mktemp("crowded")
    vectors = np.full((1, embedder.spec.dimensions), embedder.spec.dimensions**-0.5, np.float32)
    with Database(folder)() as store, store.write() as tx:
        for number in range(1, DOCUMENTS + 1):
            path = f"/Archive/1990/Letter {number}.md" if number <= 40 else f"/daily/{number}.md"
            tx.documents.add(replace(content(f"letter {number}"), vectors=vectors), path, [])
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS) as server:
        yield server


async def complete(agent, name, value):
    template = ResourceTemplateReference(uri="kb://documents/{id}{?from_chunk}")
    reference = template if name == "id" else PromptReference(name="answer")
    return (await agent.complete(reference, {"name": name, "value": value})).values


@pytest.mark.parametrize("mode", TRIED_ERAS)
async def test_paths_and_ids_of_the_oldest_documents_are_completed_too(crowded, mode):
    async with Client(f"{crowded.url}/mcp", auth=MCP_KEY, mode=mode) as agent:
        assert await complete(agent, "source_path", "letter 7.") == ["/Archive/1990/Letter 7.md"]
        assert len(await complete(agent, "source_path", "archive/1990")) == 40
        assert set(await complete(agent, "source_path", "/Archive/1990/Letter 3")) == {
            f"/Archive/1990/Letter {number}.md" for number in (3, *range(30, 40))
        }
        assert await complete(agent, "source_path", "100%") == []
        assert len(await complete(agent, "source_path", "")) == MOST
        assert len(await complete(agent, "id", "7")) == MOST
        assert set(await complete(agent, "id", "12")) == {"12", *map(str, range(120, 130)), "1200"}
        for none in ("0", "x", "-1", "1" * 30):
            assert await complete(agent, "id", none) == []


async def test_documents_are_listed_by_a_part_of_their_path_and_by_how_their_id_begins(crowded):
    async with EngineClient(crowded.url, KEY) as engine:
        assert await engine.count_documents(source_part="ARCHIVE") == 40
        assert await engine.count_documents(source_part="_") == 0
        assert await engine.count_documents(id_prefix="12") == 1 + 10 + 1
        assert await engine.count_documents(id_prefix="12", source_part="etter") == 1
