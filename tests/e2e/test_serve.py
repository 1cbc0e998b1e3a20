"""The server process: its apps, its refusals, and its end."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import zipfile
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from kb.api.errors import SettingError
from kb.asgi.subapps import SubApp, choose, compose, installed
from kb.client.client import EngineClient
from kb.store.sqlite.schema import SCHEMA_VERSION
from kb_cli.server import APPS, HttpServer
from tests.conftest import ALL_APPS, free_port, without_settings
from tests.e2e import hello
from tests.http.conftest import begun
from tests.support import store_v2
from tests.support.eventually import SECONDS, eventually
from tests.support.fork_server import run
from tests.support.rare_cases import mostly_rare
from tests.support.stores import Database


def refused(tmp_path, *flags, **environment):
    """What a start that must fail says."""
    command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", str(tmp_path / "data"), *flags]
    environment = without_settings() | {"KB_PORT": "0"} | environment
    ended = run(command, env=environment)
    assert ended.returncode not in (0, None)
    assert "Traceback" not in ended.stderr
    return ended.stderr.strip().splitlines()[-1]


@pytest.mark.requirement("R-3")
@pytest.mark.parametrize(
    ("name", "value"),
    mostly_rare(
        [
            ("KB_PORT", "many"),
            ("KB_PORT", "70000"),
            ("KB_DEVICE", "abacus"),
            ("KB_DEVICE", "cuda"),
            ("KB_PRECISION", "fp1"),
            ("KB_APPS", "api,nonsense"),
            ("KB_APPS", ","),
            ("KB_DATABASE_URL", "mysql://x"),
            ("KB_DATABASE_URL", "sqlite:////proc/x/kb.db"),
            ("KB_ENGINE_URL", "localhost:8000"),
            ("KB_ENGINE_URL", "http://[::1"),
            ("KB_API_KEY", "two words"),
            ("KB_MODEL_DIR", "/nowhere"),
            ("KB_DATA_DIR", "/proc/nothing"),
            ("KB_MAX_UPLOAD_MB", "0"),
            ("KB_MCP_MAX_UPLOAD_MB", "all"),
        ],
        6,
    ),
)
def test_a_wrong_value_stops_the_start_with_one_line_that_names_the_variable(tmp_path, name, value):
    environment = {"KB_ALLOW_OPEN": "1", name: value}
    if name == "KB_DATA_DIR":
        command = [sys.executable, "-m", "kb_cli.main", "serve", "--port", "0"]
        ended = run(command, env=without_settings() | environment)
        line = ended.stderr.strip().splitlines()[-1]
        assert "Traceback" not in ended.stderr
    else:
        line = refused(tmp_path, **environment)
    assert line.startswith(f"kb: {name}")


@pytest.mark.requirement("R-5")
def test_the_network_is_not_served_without_keys(tmp_path):
    assert "KB_API_KEY" in refused(tmp_path, "--host", "0.0.0.0")
    assert "KB_MCP_API_KEY" in refused(tmp_path, "--host", "0.0.0.0", KB_API_KEY="x")


@pytest.mark.requirement("R-5")
@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"KB_API_KEY": "a"}, "KB_MCP_API_KEY: required in addition to KB_API_KEY"),
        ({"KB_API_KEY_FILE": "/keys"}, "KB_MCP_API_KEY: required in addition to KB_API_KEY_FILE"),
        ({"KB_MCP_API_KEY": "a"}, "KB_API_KEY: required in addition to KB_MCP_API_KEY"),
        (
            {"KB_MCP_API_KEY": "a", "KB_APPS": "mcp,metrics"},
            "KB_METRICS_API_KEY: required in addition to KB_MCP_API_KEY",
        ),
        ({"KB_API_KEY": "a", "KB_APPS": "mcp"}, "KB_MCP_API_KEY: required in addition to KB_API_KEY"),
    ],
)
def test_what_has_a_key_is_not_served_through_a_door_without_one(tmp_path, settings, missing):
    said = refused(tmp_path, **settings)
    assert said.startswith(f"kb: {missing}, because every client that can connect may use /")
    assert "KB_ALLOW_OPEN=1" in said


@pytest.mark.rare
def test_a_door_is_left_open_beside_one_with_a_key_if_that_is_wanted(start_server, tmp_path):
    with start_server(tmp_path, KB_API_KEY="a", KB_ALLOW_OPEN="1", KB_APPS=ALL_APPS) as server:
        assert httpx2.get(f"{server.url}/api/v1/status").status_code == 401
        assert httpx2.post(f"{server.url}/mcp", json={}).status_code == 400


@pytest.mark.rare
def test_what_a_server_writes_is_its_owners_in_whatever_folder(start_server, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    with start_server(folder, KB_DATABASE_URL=f"sqlite:///{folder}/notes.db") as server:
        httpx2.post(f"{server.url}/api/v1/jobs?wait=30", json={"text": "The lamp is lit at six."})
        httpx2.post(f"{server.url}/api/v1/jobs?wait=30", files={"file": ("a.txt", b"The lamp is lit.")})
        made = [path for path in folder.rglob("*") if path != server.log]
        assert {"notes.db", "notes.db-wal"} <= {path.name for path in made}
        assert [path for path in made if path.stat().st_mode & 0o077] == []
    assert "other accounts can read" not in server.log.read_text()


@pytest.mark.rare
@pytest.mark.sqlite
@pytest.mark.parametrize(("mode", "is_told"), mostly_rare([(0o755, True), (0o700, False)]))
def test_a_database_that_others_can_read_is_closed_and_told_of(start_server, mode, is_told):
    with tempfile.TemporaryDirectory() as folder:
        with start_server(Path(folder)):
            pass
        Path(folder, "kb.db").chmod(0o644)
        Path(folder).chmod(mode)
        with start_server(Path(folder)) as server:
            log = server.log.read_text()
            mode = Path(folder, "kb.db").stat().st_mode & 0o777
    assert (f"other accounts could read {folder}/kb.db; kb has changed its permissions" in log) == is_told
    assert (mode == 0o600) == is_told


async def test_every_answer_tells_browsers_what_they_may_not_do_with_it(server):
    async with httpx2.AsyncClient(base_url=server.url) as http:
        for path in (
            "/api/v1/status",
            "/healthz",
            "/mcp",
            "/metrics",
            "/nothing",
            "/docs",
            "/docs/static/swagger-ui.css",
        ):
            headers = (await http.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.rare
async def test_the_page_of_the_api_runs_its_own_script_alone_and_loads_nothing_from_elsewhere(server):
    async with httpx2.AsyncClient(base_url=server.url) as http:
        page = await http.get("/docs")
        policy = page.headers["content-security-policy"]
        [script] = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
        assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        loaded = re.findall(r'(?:src|href)="(.*?)"', page.text)
        assert len(loaded) == 3
        for path in loaded:
            assert path.startswith("/docs/static/")
            assert (await http.get(path)).status_code == 200


@pytest.mark.rare
def test_a_websocket_is_neither_opened_nor_logged(start_server, tmp_path):
    with start_server(tmp_path) as server:
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "eA==",
        }
        answer = httpx2.get(f"{server.url}/api/v1/documents?source_path=/home/zyzzyva", headers=upgrade)
        assert answer.status_code == 200
    log = server.log.read_text()
    assert "zyzzyva" not in log
    assert "WebSocket" not in log
    assert "pip install" not in log


@pytest.mark.slow
def test_a_second_engine_on_the_same_data_or_the_same_database_is_refused(start_server, tmp_path):
    url = f"sqlite:///{tmp_path}/shared.db"
    for settings in ({}, {"KB_DATABASE_URL": url}):
        with start_server(tmp_path / ("one" if settings else "data"), **settings):
            assert "Another kb engine" in refused(tmp_path, "--port", str(free_port()), **settings)


def test_a_port_that_is_taken_is_named(start_server, tmp_path):
    with start_server(tmp_path / "one") as server:
        assert refused(tmp_path, "--port", str(server.port)).startswith("kb: KB_HOST, KB_PORT: cannot listen")
    elsewhere = refused(tmp_path, "--host", "no.such.host.invalid", KB_ALLOW_OPEN="1")
    assert elsewhere.startswith("kb: KB_HOST, KB_PORT: cannot listen")


LET_IN = [
    ({"Host": "localhost:8000", "Origin": "http://localhost:8000"}, 200),
    ({"Host": "kb.home:8000", "Origin": "http://kb.home:8000"}, 200),
    ({"Host": "kb.home", "Origin": "https://kb.home"}, 200),
    ({"Host": "127.0.0.1:8000", "Origin": "https://kb.home"}, 200),
    ({"Host": "127.0.0.1:8000", "Origin": "http://localhost:5173"}, 200),
    ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
    ({"Host": "evil.example"}, 421),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Host": "localhost:8000", "Origin": "http://localhost:3000"}, 403),
    ({"Host": "localhost:8000", "Origin": "http://127.0.0.1:8000"}, 403),
    ({"Host": "127.0.0.1:8000", "Origin": "http://kb.home:3000"}, 403),
    ({"Host": "localhost:8000", "Origin": "http://localhost:99999"}, 403),
    ({"Host": "localhost:8000", "Origin": "chrome-extension://localhost:8000"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
]


async def test_an_open_server_is_for_its_own_pages_and_those_it_is_told_of(start_server, tmp_path):
    hosts = "kb.home, localhost:5173"
    with start_server(tmp_path, KB_ALLOWED_HOSTS=hosts, KB_MCP_ALLOWED_HOSTS=hosts, KB_APPS=ALL_APPS) as server:
        async with httpx2.AsyncClient(base_url=server.url) as http:
            for headers, status in LET_IN:
                for path in ("/api/v1/status", "/metrics"):
                    assert (await http.get(path, headers=headers)).status_code == status, (path, headers)
                answer = await http.post("/mcp", json={}, headers=headers)
                assert answer.status_code == (400 if status == 200 else status), headers


@pytest.mark.sqlite
def test_a_database_of_another_make_is_refused(tmp_path, model_files):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "kb.db").write_bytes(b"this is no database, whatever its name may say" * 100)
    assert "is damaged" in refused(tmp_path, KB_MODEL_DIR=str(model_files.onnx.parent))


@pytest.mark.slow
async def test_a_stop_is_quick_and_clean_even_in_the_middle_of_a_long_text(start_server, tmp_path):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            accepted = await client.add_note(text="Ledgers were kept by patient clerks. " * 9000)
            await begun(client, accepted)
        server.stop()
    assert server.process.returncode == 0
    assert "Traceback" not in server.log.read_text()
    assert Database(tmp_path).execute("SELECT status, attempts FROM jobs") == [("queued", 0)]


@pytest.mark.slow
@pytest.mark.parametrize("number", mostly_rare([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_stop_is_quick_and_clean_even_while_it_starts(tmp_path, model_files, number):
    command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", str(tmp_path), "--port", "0"]
    environment = without_settings() | {"KB_MODEL_DIR": str(model_files.onnx.parent)}
    starting = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    eventually("what it makes first is there", (tmp_path / "kb.lock").exists)
    starting.send_signal(number)
    _, said = starting.communicate(timeout=SECONDS)
    assert starting.returncode == 130
    assert "serving" not in said
    assert [line for line in said.splitlines() if " INFO " not in line] == []


@pytest.mark.rare
def test_a_stop_waits_for_a_thread_that_the_start_has_just_begun(tmp_path, model_files):
    program = """
import signal, sys, threading
from kb_cli.main import main
start = threading.Thread.start
def start_and_stop(thread):
    start(thread)
    if thread.name.startswith("kb-start"):
        signal.raise_signal(signal.SIGINT)
threading.Thread.start = start_and_stop
main()
"""
    command = [sys.executable, "-c", program, "serve", "--data-dir", str(tmp_path), "--port", "0"]
    environment = without_settings() | {"KB_MODEL_DIR": str(model_files.onnx.parent)}
    stopped = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert stopped.returncode == 130
    assert [line for line in stopped.stderr.splitlines() if " INFO " not in line] == []


def test_it_checks_its_own_health(server):
    def healthcheck(port):
        command = [sys.executable, "-m", "kb_cli.main", "healthcheck"]
        environment = without_settings() | {"KB_HOST": "0.0.0.0", "KB_PORT": str(port)}
        return run(command, env=environment)

    healthy = healthcheck(server.port)
    assert (healthy.returncode, healthy.stdout) == (0, "ready\n")
    nobody = healthcheck(free_port())
    assert nobody.returncode == 3
    assert "No server answers at 0.0.0.0" in nobody.stderr


@pytest.mark.requirement("E-9")
async def test_alive_and_ready_are_open_and_say_nothing_more(server):
    async with httpx2.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/healthz")).text == "ok"
        assert (await http.get("/readyz")).text == "ready"
        nothing = await http.get("/nothing/here")
    assert nothing.status_code == 404
    assert nothing.headers["content-type"] == "application/problem+json"


@pytest.mark.requirement("E-9")
def test_an_engine_whose_database_cannot_be_read_is_alive_but_not_ready(start_server, tmp_path):
    with start_server(tmp_path) as server:
        Database(tmp_path).execute("DROP TABLE generation")
        alive, ready = (httpx2.get(f"{server.url}/{probe}") for probe in ("healthz", "readyz"))
    assert alive.text == "ok"
    assert (ready.status_code, ready.text) == (503, "not ready")
    assert "kb cannot read the database" in server.log.read_text()


@pytest.mark.requirement("G-2")
async def test_the_gateway_alone_starts_without_the_engine_and_recovers_when_it_comes(start_server, tmp_path):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with start_server(tmp_path / "gateway", KB_APPS="mcp", KB_ENGINE_URL=url) as gateway:
        async with Client(f"{gateway.url}/mcp") as agent:
            with pytest.raises(ToolError, match="unreachable") as down:
                await agent.call_tool("kb_status", {})
            assert url in str(down.value)
            with start_server(tmp_path / "engine", port=port, KB_APPS="api"):
                assert (await agent.call_tool("kb_status", {})).structured_content["version"] == "3.0.0"
            with pytest.raises(ToolError, match="unreachable"):
                await agent.call_tool("kb_status", {})


@pytest.mark.requirement("S-3")
def test_every_app_of_the_table_can_be_built():
    for app in installed(APPS).values():
        module, _, function = app.factory.partition(":")
        assert callable(getattr(__import__(module, fromlist=[function]), function))


@pytest.mark.requirement("S-3")
async def test_an_app_of_another_package_is_served_beside_the_rest():
    table = {"hello": SubApp("tests.e2e.hello:create_app", ("/hello",))}
    app = compose(choose(table, ["hello"]), "api", {})
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://kb") as http,
    ):
        assert (await http.get("/hello/world")).json() == {"started": True, "engine": None}
        assert (await http.get("/hello-world")).status_code == 404


async def test_the_engine_answers_while_what_is_beside_it_starts_and_is_waited_for():
    table = {
        "api": SubApp("tests.e2e.hello:create_app", ("/hello/world",)),
        "late": SubApp("tests.e2e.hello:create_slow_app", ("/hello",)),
        "later": SubApp("tests.e2e.hello:create_app", ("/",)),
    }
    hello.may_start.clear()
    app = compose(table, "api", {})
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://kb") as http,
    ):
        assert (await http.get("/hello/world")).status_code == 200
        waiting = asyncio.create_task(http.get("/hello/moon"))
        await asyncio.wait([waiting], timeout=0.1)
        assert not waiting.done()
        assert not app.state.started.done()
        hello.may_start.set()
        assert (await waiting).status_code == 404  # its own answer
        assert (await http.get("/elsewhere")).status_code == 404
        assert await app.state.started


async def test_who_waits_for_an_app_that_cannot_start_is_told_and_so_is_who_started_it():
    table = {
        "api": SubApp("tests.e2e.hello:create_app", ("/hello/world",)),
        "broken": SubApp("tests.e2e.hello:create_broken_app", ("/hello",)),
    }
    app = compose(table, "api", {})
    lifespan = app.router.lifespan_context(app)
    await lifespan.__aenter__()
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://kb") as http:
        answer = await http.get("/hello/moon")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert not await app.state.started
    with pytest.raises(SettingError, match="KB_HELLO"):
        await lifespan.__aexit__(None, None, None)


@pytest.mark.rare
def test_a_setting_that_shows_to_be_wrong_only_when_its_app_is_built_ends_the_process_too(tmp_path, model_files):
    settings = {"KB_MODEL_DIR": str(model_files.onnx.parent), "KB_API_KEY": "a", "KB_MCP_API_KEY": ","}
    assert refused(tmp_path, **settings).startswith("kb: KB_MCP_API_KEY")


VISITOR = """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from kb.asgi.bearer import BearerMiddleware
from kb.asgi.key_check import identify_by
from kb.asgi.subapps import SubApp
from kb.settings import EnvSettings, Key, reveal


class Settings(EnvSettings):
    visitor_key: Key | None = None


def create_app(context):
    async def hello(_):
        return PlainTextResponse("hello")

    app = Starlette(routes=[Route("/visitor", hello), Route("/readyz", hello)])
    if key := reveal(Settings.read(context.environment).visitor_key):
        app.add_middleware(BearerMiddleware, identify=identify_by([key], None, "KB_VISITOR_KEY"), prefixes=("/visitor",))
    return app


guarded = SubApp("visitor:create_app", ("/visitor", "/readyz"), keys=("visitor_key",))
keyless = SubApp("visitor:create_app", ("/visitor", "/readyz"))
"""


@pytest.fixture(scope="module")
def visiting(tmp_path_factory):
    """A package with two apps, installed; answers the environment in which it is found."""
    folder = tmp_path_factory.mktemp("visitor")
    wheel, info = folder / "visitor-1.0-py3-none-any.whl", "visitor-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("visitor.py", VISITOR)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: visitor\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/entry_points.txt", "[kb.apps]\nguarded = visitor:guarded\nkeyless = visitor:keyless\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "pip", "install", "-q", "--no-index", "--target", folder / "installed", wheel], check=True)
    return {"PYTHONPATH": str(folder / "installed")}


@pytest.mark.requirement("R-5")
@pytest.mark.parametrize(
    ("app", "keys", "said"),
    mostly_rare(
        [
            ("guarded", {}, "kb: KB_VISITOR_KEY: required to listen on 0.0.0.0"),
            ("guarded", {"KB_VISITOR_KEY": " "}, "kb: KB_VISITOR_KEY: required to listen on 0.0.0.0"),
            (
                "guarded",
                {"KB_API_KEY": "a", "KB_MCP_API_KEY": "b"},
                "kb: KB_VISITOR_KEY: required to listen on 0.0.0.0",
            ),
            ("keyless", {"KB_API_KEY": "a", "KB_MCP_API_KEY": "b"}, "kb: KB_APPS: keyless has no key"),
        ]
    ),
)
def test_an_app_of_another_package_is_not_served_to_the_network_without_a_key(tmp_path, visiting, app, keys, said):
    assert refused(tmp_path, "--host", "0.0.0.0", "--apps", app, **visiting, **keys).startswith(said)


@pytest.mark.rare
@pytest.mark.requirement("R-5")
def test_an_app_of_another_package_is_served_to_the_network_with_its_key(start_server, tmp_path, visiting):
    settings = {"KB_HOST": "0.0.0.0", "KB_APPS": "guarded", "KB_VISITOR_KEY": "sesame"}
    with start_server(tmp_path, **settings, **visiting) as server:
        assert httpx2.get(f"{server.url}/visitor").status_code == 401
        answer = httpx2.get(f"{server.url}/visitor", headers={"Authorization": "Bearer sesame"})
        assert (answer.status_code, answer.text) == (200, "hello")


@pytest.mark.parametrize("settings", [{"KB_HOST": "0.0.0.0", "KB_ALLOW_OPEN": "1"}, {"KB_HOST": "127.0.0.1"}])
def test_an_app_without_a_key_is_served_here_and_to_anyone_if_that_is_wanted(
    start_server, tmp_path, visiting, settings
):
    with start_server(tmp_path, KB_APPS="keyless", **settings, **visiting) as server:
        assert httpx2.get(f"{server.url}/visitor").text == "hello"


SERVED = """
import os, signal, sys, threading, time
import httpx2
import kb.embed  # tells the runtime of the model to keep quiet, as all that import it do
from kb_cli.server import run

port, data_dir = sys.argv[1:]
before = dict(os.environ)

def look():
    while True:
        try:
            if httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                break
        except httpx2.TransportError:
            time.sleep(0.05)
    print({name: value for name, value in os.environ.items() if before.get(name) != value})
    print(httpx2.get(f"http://127.0.0.1:{port}/api/v1/status", timeout=60).status_code)
    httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=60)  # what starts last is there
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=look).start()
run(port=port, data_dir=data_dir, apps="api,mcp,metrics", device="cpu", host=None)
print(before == dict(os.environ))
"""


@pytest.mark.slow
def test_a_served_process_has_the_environment_that_it_was_given(tmp_path, model_files):
    environment = without_settings() | {
        "KB_MODEL_DIR": str(model_files.onnx.parent),
        "KB_APPS": "nonsense",
        "KB_HOST": "127.0.0.1",
    }
    ended = subprocess.run(
        [sys.executable, "-c", SERVED, str(free_port()), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stdout.splitlines() == ["{}", "200", "True"], ended.stderr
    assert (tmp_path / "kb.db").exists()


STOPPED = """
import asyncio, os, signal, sys
import uvicorn
from kb_cli.http_protocol import Connections
from kb_cli.server import HttpServer

raised = []
signal.signal(signal.SIGTERM, lambda *_: raised.append("again"))
config = uvicorn.Config(lambda: None, port=0, lifespan="off", log_config=None)
server = HttpServer(config, lambda: None, Connections(10, 1)) if sys.argv[1] == "ours" else uvicorn.Server(config)

async def main():
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
    await serving

asyncio.run(main())
print(raised)
"""


@pytest.mark.parametrize(
    ("kind", "raised"),
    mostly_rare(
        [
            ("ours", []),
            ("uvicorn", ["again"]),  # when it no longer does, `kb_cli.server.Server` can go
        ]
    ),
)
def test_the_signal_that_stops_the_server_is_raised_again_by_uvicorn_and_not_by_ours(kind, raised):
    ended = subprocess.run(
        [sys.executable, "-c", STOPPED, kind], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == str(raised)


def test_only_a_second_ctrl_c_waits_for_nobody():
    server = HttpServer(None, lambda: None, None)
    states = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        server.handle_exit(number, None)
        states.append((server.should_exit, server.force_exit))
    assert states == [(True, False), (True, False), (True, True), (True, True)]


def test_an_unknown_app_is_named():
    with pytest.raises(SettingError, match=r"KB_APPS.*'nonsense'.*api, mcp"):
        choose(APPS, ["api", "nonsense"])


@pytest.mark.sqlite
@pytest.mark.requirement("S-8")
@pytest.mark.requirement("D-2")
@pytest.mark.parametrize("name", mostly_rare(store_v2.SCHEMAS))
async def test_a_database_of_version_2_is_served_and_written(start_server, tmp_path, name):
    store_v2.build(tmp_path / "kb.db", store_v2.SCHEMAS[name])
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            assert (await client.status())["schema_version"] == SCHEMA_VERSION
            found = await client.search(query="lighthouses", tags=["sea"], fts_only=True)
            assert {result["document_id"] for result in found["results"]} == {3, 9}
            before = await client.document(3)
            assert [chunk["text"] for chunk in before["chunks"]] == store_v2.DOCUMENTS[3][1]
            after = await client.update_note(3, "The harbour has a new crane.")
            assert (after["id"], after["created_at"], after["tags"]) == (3, before["created_at"], ["a", "sea"])
            [best] = (await client.search(query="crane", top=1))["results"]
            assert best["document_id"] == 3
            assert best["chunk_id"] > 21
    said = server.log.read_text()
    assert said.index("migrating from version 2") < said.index("migrate: migrated") < said.index("serving http://")


@pytest.mark.sqlite
@pytest.mark.requirement("D-2")
def test_a_database_of_a_later_version_is_refused_in_one_line(start_server, tmp_path):
    store_v2.build(tmp_path / "kb.db", version=SCHEMA_VERSION + 1)
    with pytest.raises(RuntimeError), start_server(tmp_path, port=free_port()):
        pass
    lines = (tmp_path / "server.log").read_text().splitlines()
    refusal = f"schema version {SCHEMA_VERSION + 1}, but kb supports {SCHEMA_VERSION}. Use a newer version."
    assert len([line for line in lines if refusal in line]) == 1
    assert not [line for line in lines if "Traceback" in line]
