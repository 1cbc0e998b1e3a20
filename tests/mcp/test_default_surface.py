"""The scenarios of the default surface (original/05, and what of original/03 it keeps), each under its own name."""

from __future__ import annotations

import base64
import io
import os
import time
from uuid import UUID

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from kb_mcp.tools.token_budget import NOTICE
from tests.conftest import KEY, MCP_KEY
from tests.mcp.conftest import call, connected, done, refusal
from tests.support.eventually import eventually_async
from tests.support.pdf import pdf


@pytest.mark.requirement("G-1")
async def test_mcp_server_starts_and_connects_to_engine(start_gateway, server, word):
    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY) as gateway:
        async with connected(gateway, auth=MCP_KEY) as agent:
            assert (await call(agent, "kb_status"))["version"] == "3.0.0"


@pytest.mark.requirement("G-2")
async def test_engine_unreachable_at_startup(start_gateway, start_server, tmp_path, unused_port):
    url = f"http://127.0.0.1:{unused_port}"
    with start_gateway(KB_ENGINE_URL=url) as gateway:
        async with connected(gateway) as agent:
            assert len(await agent.list_tools()) == 13
            assert f"The engine at {url} is unreachable" in await refusal(agent, "kb_search", query="x")
            with start_server(tmp_path, port=unused_port, KB_APPS="api"):
                assert (await call(agent, "kb_status"))["version"] == "3.0.0"


@pytest.mark.requirement("G-3")
async def test_a_service_name_is_looked_up_as_any_host_name(start_gateway, server):
    with start_gateway(KB_ENGINE_URL=server.url.replace("127.0.0.1", "localhost"), KB_API_KEY=KEY) as gateway:
        async with connected(gateway) as agent:
            assert (await call(agent, "kb_status"))["version"] == "3.0.0"
    with start_gateway(KB_ENGINE_URL="http://engine.invalid:8000") as gateway:
        async with connected(gateway) as agent:
            assert "http://engine.invalid:8000 is unreachable" in await refusal(agent, "kb_status")


@pytest.mark.requirement("G-4")
async def test_valid_mcp_api_key(agent):
    assert (await call(agent, "kb_status"))["version"] == "3.0.0"


@pytest.mark.requirement("G-4")
@pytest.mark.parametrize("header", [{}, {"Authorization": ""}, {"Authorization": MCP_KEY}])
async def test_missing_mcp_api_key_when_required(server, header):
    await refused_with_a_challenge(server, header)


@pytest.mark.requirement("G-4")
@pytest.mark.parametrize("header", ["Bearer wrong", f"Bearer {MCP_KEY}x", f"Bearer {MCP_KEY[:-1]}", f"Basic {MCP_KEY}"])
async def test_invalid_mcp_api_key(server, header):
    reply = await refused_with_a_challenge(server, {"Authorization": header})
    assert MCP_KEY[:-1] not in reply.text


async def refused_with_a_challenge(server, header):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "kb_status"}}
    async with httpx2.AsyncClient(headers={"Accept": "application/json, text/event-stream"} | header) as http:
        reply = await http.post(f"{server.url}/mcp", json=call)
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert "version" not in reply.text
    return reply


@pytest.mark.requirement("G-4")
async def test_mcp_auth_disabled(start_gateway, server):
    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY) as gateway:
        for auth in (None, "any"):
            async with connected(gateway, auth=auth) as agent:
                assert (await call(agent, "kb_status"))["version"] == "3.0.0"


@pytest.mark.requirement("G-5")
async def test_basic_search(agent, word):
    await done(agent, await call(agent, "kb_addnote", text=f"{word} pension revaluation", tags=[word]))
    [found] = (await call(agent, "kb_search", query="pension revaluation", top=5, tags=[word]))["results"]
    assert found["text"] == f"{word} pension revaluation"
    assert {"document_id", "chunk_id", "score", "doc_type", "date"} <= set(found)
    assert found["tags"] == [word]


@pytest.mark.requirement("G-5")
async def test_search_results_show_all_tags(agent, word):
    tags = ["agent:mybot", "collection:documents", "draft"]
    await done(agent, await call(agent, "kb_addnote", text=word, tags=tags))
    [found] = (await call(agent, "kb_search", query=word, fts_only=True))["results"]
    assert sorted(found["tags"]) == tags
    assert "collection" not in found


@pytest.mark.requirement("G-5")
async def test_search_with_mode_override(agent, word):
    await done(agent, await call(agent, "kb_addnote", text=f"{word} error log"))
    [found] = (await call(agent, "kb_search", query=word, fts_only=True))["results"]
    assert found["text"] == f"{word} error log"


@pytest.mark.requirement("G-5")
async def test_filter_by_tag_instead_of_collection(agent, word):
    tagged = await done(agent, await call(agent, "kb_addnote", text=f"{word} test", tags=[f"agent:{word}"]))
    await done(agent, await call(agent, "kb_addnote", text=f"{word} test too"))
    [found] = (await call(agent, "kb_search", query="test", tags=[f"agent:{word}"]))["results"]
    assert found["document_id"] == tagged
    assert "collection" not in found
    assert (
        await refusal(agent, "kb_search", query="test", collection="memory") == "collection: no such parameter."
        " kb_search takes query, top, tags, tag_any, tag_not, tag_exact, doc_type, lang, source_prefix, name, document_id, after,"
        " before, updated_after, sort, group_by, fts_only, vec_only."
    )


@pytest.mark.requirement("G-5")
@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"doc_type": "tapestry"}, 'No document has the type "tapestry". Existing types: '),
        ({"tags": ["no such tag"]}, 'No tag "no such tag" exists'),
        ({"source_prefix": "/nowhere/"}, 'No path begins with "/nowhere/"'),
        ({"before": "1970"}, "Nothing matches all of these filters"),
        ({"after": "2026-11-02", "before": "2026-11-02"}, "before: must be later than after"),
    ],
)
async def test_a_search_whose_filters_leave_nothing_says_which_one_does(agent, word, filters, said):
    found = await call(agent, "kb_search", query=word, **filters)
    assert found["results"] == []
    assert found["rest"].startswith(said)
    nothing = await call(agent, "kb_search", query=word, fts_only=True)
    assert nothing["rest"] == "Nothing found: no document contains any word from the query."


@pytest.mark.requirement("G-16")
async def test_kb_set_collection_no_longer_exists(agent):
    assert (await refusal(agent, "kb_set_collection", document_id=1, collection="x")).startswith(
        "Unknown tool: 'kb_set_collection'. "
    )


@pytest.mark.requirement("G-6")
async def test_add_note_with_explicit_tags(agent, word):
    document_id = await done(
        agent, await call(agent, "kb_addnote", text=f"hello {word}", tags=["agent:mybot", "memory"])
    )
    assert sorted((await call(agent, "kb_get", document_id=document_id))["tags"]) == ["agent:mybot", "memory"]


@pytest.mark.requirement("G-7")
async def test_start_an_upload(agent):
    started = await call(agent, "kb_upload_start", filename="report.pdf", total_size=5242880, tags=["insurance"])
    assert started["upload_id"] == str(UUID(started["upload_id"]))
    assert started["upload_url"].endswith(f"/upload/{started['upload_id']}")


@pytest.mark.requirement("G-7")
async def test_the_address_of_an_upload_is_the_one_before_the_proxy(server):
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/kb/"}
    proxied = StreamableHttpTransport(f"{server.url}/mcp", auth=MCP_KEY, headers=forwarded)
    async with Client(proxied) as agent:
        started = await call(agent, "kb_upload_start", filename="report.pdf", total_size=10)
    host = server.url.partition("://")[2]
    assert started["upload_url"] == f"https://{host}/kb/upload/{started['upload_id']}"


@pytest.mark.requirement("G-7")
@pytest.mark.requirement("G-9")
async def test_an_upload_gets_no_tag_that_was_not_given(agent, word):
    assert await refusal(agent, "kb_upload_start", filename="a", total_size=1, collection="memory")
    upload_id = (await call(agent, "kb_upload_start", filename="a.txt", total_size=len(word)))["upload_id"]
    await call(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=0, data=encoded(word))
    document_id = await done(agent, await call(agent, "kb_upload_finish", upload_id=upload_id))
    assert (await call(agent, "kb_get", document_id=document_id))["tags"] == []


@pytest.mark.requirement("G-8")
async def test_upload_a_chunk(start_gateway, server, tmp_path):
    raw = bytes(range(256))
    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY, KB_MCP_UPLOAD_DIR=str(tmp_path)) as gateway:
        async with connected(gateway) as agent:
            upload_id = (await call(agent, "kb_upload_start", filename="a.bin", total_size=1000))["upload_id"]
            data = base64.b64encode(raw).decode()
            kept = await call(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=0, data=data)
            assert kept == {"upload_id": upload_id, "chunk_index": 0, "received": 256, "total_size": 1000}
            assert (tmp_path / upload_id / "0").read_bytes() == raw


@pytest.mark.requirement("G-9")
async def test_finish_an_upload(agent, engine, word):
    text = f"{word} was kept in two chunks"
    tags = [word, "insurance"]
    started = await call(agent, "kb_upload_start", filename=f"{word}.txt", total_size=len(text), tags=tags)
    for index, part in ((1, text[10:]), (0, text[:10])):
        await call(agent, "kb_upload_chunk", upload_id=started["upload_id"], data=encoded(part), chunk_index=index)
    accepted = await call(agent, "kb_upload_finish", upload_id=started["upload_id"])
    document = await engine.document(await done(agent, accepted))
    assert ("".join(chunk["text"] for chunk in document["chunks"]), sorted(document["tags"])) == (text, sorted(tags))
    assert (await engine.job(accepted["job_id"]))["filename"] == f"{word}.txt"


@pytest.mark.requirement("G-8")
async def test_upload_multiple_chunks_in_sequence(agent, word):
    upload_id = (await call(agent, "kb_upload_start", filename="a.txt", total_size=6))["upload_id"]
    for index, text in enumerate(("ab", "cd", "ef")):
        kept = await call(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=index, data=encoded(text))
        assert (kept["received"], kept["total_size"]) == (2 * index + 2, 6)


@pytest.mark.requirement("G-10")
async def test_upload_with_invalid_upload_id(agent):
    for tool, arguments in (("kb_upload_chunk", {"data": "YQ==", "chunk_index": 0}), ("kb_upload_finish", {})):
        said = await refusal(agent, tool, upload_id="00000000-0000-4000-8000-000000000000", **arguments)
        assert said.startswith("upload_id: no upload '00000000-0000-4000-8000-000000000000' exists.")


@pytest.mark.slow
@pytest.mark.requirement("G-10")
async def test_abandoned_upload_cleanup(start_gateway, server, tmp_path):
    left_by_a_crash = tmp_path / "00000000-0000-4000-8000-000000000000"
    left_by_a_crash.mkdir()
    (left_by_a_crash / "upload.json").touch()
    yesterday = time.time() - 86_400
    os.utime(left_by_a_crash, (yesterday, yesterday))
    settings = {"KB_ENGINE_URL": server.url, "KB_API_KEY": KEY, "KB_MCP_UPLOAD_DIR": str(tmp_path)}
    with start_gateway(**settings, KB_MCP_UPLOAD_SECONDS="3") as gateway:
        async with connected(gateway) as agent:
            upload_id = (await call(agent, "kb_upload_start", filename="a.txt", total_size=3))["upload_id"]
            await call(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=0, data=encoded("abc"))
            assert (tmp_path / upload_id / "0").is_file()
            await eventually_async(
                "both uploads have expired",
                lambda: not ((tmp_path / upload_id).exists() or left_by_a_crash.exists()),
            )
            assert "no upload" in await refusal(agent, "kb_upload_finish", upload_id=upload_id)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["lock"])


@pytest.mark.requirement("G-10")
async def test_mcp_server_restart_during_upload(start_gateway, server):
    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY) as gateway:
        async with connected(gateway) as agent:
            upload_id = (await call(agent, "kb_upload_start", filename="a.txt", total_size=3))["upload_id"]
    with start_gateway(KB_ENGINE_URL=server.url, KB_API_KEY=KEY) as gateway:
        async with connected(gateway) as agent:
            said = await refusal(agent, "kb_upload_chunk", upload_id=upload_id, data="YQ==", chunk_index=0)
    assert said.endswith("the gateway restarted. Start again with kb_upload_start.")


@pytest.mark.requirement("G-11")
async def test_update_an_existing_note_returns_it_with_all_tags(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, tags=["collection:memory", "x"]))
    updated = await call(agent, "kb_update_note", document_id=document_id, text=f"{word} prefers bullet points")
    assert sorted(updated["tags"]) == ["collection:memory", "x"]
    note = await call(agent, "kb_get", document_id=document_id)
    assert "".join(chunk["text"] for chunk in note["chunks"]) == f"{word} prefers bullet points"
    assert "collection" not in updated


@pytest.mark.requirement("G-11")
async def test_update_a_non_existent_document(agent):
    said = await refusal(agent, "kb_update_note", document_id=999_999, text="x")
    assert said == "document_id: Document 999999 does not exist. Find its id with kb_search or kb_list."


@pytest.mark.requirement("G-11")
async def test_update_a_non_note_document(agent, engine, word):
    document_id = await done(agent, await engine.add_file("report.pdf", io.BytesIO(pdf(word))))
    said = await refusal(agent, "kb_update_note", document_id=document_id, text="new")
    assert "only notes can be updated" in said
    assert (await engine.document(document_id))["chunks"][0]["text"].strip() == word


@pytest.mark.requirement("G-12")
async def test_get_by_source_path(agent, engine, word):
    for path in (f"{word}/feedback_testing.md", f"{word}/other.md"):
        await done(agent, await engine.add_note(text=path, source_path=path, tags=["collection:memory"]))
    got = await call(agent, "kb_get", source_path=f"{word}/feedback_testing.md")
    [document] = got["documents"]
    assert (document["source_path"], document["tags"]) == (f"{word}/feedback_testing.md", ["collection:memory"])
    assert (await call(agent, "kb_get", source_path=word))["documents"] == []


@pytest.mark.requirement("G-12")
async def test_get_by_document_id_shows_all_tags(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word, tags=["collection:memory"]))
    document = await call(agent, "kb_get", document_id=document_id)
    assert (document["tags"], document["next_chunk"]) == (["collection:memory"], None)
    assert "collection" not in document


@pytest.mark.requirement("G-13")
async def test_delete_answers_with_what_was_deleted(agent, word):
    document_id = await done(agent, await call(agent, "kb_addnote", text=word))
    deleted = await call(agent, "kb_delete", document_id=document_id)
    assert deleted == {"notice": NOTICE, "status": "deleted", "document_id": document_id, "title": word}
    assert "in the bin" in await refusal(agent, "kb_delete", document_id=document_id)


@pytest.mark.requirement("G-14")
async def test_get_engine_status(agent, engine):
    status = await call(agent, "kb_status")
    assert status.keys() == (await engine.status()).keys() - {"top_tags", "doc_types"} | {"notice", "tags"}


@pytest.mark.requirement("G-14")
async def test_list_recent_jobs_and_filter_them_by_status(agent, engine, word):
    await done(agent, await call(agent, "kb_addnote", text=word))
    [shown] = (await call(agent, "kb_jobs", limit=1))["jobs"]
    assert shown.items() <= (await engine.jobs(limit=1))["jobs"][0].items()
    upload_id = (await call(agent, "kb_upload_start", filename="a.pdf", total_size=12))["upload_id"]
    await call(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=0, data=encoded("%PDF-1.7\n\x00\x01\x02"))
    accepted = await call(agent, "kb_upload_finish", upload_id=upload_id)
    with pytest.raises(AssertionError, match="failed"):
        await done(agent, accepted)
    failed = (await call(agent, "kb_jobs", status="failed"))["jobs"]
    assert {job["status"] for job in failed} == {"failed"}
    assert next(job for job in failed if job["id"] == accepted["job_id"])["error"]


def encoded(text):
    return base64.b64encode(text.encode()).decode()
