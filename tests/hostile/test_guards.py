"""Actions that kb refuses although a document, a page, a name or another program asks for them."""

import logging
import subprocess
import sys
import time
from functools import partial

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from kb.asgi import bearer
from kb.asgi.bearer import BearerMiddleware
from kb.asgi.key_check import identify_by
from kb.asgi.rate_limit import GCRA
from kb.parser.sandbox import places_in
from kb_cli.commands.mcp import warn_of_repository
from kb_cli.runtime import banner, open_files
from kb_cli.runtime.exit_codes import LocalError
from kb_cli.sync.web_fetch import decoded, recoded

STARTS = (
    *(".hta", ".lnk", ".scr", ".msi", ".ps1", ".url", ".reg", ".jar", ".exe", ".bat", ".cmd", ".com", ".vbs", ".js"),
    *(".jse", ".wsf", ".wsh", ".msc", ".cpl", ".chm", ".application", ".appref-ms", ".scf", ".library-ms", ".inf"),
    *(".desktop", ".terminal", ".inetloc", ".webloc", ".command", ".app", ".pkg", ".dmg", ".iso", ".docm", ".xlsm"),
    *(".xll", ".py", ".sh", ".pyw", ".rdp", ".settingcontent-ms", ".appinstaller", ".vhd", ".svg", ".swf", ""),
)


@pytest.fixture
def opened(monkeypatch):
    """What was given to the program that opens files."""
    given = []
    monkeypatch.setattr(open_files, "launch", given.append)
    monkeypatch.setattr(open_files, "start", given.append)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    return given


def document(path, doc_type="text"):
    return {"source_path": str(path), "document_id": 7, "doc_type": doc_type}


@pytest.mark.parametrize("suffix", STARTS)
def test_what_may_start_something_is_not_opened(opened, tmp_path, suffix):
    for name in (f"invoice{suffix}", f"invoice.pdf{suffix}" if suffix else "invoice", f"INVOICE{suffix.upper()}"):
        (tmp_path / name).write_text("x")
        with pytest.raises(LocalError, match="kb does not open files of this kind"):
            open_files.open_source(document(tmp_path / name))
    assert opened == []


@pytest.mark.parametrize("name", ["a.pdf:b.hta", "a.hta:b.pdf", "a.hta.", "a.hta ", "a.pdf\u202egnp.exe"])
def test_a_name_that_windows_reads_otherwise_is_not_opened(name):
    assert not open_files.is_opened(name)


@pytest.mark.parametrize("name", ["a.pdf", "A.PDF", "letter.docx", "photo.JPG", "page.html", "notes.md", "song.mp3", "all.zip"])  # fmt: skip
def test_what_programs_only_show_is_opened(opened, tmp_path, name):
    (tmp_path / name).write_text("x")
    open_files.open_source(document(tmp_path / name))
    assert opened == [str(tmp_path / name)]


@pytest.mark.parametrize(
    "path",
    [r"\\evil\share\a.pdf", "//evil/share/a.pdf", r"\\?\C:\a.pdf", r"\\.\pipe\a", r"\\?\UNC\evil\share\a.pdf", r"\/evil\a.pdf"],
)  # fmt: skip
def test_a_path_of_another_machine_or_a_device_is_not_looked_at_on_windows(path):
    with pytest.raises(LocalError, match="kb does not open it"):
        open_files.refuse_elsewhere(path, is_windows=True)


@pytest.mark.parametrize("path", [r"C:\Users\ada\a.pdf", "C:/a.pdf", "a.pdf", "", "https://example.org/a.pdf"])
def test_paths_of_this_machine_are_looked_at_on_windows(path):
    open_files.refuse_elsewhere(path, is_windows=True)


def test_a_page_whose_server_names_an_encoding_that_takes_forever_is_read_at_once():
    import io

    data = b"a" * 2_000_000 + b"\xff-b"
    before = time.monotonic()
    for encoding in ("punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined", "rot13", "zlib"):
        assert decoded(data, encoding) is None
        assert recoded(io.BytesIO(data), encoding).read() in (b"", data)
    assert time.monotonic() - before < 5


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "windows-1252", "iso-8859-15", "shift_jis", "gbk", "gb18030", "big5", "euc-jp", "euc-kr", "koi8-r", "windows-1251", "macintosh", "iso-2022-jp", "utf-16"])  # fmt: skip
def test_the_encodings_that_browsers_know_are_known(encoding):
    assert decoded("abc".encode(encoding), encoding) == "abc"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes")
def test_what_takes_over_the_reading_of_a_page_can_open_no_files_and_reach_nobody(tmp_path):
    secret = tmp_path / "config.toml"
    secret.write_text("api_key")
    takeover = """
import os, socket, subprocess, sys
from kb_cli.sync import article
def run(markup, address):
    for attack in (lambda: open(address).read(), lambda: socket.socket(), lambda: os.fork() or os._exit(0), lambda: open(address + '2', 'w')):
        try:
            attack()
            return 'succeeded'
        except OSError:
            pass
    return 'refused'
article.readable = run
article.main()
"""
    done = subprocess.run([sys.executable, "-c", takeover, secret], input=b"<p>x</p>", capture_output=True, check=False)
    assert done.stdout == b"refused", done.stderr


PAGE = (
    "<html><body><nav>Menu</nav><article><h1>Boats</h1>" + "<p>The harbour counts its boats each day at noon.</p>" * 20
)


@pytest.mark.rare
def test_a_page_is_still_read_without_those_rights():
    pytest.importorskip("trafilatura")
    command = [sys.executable, "-P", "-m", "kb_cli.sync.article", "https://example.org/a"]
    for page in (PAGE.encode(), PAGE.replace("harbour", "Häfen").encode("latin-1")):
        done = subprocess.run(command, input=page, capture_output=True, check=False)
        assert b"counts its boats" in done.stdout, done.stderr
        assert b"Menu" not in done.stdout


KEY = "the right key, which is long enough"
SHORT = "a short key here"


@pytest.fixture
def asked(monkeypatch):
    """Ask with a key, on a machine where no time passes meanwhile."""
    monkeypatch.setattr(bearer, "GCRA", partial(GCRA, clock=lambda: 0.0))

    async def answer(_):
        return PlainTextResponse("well")

    app = Starlette(routes=[Route("/api", answer)])
    app.add_middleware(BearerMiddleware, identify=identify_by([KEY.replace(" ", "-").replace(",", ""), SHORT.replace(" ", "-")], None, "KB_API_KEY"), prefixes=("/api",))  # fmt: skip
    client = TestClient(app)
    return lambda key: client.get("/api", headers={"Authorization": f"Bearer {key}"}).status_code


def test_other_programs_of_the_machine_cannot_shut_out_who_has_a_long_key(asked):
    right = KEY.replace(" ", "-").replace(",", "")
    statuses = [asked(f"wrong-{number}") for number in range(60)]
    assert statuses[-1] == 429
    assert asked(right) == 200
    assert asked(f"{right}!") == 429, "a long one that is wrong"
    assert asked(SHORT.replace(" ", "-")) == 429, "a short one could be found by trying"
    assert asked(right) == 200


def test_a_crash_of_the_parser_is_logged_by_its_place_and_not_by_what_the_file_says():
    stderr = (
        "Traceback (most recent call last):\n"
        '  File "/opt/kb/parser/process.py", line 80, in _answer\n    secret = "salary"\n'
        '  File "/usr/lib/python3/zipfile.py", line 9, in read\n'
        "zipfile.BadZipFile: File name 'Project-Zanzibar-layoffs.txt' differs\nmy very private salary is 12345\n"
    )
    said = places_in(stderr)
    assert 'parser/process.py", line 80, in _answer' in said
    assert "salary" not in said
    assert "Zanzibar" not in said
    assert places_in("my very private salary") == "no place in the code"


def test_a_key_that_goes_into_a_repository_is_warned_of(tmp_path, capsys):
    (tmp_path / ".git").mkdir()
    file = tmp_path / ".vscode" / "mcp.json"
    warn_of_repository(file, has_key=True)
    assert "contains your agent key" in capsys.readouterr().err
    warn_of_repository(file, has_key=False)
    warn_of_repository(tmp_path.parent / "mcp.json", has_key=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("is_open", [True, False])
def test_a_start_without_a_key_says_who_can_connect(capsys, tmp_path, is_open):
    banner.print_ready("http://127.0.0.1:8000", tmp_path, ["api"], is_open=is_open)
    assert ("any account or program on this machine" in capsys.readouterr().err) == is_open


def test_a_map_does_not_tell_a_limited_key_that_others_write(embedder, make_store):
    from kb.api.rights import Limit
    from kb.search.document_map import DocumentMapper
    from tests.support.documents import content

    limit = Limit(tags=("pub",))
    with make_store(dimensions=8) as store, DocumentMapper(store) as maps:
        with store.write() as tx:
            tx.documents.add(content("mine"), None, ["pub"])
        answers = [maps.positions(limit)[1]]
        with store.write() as tx:
            tx.documents.add(content("a secret"), None, ["secret"])
        answers += [maps.positions(limit)[1] for _ in range(3)]
        assert answers == [True] * 4
        assert maps.positions(None)[1] in (True, False)


def test_the_inbox_logs_no_names(caplog, tmp_path, make_store, monkeypatch):
    from kb.blobs.folder import FolderBlobs
    from kb.documents.originals import Originals
    from kb.notes_folder import attachments
    from kb.notes_folder.folder import NotesFolder
    from kb.notes_folder.parts import FolderParts

    monkeypatch.setattr(attachments, "QUIET_SECONDS", 0.0)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "staging").mkdir()
    (tmp_path / "inbox" / "Project-Zanzibar-layoffs.txt").write_text("words")
    with make_store(dimensions=8) as store, caplog.at_level(logging.INFO):
        originals = Originals(FolderBlobs(tmp_path), keep=True)
        parts = FolderParts(tmp_path / "inbox", store, originals, None, 1000, direction="in", all_files=True)
        inbox = NotesFolder(parts)
        inbox.step()
        inbox.step()
    assert "added from a folder" in caplog.text
    assert "Zanzibar" not in caplog.text
