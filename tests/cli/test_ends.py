"""How kb ends, whatever happens: one line on standard error, an exit code, never a traceback."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import httpx2
import pytest

from kb_cli.runtime.exit_codes import MEANINGS
from tests.conftest import free_port
from tests.support.eventually import SECONDS, eventually
from tests.support.rare_cases import mostly_rare


@pytest.mark.requirement("L-3")
def test_an_engine_that_is_not_there(outside):
    url = f"http://127.0.0.1:{free_port()}"
    ended = outside("search", "x", env={"KB_ENGINE_URL": url})
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith(f"kb: The engine at {url} is unreachable")
    assert ended.stderr.count("\n") == 1


@pytest.mark.requirement("L-3")
@pytest.mark.parametrize("words", [["list"], ["sync", "."]], ids=["list", "sync"])
def test_a_missing_or_wrong_key_says_which_engine_which_key_and_where_it_came_from(kb, outside, server, words):
    file = outside.folder / "config/kb/config.toml"
    for key, reason in (
        ("", f"{server.url} requires an API key. Set KB_API_KEY, or api_key in {file}."),
        (
            "wrong",
            f"{server.url} rejected the key from KB_API_KEY. Use the engine's own KB_API_KEY, or a key from 'kb keys make'.",
        ),
    ):
        ended = kb(*words, env={"KB_API_KEY": key})
        assert (ended.returncode, ended.stderr) == (4, f"kb: {reason}\n")
    file.parent.mkdir(parents=True)
    file.write_text(f"[profiles.work]\nengine_url = '{server.url}'\napi_key = 'wrong'\n")
    file.chmod(0o600)
    ended = outside("--profile", "work", *words)
    source = f"{server.url} (profile work) rejected the key from {file}: profiles.work.api_key. Use the engine"
    assert ended.stderr.startswith(f"kb: {source}")


@pytest.mark.requirement("L-3")
@pytest.mark.parametrize(
    "words", [["serch"], ["list", "--nope"], ["search"], ["get", "0"], ["add"], ["list", "-n", "x"], ["tag", "1"]]
)
def test_wrong_words_are_one_line(outside, words):
    ended = outside(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("kb: ")
    assert ended.stderr.count("\n") == 1


def test_something_that_is_no_engine(outside, tmp_path):
    port = free_port()
    (tmp_path / "api/v1").mkdir(parents=True)
    (tmp_path / "api/v1/status").write_text("<html>hello</html>")
    command = [sys.executable, "-c", SERVE_FILES, str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as web:
        web.stdout.readline()
        ended = outside("status", env={"KB_ENGINE_URL": f"http://127.0.0.1:{port}"})
        elsewhere = outside("tags", env={"KB_ENGINE_URL": f"http://127.0.0.1:{port}/mcp"})
        web.kill()
    assert ended.returncode == 7
    assert ended.stderr == f"kb: The server at http://127.0.0.1:{port} is not a kb engine.\n"
    assert elsewhere.returncode == 7
    assert f"The server at http://127.0.0.1:{port}/mcp is not a kb engine. Check KB_ENGINE_URL." in elsewhere.stderr


SERVE_FILES = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(("127.0.0.1", int(sys.argv[1])), SimpleHTTPRequestHandler)
print("ready", flush=True)
server.serve_forever()
"""


def test_bytes_on_the_command_line_that_are_no_text(kb):
    ended = subprocess.run([sys.executable, "-m", "kb_cli.main", "search", b"caf\xe9"], env=kb.environment, stderr=-1)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"kb: ")
    assert b"Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_reader_that_stops_reading_is_no_error(kb, tag):
    for number in range(30):
        kb("addnote", f"{tag} {number}", "--tags", tag)
    note = kb.note(tag, "--tags", tag)
    for words in (["list"], ["search", tag, "-n", "30"], ["get", str(note), "--text"], ["tags", "--json"]):
        process = kb.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        with process.stderr as errors:
            assert errors.read() == b""
        assert process.wait() == 141


def test_an_output_that_is_full_is_one_line(kb):
    with Path("/dev/full").open("w") as full:
        process = kb.start("status", stdout=full, stderr=subprocess.PIPE)
    with process.stderr as errors:
        assert errors.read() == b"kb: No space left on device\n"
    assert process.wait() == 8


@pytest.mark.requirement("L-3")
def test_ctrl_c_ends_quietly(outside):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {"KB_ENGINE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        process = outside.start("list", env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        silent.settimeout(SECONDS)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            assert process.communicate() == (b"", b"")
    assert process.returncode == 130


@pytest.mark.requirement("L-3")
def test_ctrl_c_ends_quietly_while_the_program_is_being_loaded(outside):
    press = "import os, sys; sys.argv = ['kb', '--version']; from kb_cli.__main__ import start; "
    at = "sys.addaudithook(lambda event, args: event == 'import' and args[0] == 'typer' and os.kill(os.getpid(), 2)); "
    ended = subprocess.run(
        [sys.executable, "-c", f"{press}{at}start()"], env=outside.environment, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@pytest.mark.requirement("L-3")
def test_ctrl_c_ends_what_waits_for_standard_input(kb):
    for words in (["add", "-"], ["addnote", "-"]):
        process = kb.start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"words " * 100_000)  # more than a pipe holds: once it is written, it is being read
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
        assert process.returncode == 130


@pytest.mark.slow
@pytest.mark.requirement("L-3")
@pytest.mark.parametrize(
    ("words", "said"),
    mostly_rare(
        [(["addnote", "-"], rb""), (["add", "long.txt"], rb"kb: interrupted: kb accepted [01] of 1 files; .*\n")]
    ),
    ids=["note", "file"],
)
def test_ctrl_c_ends_a_wait_at_once(outside, start_server, tmp_path, words, said):
    long = outside.folder / "long.txt"
    long.write_text("Ledgers were kept by patient clerks. " * 9000)
    with start_server(tmp_path / "data", KB_APPS="api") as server, long.open() as text:
        env = {"KB_ENGINE_URL": server.url}
        process = outside.start(*words, "--wait", env=env, stdin=text, stdout=PIPE, stderr=PIPE)
        eventually("the command has sent what it waits for", lambda: jobs_of(server))
        process.send_signal(signal.SIGINT)
        shown, complaint = process.communicate(timeout=SECONDS)
    assert (process.returncode, shown) == (130, b"")
    assert re.fullmatch(said, complaint)


def jobs_of(server):
    return httpx2.get(f"{server.url}/api/v1/jobs").json()["jobs"]


def test_the_end_of_input_where_a_question_is_asked_is_a_no(kb, tag):
    note = kb.note(tag)
    code, shown = kb.in_terminal("delete", note, typed="\x04")
    assert code == 130
    assert shown.endswith("\n")
    assert kb("get", note).returncode == 0


@pytest.mark.requirement("L-3")
def test_the_help_names_every_exit_code(outside):
    shown = " ".join(outside("--help", env={"COLUMNS": "200"}).stdout.split())
    for code, meaning in MEANINGS.items():
        assert f"{code} {meaning}" in shown
    assert outside().stdout == outside("--help").stdout


@pytest.mark.requirement("S-9")
def test_the_version(outside):
    assert outside("--version").stdout == "kb 3.0.0\n"


@pytest.mark.requirement("R-2")
def test_serve_names_the_variable_of_each_flag(outside):
    shown = outside("serve", "--help", env={"COLUMNS": "200"}).stdout
    for flag in ("host", "port", "data-dir", "apps", "device"):
        assert f"--{flag} " in shown
        assert f"KB_{flag.upper().replace('-', '_')}" in shown


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["--version"], {"rich", "httpx2", "asyncio", "pydantic", "kb_cli.commands.search"}),
        (["--help"], {"rich", "httpx2", "asyncio", "pydantic", "kb_cli.commands.search"}),
        (["search", "x", "--json"], {"rich", "pydantic", "kb_cli.commands.addnote"}),
        (["search", "x"], {"rich", "pydantic", "httpx2"}),
        (["list"], {"rich", "pydantic"}),
    ],
)
def test_nothing_is_loaded_that_is_not_needed(kb, words, unwanted):
    code = "import sys; from kb_cli.main import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", code, *words], env=kb.environment, stderr=-1, stdout=-1, text=True)
    loaded = set(ended.stderr.split())
    assert "kb_cli.main" in loaded
    assert not loaded & unwanted


def test_the_table_leads_to_a_command_for_every_name():
    from kb_cli.main import COMMANDS, LazyCommands

    for name, command in LazyCommands(COMMANDS).items():
        assert command.name == name
        assert command.help


def test_output_in_another_encoding_does_not_fail(kb, tag):
    note = kb.note(f"日本語 {tag}")
    ended = kb("get", note, env={"PYTHONIOENCODING": "latin-1"})
    assert ended.returncode == 0
    assert f"??? {tag}" in ended.stdout
    assert os.linesep in ended.stdout


@pytest.mark.parametrize(("closed", "words"), [("<&-", "addnote -"), (">&-", "list"), ("2>&-", "list")])
def test_a_standard_stream_may_be_closed(kb, closed, words):
    command = f"{sys.executable} -m kb_cli.main {words} {closed}"
    ended = subprocess.run(["sh", "-c", command], env=kb.environment, stderr=-1, stdout=-1, text=True)
    assert ended.returncode == (6 if words == "addnote -" else 0)
    assert "Traceback" not in ended.stderr
