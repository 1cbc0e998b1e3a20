"""A package outside kb adds a file type; packages that break the rules do not disturb it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint

import httpx2
import pytest
from fastmcp import Client

from kb.api.file_types import FORMATS
from kb.formats.installed_types import GROUP, OWN, load
from tests.conftest import ALL_APPS, ROOT, without_settings
from tests.docs.blocks import blocks
from tests.support.eventually import SECONDS
from tests.support.fork_server import run

PAGE = ROOT / "docs/add-a-file-type.md"
GAMES = """[Event "Reykjavik"]
[White "Carlsen, Magnus"]
[Black "Kasparov, Garry"]

1. d4 d5 2. c4 c6 {a quiet slav} 1/2-1/2
"""
FORMAT = "from kb.api.file_types import Format\n"
LIST = FORMAT + "FORMATS = [Format({})]\n"
READ = "def read(data):\n    {}\n"
BROKEN = {
    "broken": ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    "ends": ("import sys; sys.exit('bye')", "SystemExit: bye"),
    "prints": ("print('prints'); 1 / 0", "ZeroDivisionError: division by zero"),
    "lists_text": ("FORMATS = ['.abc']", "TypeError: it lists '.abc' instead of a kb.api.file_types.Format"),
    "without_list": ("", "AttributeError: module 'without_list' has no attribute 'FORMATS'"),
    "claims": (LIST.format("'mine', 'my notes', 'claims', ('.abc', '.md')"), "ValueError: files that end in .md are already read as Markdown"),
    "claims_markup": (LIST.format("'mine', 'my notes', 'claims', ('.org',)"), "ValueError: files that end in .org are already read as a text"),
    "replaces": (LIST.format("'pdf', 'my PDF', 'replaces'"), "ValueError: there is already a type 'pdf'"),
    "note": (LIST.format("'note', 'a note', 'note'"), "ValueError: there is already a type 'note'"),
    "suffix": (LIST.format("'mine', 'mine', 'suffix', ('abc',)"), "ValueError: 'abc' is not a suffix such as '.pgn'"),
    "no_name": (LIST.format("'My type', 'mine', 'no_name'"), "ValueError: the name of a type, 'My type', or of its reader, 'no_name', is invalid"),
    "no_number": (LIST.format("1, 'mine', 'no_number'"), "TypeError: "),
}  # fmt: skip
READERS = {
    "late": ("'late', 'late', 'late_reader', ('.late',)", "its reader late_reader cannot be used: ModuleNotFoundError: No module named 'late_reader'"),
    "idle": ("'idle', 'idle', 'idle', ('.idle',)", "its reader idle cannot be used: AttributeError: module 'idle' has no attribute 'read'"),
    "lacks": ("'lacks', 'lacks', 'lacks', ('.lacks',)", "its reader cannot be used: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    "wrong": ("'wrong', 'wrong', 'wrong', ('.wrong',)", "its reader wrong returned no Extracted"),
    "fails": ("'fails', 'fails', 'fails', ('.fails',)", "the parser failed: ZeroDivisionError"),
}  # fmt: skip
CODE = {
    "lacks": READ.format("import nothing_of_that_name"),
    "wrong": READ.format("return data"),
    "fails": READ.format("1 / 0"),
}
OTHER = (
    LIST.format("'other', 'a box', 'other', ('.box',)")
    + "def read(data):\n"
    + "    import other_words\n"  # only now, inside the confined process
    + "    from kb.formats.text.extracted import Extracted\n"
    + "    return Extracted.of_text(other_words.said(data))\n"
)


def install(folder, name, value, **modules):
    """Put modules into a folder, with the metadata of an installed package that has this entry point."""
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(code)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n")


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    made = next(block.text for block in blocks(PAGE))
    subprocess.run(["bash", "-euc", made], env=os.environ | {"HOME": str(folder)}, check=True)
    project = tomllib.loads((folder / "kb-chess/pyproject.toml").read_text())["project"]
    [(name, value)] = project["entry-points"][GROUP].items()
    install(folder, name, value, kb_chess=(folder / "kb-chess/kb_chess.py").read_text())
    install(
        folder, "other", "other:FORMATS", other=OTHER, other_words="def said(data): return data[4:].decode('utf-16')"
    )
    for name, (code, _) in BROKEN.items():
        install(folder, name, f"{name}:FORMATS", **{name: code})
    for name, (listed, _) in READERS.items():
        install(folder, name, f"{name}:FORMATS", **{name: LIST.format(listed) + CODE.get(name, "")})
    with start_server(tmp_path_factory.mktemp("added"), PYTHONPATH=str(folder), KB_APPS=ALL_APPS) as running:
        yield running


@pytest.fixture(scope="module")
def engine(server):
    with httpx2.Client(base_url=f"{server.url}/api/v1") as client:
        yield client


@pytest.fixture
def kb(server, tmp_path):
    """The command line, in an environment without the packages."""
    environment = without_settings() | {"HOME": str(tmp_path), "KB_ENGINE_URL": server.url}

    def run_kb(*words, **more):
        return run([sys.executable, "-m", "kb_cli.main", *words], env=environment | more, timeout=SECONDS)

    return run_kb


def add(engine, name, content):
    job = engine.post("jobs", params={"wait": 30}, files={"file": (name, content)}).json()
    return job, job["document_id"] and engine.get(f"documents/{job['document_id']}").json()


def test_a_file_of_the_type_on_the_page_is_found_under_its_heading(engine):
    job, document = add(engine, "games.pgn", GAMES.encode())
    assert (job["status"], document["doc_type"]) == ("done", "pgn")
    [found] = engine.post("search", json={"query": "quiet slav", "doc_type": "pgn"}).json()["results"]
    assert found["place"]["heading"] == ["Carlsen, Magnus - Kasparov, Garry, Reykjavik"]


def test_the_command_line_takes_the_type_and_refuses_one_that_the_engine_does_not_know(engine, kb):
    job, _ = add(engine, "late.pgn", GAMES.encode())
    assert json.loads(kb("list", "--type", "pgn", "--json").stdout)["documents"][-1]["id"] == job["document_id"]
    shown = kb("search", "slav", "--type", "png")
    assert (shown.returncode, shown.stderr) == (2, "kb: --type: 'png' is not a document type; the closest is 'pgn'.\n")
    completed = kb(_KB_COMPLETE="complete_bash", COMP_WORDS="kb list --type pg", COMP_CWORD="3")
    assert completed.stdout.split() == ["pgn"]


async def test_agents_may_write_the_type_in_their_own_way(engine, server):
    add(engine, "agents.pgn", GAMES.encode())
    async with Client(f"{server.url}/mcp") as agent:
        answer = await agent.call_tool("kb_search", {"query": "quiet slav", "doc_type": ".PGN"})
    assert "Carlsen, Magnus" in answer.content[0].text


def test_a_reader_of_binary_files_imports_its_modules_in_the_confined_process(engine):
    _, document = add(engine, "tools.box", b"\0BOX" + "lathe and chisel".encode("utf-16"))
    assert document["doc_type"] == "other"
    assert engine.post("search", json={"query": "chisel"}).json()["results"][0]["document_id"] == document["id"]


def test_the_content_comes_before_the_suffix_of_another_package(engine):
    mail = b"From: a@example.org\nTo: b@example.org\nSubject: Oars\nMessage-ID: <1@example.org>\n\nThe oars are in the shed.\n"
    assert add(engine, "mail.pgn", mail)[1]["doc_type"] == "eml"
    assert "the file is empty" in add(engine, "empty.pgn", b"")[0]["error"]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_that_does_not_work_fails_only_its_own_files(engine, name):
    job, _ = add(engine, f"a.{name}", b"Some words.")
    assert job["status"] == "failed"
    assert READERS[name][1] in job["error"]
    assert add(engine, f"{name}.md", f"# Works after {name}\n".encode())[0]["status"] == "done"


def test_the_log_names_each_package_that_breaks_the_rules(engine, server):
    add(engine, "plain.abc", b"Text of an unknown type.")
    log = server.log.read_text()
    for name, (_, reason) in BROKEN.items():
        assert f"kb is running without the file types from {name} ({name}:FORMATS): {reason}" in log


def test_kb_says_so_if_its_own_types_are_missing():
    own = EntryPoint("kb", OWN, GROUP)
    assert list(load([EntryPoint("gone", "gone:FORMATS", GROUP), own]).values()) == list(FORMATS)
    with pytest.raises(ImportError, match="kb is not installed completely"):
        load([])
