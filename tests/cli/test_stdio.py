"""kb stdio: the bridge for clients that only start programs."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import mcp.client
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from kb_cli.stdio_bridge import Bridge, Endpoint
from kb_cli.stdio_files import LocalFiles, _opened
from tests.conftest import KEY, MCP_KEY, free_port, without_settings
from tests.support.eventually import eventually, eventually_async

COMMAND = ("-m", "kb_cli.main", "stdio")
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "claude-ai", "version": "0.1.0"},
}


@asynccontextmanager
async def bridged(url, key, mode="legacy", **environment):
    settings = {"KB_MCP_URL": url, "KB_MCP_API_KEY": key} if key else {"KB_MCP_URL": url}
    program = StdioServerParameters(
        command=sys.executable, args=list(COMMAND), env=without_settings() | settings | environment
    )
    async with mcp.client.Client(stdio_client(program), mode=mode) as client:
        yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_tools_resources_and_progress_pass_through_it_in_both_eras(server, mode):
    async with bridged(f"{server.url}/mcp", MCP_KEY, mode) as client:
        assert "kb_list" in {tool.name for tool in (await client.list_tools()).tools}
        added = await client.call_tool("kb_addnote", {"text": f"über die Brücke, {mode} ✓"})
        assert added.structured_content["job_id"]
        found = await asyncio.gather(*(client.call_tool("kb_search", {"query": "Brücke"}) for _ in range(8)))
        assert all("results" in each.structured_content for each in found)
        assert (await client.list_resource_templates()).resource_templates


def test_the_start_sequence_of_a_desktop_client_is_answered_line_by_line(server):
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
        {"jsonrpc": "2.0", "id": 2, "method": "prompts/list", "params": {}},
        {"jsonrpc": "2.0", "id": 3, "method": "resources/list", "params": {}},
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
    ]
    ended = run(server.url, "\n".join(map(json.dumps, lines)) + "\nno json\n\n")
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {each["id"] for each in answers if "result" in each} == {0, 1, 2, 3, 4}
    assert [each["error"]["code"] for each in answers if "error" in each] == [-32700]
    assert answers[0]["result"]["serverInfo"]["name"] == "kb"
    assert (ended.returncode, ended.stderr) == (0, "")


def test_each_answer_is_one_line_whatever_ends_a_line():
    text = "one\u2028two\u2029three\x85four\x0bfive\x1csix\r\nseven"
    output = io.StringIO()
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"text": text}}
    Bridge(None, output, lambda _: iter([answer])).run(iter([request]))
    [line] = output.getvalue().splitlines()
    assert json.loads(line) == answer
    assert r"one\u2028two\u2029three\u0085four" in line


@pytest.mark.parametrize(("name", "is_text"), [("claude-code", True), ("claude-ai", False), ("claude\ncode", False)])
def test_the_name_of_the_client_reaches_the_gateway(server, name, is_text):
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": INITIALIZE | {"clientInfo": {"name": name, "version": "2.1"}}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "kb_list", "arguments": {}}},
    ]  # fmt: skip
    ended = run(server.url, "\n".join(map(json.dumps, lines)))
    [listed] = [each["result"] for each in map(json.loads, ended.stdout.strip().split("\n")) if each["id"] == 1]
    assert ("structuredContent" not in listed) == is_text


LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
NOTE = {"name": "kb_addnote", "arguments": {"text": "cut \ud83d here"}}
ODD_INPUT = {
    "a mark of UTF-8 first": b"\xef\xbb\xbf" + json.dumps(LIST).encode(),
    "bytes that are no UTF-8": json.dumps(LIST | {"params": {"cursor": "?"}}).encode().replace(b"?", b"\xff\xfe"),
    "half a character": json.dumps(LIST | {"method": "tools/call", "params": NOTE}).encode(),
    "lines of Windows": json.dumps(LIST).encode() + b"\r\n\r\n",
    "an id that is none": json.dumps(LIST | {"id": [1]}).encode() + b"\n" + json.dumps(LIST).encode(),
    "a message too deep to read": b'{"id":' + b"[" * 100_000 + b"\n" + json.dumps(LIST).encode(),
    "no method": b'{"jsonrpc": "2.0", "id": 7}',
    "half a line": json.dumps(LIST).encode() + b"\n" + json.dumps(LIST).encode()[:20],
}


@pytest.mark.parametrize("sent", ODD_INPUT.values(), ids=ODD_INPUT)
def test_every_request_is_answered_in_lines_of_json_whatever_is_sent(server, sent):
    ended = run(server.url, sent.decode("utf-8", "surrogateescape"))
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [each["id"] for each in answers].count(7) == 1


def test_a_request_that_is_given_up_is_not_answered_and_holds_no_other_up():
    """As when a job waits: a server that answers nothing but pings, and more requests than are passed on at once."""
    released = threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if message["method"] != "ping":
                released.wait(60)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode()
            with suppress(OSError):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    calls = [{"jsonrpc": "2.0", "id": number, "method": "tools/call"} for number in range(20)]
    cancel = [{"method": "notifications/cancelled", "params": {"requestId": number}} for number in range(20)]
    odd = [
        {"method": "notifications/cancelled", "params": odd}
        for odd in (None, [1], {"requestId": [1]}, {"requestId": 99})
    ]
    lines = [*calls, {"jsonrpc": "2.0", "id": "p", "method": "ping"}, *odd, *cancel]
    output = io.StringIO()
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/mcp", dict, Path("unused"))
    Bridge(endpoint, output).run(map(json.dumps, lines))
    released.set()
    server.shutdown()
    server.server_close()
    assert json.loads(output.getvalue()) == {"jsonrpc": "2.0", "id": "p", "result": {}}


def run(url, text, key=MCP_KEY, more=()):
    environment = without_settings() | {"KB_MCP_URL": f"{url}/mcp", "KB_MCP_API_KEY": key}
    return subprocess.run(
        [sys.executable, *COMMAND, *more],
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("name", ["claude-ai", "claude-code"])
def test_agents_add_files_below_allowed_folders_by_their_path(server, tmp_path, name):
    (tmp_path / "shelf").mkdir()
    file = tmp_path / "shelf" / "Häuser.txt"
    file.write_text("The house at the harbour is blue. " * 5)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "shelf" / "link.txt").symlink_to(tmp_path / "secret.txt")
    paths = [file, tmp_path / "secret.txt", tmp_path / "shelf" / "link.txt", tmp_path / "shelf" / "none.txt",
             tmp_path / "shelf", f"{tmp_path}/shelf/../secret.txt", "shelf/Häuser.txt"]  # fmt: skip
    lines = [
        {"jsonrpc": "2.0", "id": 90, "method": "initialize",
         "params": INITIALIZE | {"clientInfo": {"name": name, "version": "1"}}},
        {"jsonrpc": "2.0", "id": 91, "method": "tools/list", "params": {}},
        *({"jsonrpc": "2.0", "id": number, "method": "tools/call",
           "params": {"name": "kb_upload_start", "arguments": {"path": str(path), "tags": ["shelf"]}}}
          for number, path in enumerate(paths)),
    ]  # fmt: skip
    ended = run(server.url, "\n".join(map(json.dumps, lines)), more=["--root", str(tmp_path / "shelf")])
    answers = {each["id"]: each["result"] for each in map(json.loads, ended.stdout.splitlines())}
    [tool] = [tool for tool in answers[91]["tools"] if tool["name"] == "kb_upload_start"]
    assert "path" in tool["inputSchema"]["properties"]
    receipt = json.loads(answers[0]["content"][0]["text"])
    assert receipt["document_id"]
    assert answers[0].get("structuredContent") == (receipt if name == "claude-ai" else None)
    for number in range(1, len(paths)):
        assert answers[number]["isError"], number
        assert answers[number]["content"][0]["text"].startswith("path: ")
    assert "is outside the folders" in answers[2]["content"][0]["text"]


@pytest.mark.parametrize("name", [".env", ".ssh/id.txt", "plain.txt"])
def test_agents_add_no_hidden_files_and_no_path_along_with_a_text(server, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("password = swordfish")
    arguments = {"path": str(path), "filename": "x.txt"} | ({"text": "x"} if name == "plain.txt" else {})
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "kb_upload_start", "arguments": arguments}}  # fmt: skip
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}, message]
    ended = run(server.url, "\n".join(map(json.dumps, lines)), more=["--root", str(tmp_path)])
    [answer] = [each["result"] for each in map(json.loads, ended.stdout.strip().split("\n")) if each["id"] == 1]
    assert answer["isError"]
    said = "path: cannot be combined with text." if name == "plain.txt" else f"path: {path} is hidden."
    assert answer["content"][0]["text"].startswith(said)


def test_a_hidden_folder_can_be_allowed_itself(tmp_path):
    root = tmp_path / ".notes"
    root.mkdir()
    (root / "plan.txt").write_text("x")
    assert LocalFiles([root], None, None)._allowed(str(root / "plan.txt")) == (root / "plan.txt").resolve()


def test_a_file_that_a_link_replaces_after_the_check_is_not_sent(tmp_path):
    secret, shelf = tmp_path / "secret.txt", tmp_path / "shelf"
    secret.write_text("secret")
    shelf.mkdir()
    (shelf / "a.txt").write_text("plain")
    (shelf / "below").mkdir()
    (shelf / "below" / "secret.txt").write_text("plain")
    files = LocalFiles([shelf], None, None)
    checked = [files._allowed(str(shelf / "a.txt")), files._allowed(str(shelf / "below" / "secret.txt"))]
    (shelf / "a.txt").unlink()
    (shelf / "a.txt").symlink_to(secret)
    (shelf / "below").rename(shelf / "moved")
    (shelf / "below").symlink_to(tmp_path)
    for path in checked:
        with pytest.raises((OSError, ValueError)):
            _opened(path)


def test_a_wrong_key_is_said_in_the_answer_and_stands_in_no_output(server):
    ended = run(server.url, json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}) + "\n", key="wrong-key")
    [answer] = map(json.loads, ended.stdout.splitlines())
    assert (answer["id"], "needs a valid key" in answer["error"]["message"]) == (7, True)
    assert "wrong-key" not in ended.stdout + ended.stderr


def test_a_message_of_the_wrong_form_is_answered_and_the_next_one_too(server):
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": [1]},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": [1]},
    ]
    ended = run(server.url, "\n".join(map(json.dumps, lines)))
    assert {each["id"]: "error" in each for each in map(json.loads, ended.stdout.splitlines())} == {1: True, 2: True}
    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_server_is_started_where_another_program_speaks_https():
    url = f"https://127.0.0.1:{free_port()}"
    [answer] = map(json.loads, run(url, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})).stdout.splitlines())
    assert f"no server answers at {url}" in answer["error"]["message"]


def test_the_bridge_imports_no_more_than_it_needs():
    loaded = "import sys, kb_cli.commands.stdio; print([m for m in ('httpx2', 'pydantic', 'fastmcp', 'asyncio') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@pytest.fixture
def lonely(tmp_path, model_files):
    """Where no server runs: what a bridge needs to start one, which ends with the test."""
    port = free_port()
    settings = {
        "KB_DATA_DIR": str(tmp_path),
        "KB_MODEL_DIR": str(model_files.onnx.parent),
        "KB_API_KEY": KEY,
        "KB_MCP_API_KEY": MCP_KEY,
    }
    yield f"http://127.0.0.1:{port}", settings
    for process in serving(port):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    eventually("the server has stopped", lambda: not serving(port))


def serving(port):
    """The processes that serve at a port."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"serve" in words and str(port).encode() in words:
                found.append(int(folder.name))
    return found


async def bridges_find_one_engine(lonely, bridges, writers):
    url, settings = lonely

    async def talk(number):
        async with bridged(f"{url}/mcp", MCP_KEY, **settings) as client:
            await client.list_tools()
            if number < writers:
                for turn in range(5):
                    await client.call_tool("kb_addnote", {"text": f"note {turn} of {number}", "tags": ["bridged"]})

    await asyncio.gather(*(talk(number) for number in range(bridges)))
    port = int(url.rpartition(":")[2])
    assert len(serving(port)) == 1
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(headers=headers, base_url=f"{url}/api/v1") as http:

        async def count():
            return (await http.get("/documents", params={"tag": "bridged", "total": "true"})).json()["total"]

        assert await eventually_async("all notes are there", count, lambda total: total >= 5 * writers) == 5 * writers
    log = Path(settings["KB_DATA_DIR"], "stdio.log")
    assert b"is locked" not in await asyncio.to_thread(log.read_bytes)
    assert (await asyncio.to_thread(log.stat)).st_mode & 0o777 == 0o600


@pytest.mark.slow
async def test_several_bridges_start_one_engine_and_lose_nothing(lonely):
    await bridges_find_one_engine(lonely, 4, 2)


@pytest.mark.long
async def test_fifty_bridges_start_one_engine_and_lose_nothing(lonely):
    await bridges_find_one_engine(lonely, 50, 8)
