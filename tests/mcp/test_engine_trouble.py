"""Messages to agents while the engine is away, slow, starting, or refuses the gateway."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest

from kb.api.errors import EngineUnreachable
from kb.client.client import EngineClient
from tests.conftest import KEY
from tests.mcp.conftest import call, connected, refusal
from tests.support.rare_cases import mostly_rare
from tests.support.scripted_server import listening


@asynccontextmanager
async def engine_that(*answers, says="Kb-Version: 3.0.0\r\n"):
    """A server that gives one answer after the other, the last one for ever, and the requests that it was sent.

    Its answers have the headers that it `says`. None closes the connection instead, a number is how many seconds nothing is said before that.
    """
    requests, left = [], list(answers)

    async def serve(reader, writer):
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            length = re.search(r"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            requests.append((writer, head))
            answer = left.pop(0) if len(left) > 1 else left[0]
            if not isinstance(answer, tuple):
                await asyncio.sleep(answer or 0)
                break
            status, body = answer
            writer.write(f"HTTP/1.1 {status}\r\n{says}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    async with listening(serve) as url:
        yield url, requests


def problem(code, detail):
    return json.dumps({"type": f"urn:kb:problem:{code}", "title": "x", "status": 0, "detail": detail})


@pytest.mark.parametrize(
    ("answer", "said"),
    mostly_rare(
        [
            (
                ("401 Unauthorized", problem("unauthorized", "no")),
                "Ask the user to set the gateway's KB_API_KEY",
            ),
            (
                (
                    "503 Service Unavailable",
                    problem("unavailable", "The engine is not ready yet; try again in a moment."),
                ),
                "not ready yet",
            ),
            (
                ("500 Internal Server Error", problem("internal", "The engine failed.")),
                "The engine failed. Try once more.",
            ),
            (("502 Bad Gateway", "<html>"), "The engine answered 502 Bad Gateway. Try once more."),
            (("401 Unauthorized", "<html>"), "Ask the user to set the gateway's KB_API_KEY"),
            (("404 Not Found", "<html>"), "The engine answered 404 Not Found. Try once more."),
            (("422 Unprocessable Content", '{"type": "x", "detail": ["y"]}'), "['y'] Try once more."),
            (("200 OK", "<html>"), "is not a kb engine. Ask the user to set the gateway's KB_ENGINE_URL"),
            (("200 OK", "null"), "is not a kb engine"),
            (("302 Found", "{}"), "is not a kb engine"),
            (None, "the connection broke"),
        ],
        5,
    ),
)
async def test_each_trouble_has_its_own_message(start_gateway, answer, said):
    async with engine_that(answer) as (url, _):
        with start_gateway(KB_ENGINE_URL=url, KB_API_KEY=KEY) as gateway:
            async with connected(gateway) as agent:
                message = await refusal(agent, "kb_status")
    assert said in message
    assert len(message.splitlines()) == 1
    assert KEY not in message
    assert KEY not in gateway.log.read_text()


async def test_nothing_is_called_done_that_another_server_than_the_engine_answered(start_gateway):
    async with engine_that(("200 OK", "{}"), says="") as (url, _):
        with start_gateway(KB_ENGINE_URL=url) as gateway:
            async with connected(gateway) as agent:
                for tool, arguments in (
                    ("kb_addnote", {"text": "x"}),
                    ("kb_delete", {"document_id": 1}),
                    ("kb_update_note", {"document_id": 1, "text": "x"}),
                    ("kb_search", {"query": "x"}),
                ):
                    assert f"The server at {url} is not a kb engine." in await refusal(agent, tool, **arguments)
                assert await agent.list_resources() == []


@pytest.mark.rare
async def test_a_slow_engine_is_said_to_be_slow(start_gateway):
    async with engine_that(1.0) as (url, _):
        with start_gateway(KB_ENGINE_URL=url, KB_MCP_ENGINE_SECONDS="0.3") as gateway:
            async with connected(gateway) as agent:
                assert f"The engine at {url} did not answer in time" in await refusal(agent, "kb_status")


@pytest.mark.slow
@pytest.mark.requirement("G-2")
async def test_the_gateway_recovers_by_itself_when_the_engine_was_restarted(
    start_gateway, start_server, tmp_path, unused_port
):
    with start_gateway(KB_ENGINE_URL=f"http://127.0.0.1:{unused_port}") as gateway:
        async with connected(gateway) as agent:
            for _ in range(2):
                with start_server(tmp_path, port=unused_port, KB_APPS="api") as engine:
                    assert (await call(agent, "kb_status"))["version"] == "3.0.0"
                    engine.kill()
                assert "is unreachable" in await refusal(agent, "kb_status")


async def test_a_kept_connection_that_broke_is_made_again_for_what_may_be_repeated():
    async with engine_that(None, ("200 OK", "{}")) as (url, requests), EngineClient(url) as client:
        assert await client.status() == {}
        assert len(requests) == 2


async def test_what_is_added_is_added_once_when_the_connection_breaks(server, word):
    async with engine_that(None, ("200 OK", "{}")) as (url, requests), EngineClient(url) as client:
        await client.add_note(text=word)
        keys = [
            line for _, head in requests for line in head.splitlines() if line.lower().startswith("idempotency-key")
        ]
        assert len(keys) == 2
        assert len(set(keys)) == 1


async def test_a_deletion_is_not_repeated():
    async with engine_that(None, ("200 OK", "{}")) as (url, requests), EngineClient(url) as client:
        with pytest.raises(EngineUnreachable, match="may already have been made"):
            await client.delete_document(1)
        assert len(requests) == 1


@pytest.mark.rare
@pytest.mark.requirement("G-9")
async def test_an_upload_whose_engine_goes_away_leaves_nothing_behind(
    start_gateway, start_server, unused_port, tmp_path
):
    staging = tmp_path / "staging"
    staging.mkdir()
    settings = {"KB_ENGINE_URL": f"http://127.0.0.1:{unused_port}", "KB_MCP_UPLOAD_DIR": str(staging)}
    with start_gateway(**settings) as gateway:
        async with connected(gateway) as agent:
            with start_server(tmp_path / "engine", port=unused_port, KB_APPS="api"):
                upload_id = (await call(agent, "kb_upload_start", filename="a", total_size=1))["upload_id"]
            await call(agent, "kb_upload_chunk", upload_id=upload_id, chunk_index=0, data="YQ==")
            said = await refusal(agent, "kb_upload_finish", upload_id=upload_id)
            assert "is unreachable" in said
            assert said.endswith(
                "kb discarded the upload. After you solve the problem, start again with kb_upload_start."
            )
    assert [path.name for path in staging.iterdir() if path.name != "lock"] == []


async def test_no_address_is_handed_out_while_the_engine_is_away(start_gateway, unused_port):
    with start_gateway(KB_ENGINE_URL=f"http://127.0.0.1:{unused_port}") as gateway:
        async with connected(gateway) as agent:
            for path in ("", "keys/a"):
                start = {"filename": "a.pdf", "total_size": 10, "source_path": path}
                assert "is unreachable" in await refusal(agent, "kb_upload_start", **start)
