"""Shared fixtures: the real model, fetched once and kept in pytest's cache, real data, and real servers."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpcore2
import httpx2
import hypothesis
import onnx
import pytest
from filelock import FileLock

from kb.client.client import EngineClient
from kb.embed.artifact import save_model
from kb.embed.models.prepare import fetch, prepare
from kb.embed.onnx.embedder import OnnxEmbedder
from kb_cli.runtime.allocator import limit_arenas
from tests.support.eventually import SECONDS, eventually
from tests.support.examples import examples
from tests.support.fork_server import open_process
from tests.support.memory import MOST_MB, Memory, peak_mb
from tests.support.models import quantized
from tests.support.stores import TRIED, Database, served_store

KEY = "the-engine-key"
MCP_KEY = "the-agents-key"
ROOT = Path(__file__).parents[1]
REQUIREMENTS = {"S": 9, "E": 11, "N": 6, "G": 16, "C": 6, "D": 2, "L": 3, "R": 5}
"""The number of requirements in each group."""
KB_SERVE = ("kb_cli.main", "serve")
IN_MEMORY, ROOM = Path("/dev/shm"), 4 << 30
"""A file system in memory, and the bytes that must be free there for the tests' files."""

ALL_APPS = "api,mcp,metrics,web"


@pytest.fixture
def word(request):
    """A word of this test's own, because tests share engines; the same in each run, as its likeness to others' words."""
    return f"w{hashlib.blake2s(request.node.nodeid.encode()).hexdigest()[:10]}"


@pytest.fixture(scope="session")
def model_cache(pytestconfig):
    return pytestconfig.cache.mkdir("kb")


@pytest.fixture(scope="session")
def raw_model(model_cache):
    """The folder of the model as published."""
    kept = model_cache / "raw"
    with FileLock(model_cache / "lock"):  # the suite runs in several processes
        if not kept.is_dir():
            with tempfile.TemporaryDirectory(dir=model_cache) as scratch:
                fetch(Path(scratch, "fetched")).rename(kept)
    return kept


@pytest.fixture(scope="session")
def model_files(raw_model, model_cache):
    with FileLock(model_cache / "lock"):
        return prepare(raw_model, model_cache)


@pytest.fixture(scope="session")
def embedder(model_files):
    return OnnxEmbedder(
        model_files, "cpu", threads=1
    )  # a second session would take 100 MB, and the other core has work


@pytest.fixture(scope="session")
def int8_files(model_files, tmp_path_factory):
    """The model in int8."""
    return quantized(model_files, tmp_path_factory.mktemp("int8"), "int8")


@pytest.fixture(scope="session")
def other_model(model_files, tmp_path_factory):
    """The folder of another model, with the default model's weights and with prefixes."""
    folder = tmp_path_factory.mktemp("models") / "other"
    manifest = replace(model_files.manifest, model="other", query_prefix="query: ", passage_prefix="passage: ")
    save_model(folder, onnx.load(model_files.onnx), model_files.tokenizer, manifest)
    return folder


@pytest.fixture(params=TRIED)
def make_store(request, tmp_path):
    """Opens the same store each time: `with make_store(dimensions=8) as store`."""
    return Database(tmp_path, request.param)


@pytest.fixture(scope="session")
def test_data():
    folder = Path(os.environ.get("KB_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no test data in {folder} (KB_TEST_DATA)")
    return folder


class ServerEnded(RuntimeError):
    """A server ended during its start."""


@dataclass
class Server:
    """A real `kb serve` in a process of its own."""

    port: int
    process: subprocess.Popen
    log: Path

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def await_ready(self):
        eventually(f"a server is ready, whose log is {self.log}", self._is_ready)

    def _is_ready(self):
        if self.process.poll() is not None:
            raise ServerEnded(f"the server did not start:\n{self.log.read_text()}")
        try:
            return httpx2.get(f"{self.url}/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=SECONDS)


@pytest.fixture(scope="session")
def start_server(model_files):
    """Starts servers: `with start_server(data_dir, KB_API_KEY="…") as server`. By default they serve only the API."""

    @contextmanager
    def start(data_dir, *, port=None, program=KB_SERVE, **environment):
        environment = (
            {"KB_MODEL_DIR": str(model_files.onnx.parent), "KB_APPS": "api"} | served_store(data_dir) | environment
        )
        server = launch(data_dir, port or free_port(), program, environment)
        try:
            server.await_ready()
            yield server
        finally:
            if server.process.poll() is None:
                server.stop()

    return start


@pytest.fixture(scope="session")
def server(start_server, tmp_path_factory):
    """One server for all tests that tolerate each other's documents."""
    folder = tmp_path_factory.mktemp("server")
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS) as running:
        yield running


def free_port():
    """A free port outside the system's range of automatic ports, so it stays free until a test uses it."""
    while True:
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port := random.randrange(10_000, 32_000)))
            return port


def without_settings():
    """This process's environment without kb's settings, but in fp32 on every machine: tests compare vectors."""
    return {name: value for name, value in os.environ.items() if not name.startswith("KB_")} | {"KB_PRECISION": "fp32"}


def launch(data_dir, port, program, environment, prefix=()):
    """Start a server without waiting until it is ready. The prefix is a program that starts it, such as `setpriv`."""
    data_dir.mkdir(parents=True, exist_ok=True)
    log = data_dir / "server.log"
    with log.open("ab") as output:
        process = open_process(
            [*prefix, sys.executable, "-m", *program, "--port", str(port), "--data-dir", str(data_dir)],
            env=without_settings() | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Server(port, process, log)


# Timings never fail a test: a busy machine is slow.
hypothesis.settings.register_profile("kb", deadline=None, max_examples=examples(100))
hypothesis.settings.load_profile("kb")


def pytest_configure():
    """Let processes of the tests receive interrupts, which a shell's background jobs ignore, and read certificates once."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a child inherits what is ignored, and no handler
    limit_arenas()
    keep_files_in_memory()
    wait_patiently()
    httpcore2.default_ssl_context = _certificates_read_once(httpcore2.default_ssl_context)


def keep_files_in_memory():
    """Let tests write to memory if it has room. No test needs a disk: the crash suite notes unsynced writes itself."""
    if IN_MEMORY.is_dir() and _has_room(os.statvfs(IN_MEMORY)):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def _has_room(system):
    """Return whether a file system has room for the tests' files, and runs the programs among them."""
    return system.f_bavail * system.f_frsize > ROOM and not system.f_flag & os.ST_NOEXEC


def wait_patiently():
    """Let clients wait as long as tests do: their own limits are for people, and a busy machine is slow."""
    default = httpx2._config.DEFAULT_TIMEOUT_CONFIG
    default.connect = default.read = default.write = default.pool = SECONDS
    EngineClient.__init__.__kwdefaults__["timeout"] = SECONDS


def _certificates_read_once(read):
    """Let clients share their TLS context, because each would take 30 ms to read all certificates."""
    contexts = {}

    def default_ssl_context(**options):
        files = tuple(map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
        key = (files, *sorted(options.items()))
        if key not in contexts:
            contexts[key] = read(**options)
        return contexts[key]

    return default_ssl_context


@pytest.fixture(scope="session")
def memory():
    return Memory()


@pytest.fixture(autouse=True)
def memory_given_back(memory):
    """Give back the memory of models and stores that the test has closed."""
    yield
    memory.give_back()


@pytest.fixture(autouse=True)
def databases_dropped(request):
    """Drop the test's databases in PostgreSQL when its stores are closed."""
    yield
    folder = request.node.funcargs.get("tmp_path")
    if folder and (postgres := sys.modules.get("tests.support.postgres")):
        postgres.drop_below(folder)


PEAKS = pytest.StashKey[dict[str, int]]()
"""The peak memory of each worker in MB, in the process that the workers report to."""


def pytest_testnodedown(node):
    """Record the peak memory of an ended worker."""
    if peak := getattr(node, "workeroutput", {}).get("peak_mb"):
        node.config.stash.setdefault(PEAKS, {})[node.gateway.id] = peak


def pytest_sessionfinish(session):
    """End PostgreSQL, because the suite's processes skip exit handlers. In CI, fail if a worker took too much memory."""
    if postgres := sys.modules.get("tests.support.postgres"):
        postgres.stop()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak_mb"] = peak_mb()
    peak = max(session.config.stash.get(PEAKS, {}).values(), default=0)
    if session.exitstatus == 0 and peak > MOST_MB and os.environ.get("CI"):
        session.exitstatus = 1


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep what collection makes from the garbage collector, which would look through all of it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val, argname):
    """Name bytes by their argument, because they may contain a time, as in gzip, and ids must be equal in every process."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config, items):
    """Add to each report the requirements that its test proves. Deselect tests of another store."""
    if TRIED[-1] != "sqlite":
        about_files = [item for item in items if item.get_closest_marker("sqlite")]
        config.hook.pytest_deselected(items=about_files)
        items[:] = [item for item in items if item not in about_files]
    for item in items:
        numbers = [mark.args[0] for mark in item.iter_markers("requirement")]
        for group, number in (each.split("-") for each in numbers):
            assert 1 <= int(number) <= REQUIREMENTS[group], item.nodeid
        item.user_properties += [("requirement", number) for number in numbers]


def pytest_terminal_summary(terminalreporter):
    """Print the table of requirements with the number of their tests and the results."""
    outcomes = defaultdict(Counter)
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, number in getattr(report, "user_properties", ()):  # a module that fails to load has none
                if name == "requirement" and (report.when == "call" or outcome != "passed"):
                    outcomes[number][outcome] += 1
    peaks = terminalreporter.config.stash.get(PEAKS, {})
    for worker, peak in sorted(peaks.items()):
        excess = f": more than the {MOST_MB} MB that a worker may take" if peak > MOST_MB else ""
        terminalreporter.write_line(f"peak memory of {worker}: {peak} MB{excess}")
    terminalreporter.section("requirements")
    numbers = [f"{group}-{each}" for group, last in REQUIREMENTS.items() for each in range(1, last + 1)]
    for number in filter(outcomes.get, numbers):
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes[number].items())
        terminalreporter.write_line(f"{number:5} {counts}")
    terminalreporter.write_line(
        f"no test ran: {', '.join(number for number in numbers if number not in outcomes) or 'for none'}"
    )
