"""Programs and services that read files for kb: their rights, and their results."""

import http.server
import io
import json
import os
import shlex
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pypdfium2
import pytest

from kb.api.errors import OutOfReach, Stopped, Unreadable
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
from tests.support.eventually import eventually
from tests.support.pdf import pdf
from tests.support.rare_cases import mostly_rare
from tests.support.scans import bound, photo, scan, stamp

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes"),
]


@pytest.fixture(scope="module")
def box():
    """One parser for all tests, each of which gives it extractors of its own."""
    with closing(ExtractingSandbox(Limits(), Extractors(), 20)) as box:
        yield box


@pytest.fixture
def reader(box, tmp_path):
    """`reader("image=cat")(data, name)` is the type and the text of a file."""

    def with_extractors(named, seconds=20, **limits):
        box.extractors, box.seconds, box.limits = Extractors.parse(named), seconds, Limits(**limits)

        def read(data, name):
            path = tmp_path / "staged"
            path.write_bytes(data)
            doc_type, extracted = box.extract(path, name)
            read.sections = extracted.sections
            return doc_type, " ".join(extracted.text.split())

        return read

    return with_extractors


@pytest.fixture
def script(tmp_path):
    """The entry of a shell script: `script("echo found")`."""

    def script(lines):
        path = tmp_path / "extractor.sh"
        path.write_text(lines)
        return f"/bin/sh {shlex.quote(str(path))}"

    return script


JPEG = photo("words", 1)


def test_a_picture_is_what_its_extractor_says(reader):
    read = reader("image=wc -c")
    assert read(JPEG, "a.jpg") == ("text", str(len(JPEG)))
    assert read(JPEG, "named-like-a-text.txt")[1] == str(len(JPEG))


def test_without_an_extractor_a_picture_and_a_scan_are_what_they_were(reader):
    read = reader("audio=cat")
    assert read(JPEG, "kiln door.jpg") == ("image", "kiln door.jpg")
    with pytest.raises(Unreadable, match=r"only images \(a scan\); OCR is not done"):
        read(scan("words"), "a.pdf")


def test_a_picture_without_text_keeps_its_name(reader):
    assert reader("image=true")(JPEG, "kiln door.jpg") == ("image", "kiln door.jpg")


def test_each_page_of_a_scan_is_a_picture_for_the_extractor_and_keeps_its_number(reader, script):
    read = reader(f"image={script('head -c 4 | tail -c 3; echo; echo found')}")
    assert read(scan("one", "two"), "a.pdf") == ("pdf", "PNG found PNG found")
    assert [section.page for section in read.sections] == [1, 2]


MIXED = bound(pdf("typed one"), scan("two"), pdf("typed three"), scan("four", "five"), pdf("typed six"))


def test_scans_amid_pages_of_text_are_read_in_their_places(reader, script):
    read = reader(f"image={script('head -c 4 | tail -c 3; echo; echo found')}")
    assert read(MIXED, "a.pdf") == ("pdf", "typed one PNG found typed three PNG found PNG found typed six")
    assert [section.page for section in read.sections] == [1, 2, 3, 4, 5, 6]


def test_without_ocr_a_document_says_which_of_its_pages_are_pictures(reader):
    _, text = reader("audio=cat")(MIXED, "a.pdf")
    assert text == "[Pages 2, 4 to 5 are pictures: OCR is not done.] typed one typed three typed six"
    _, text = reader("")(bound(pdf("typed"), scan("two")), "a.pdf")
    assert text == "[Page 2 is a picture: OCR is not done.] typed"


def test_a_page_that_an_extractor_fails_on_costs_no_other(reader, script):
    turned = pypdfium2.PdfDocument(MIXED)
    turned[1].set_rotation(90)
    out = io.BytesIO()
    turned.save(out)
    fails = "test $(head -c 20 | tail -c 4 | od -An -tu4 --endian=big) -gt 2000 || exit 3; echo found"
    _, text = reader(f"image={script(fails)}")(out.getvalue(), "a.pdf")
    remark = "[Page 2 is a picture: its extractor /bin/sh failed (exit status 3).]"
    assert text == f"{remark} typed one typed three found found typed six"


def test_a_page_that_is_a_picture_but_for_a_stamp_is_a_scan(reader, script):
    stamped = stamp(scan("words of the scan"), "Case 26-1042 Document 7 Page 1 of 9")
    assert "[Page 1 is a picture" in reader("")(stamped, "a.pdf")[1]
    _, text = reader(f"image={script('echo found')}")(stamped, "a.pdf")
    assert text == "Case 26-1042 Document 7 Page 1 of 9 found"


def test_a_pdf_with_text_needs_no_extractor(reader):
    assert reader("image=false")(pdf("a page of words"), "a.pdf") == ("pdf", "a page of words")


def test_files_can_be_given_by_suffix_and_by_path_and_answer_with_html(reader, script):
    page = script('echo "<html><body><h1>$(basename $1)</h1><p>$(cat $1)</p></body></html>"')
    read = reader(f".doc,.pages={page} {{file}}")
    assert read(b"bytes", "old.DOC") == ("html", "file.DOC bytes")


@pytest.mark.parametrize("name", ["a.jpg; echo injected", f"a.{'x' * 252}", "a.$(echo injected)"])
def test_a_file_that_others_named_cannot_speak_to_a_shell_that_the_operator_uses(reader, name):
    assert reader("image=sh -c 'wc -c < {file}'")(JPEG, name) == ("text", str(len(JPEG)))


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("image=no-such-program -", "the program 'no-such-program' is not installed"),
        ("picture=cat", "'picture' is neither image, audio, video, scan, doc, ppt, wpd nor a suffix"),
        ("image", "an entry must be a type, '=', and a command"),
        ("image=http:///nowhere", "is not an address"),
    ],
)
def test_a_setting_that_is_wrong_is_named(named, reason):
    with pytest.raises(ValueError, match=reason):
        Extractors.parse(named)


def test_languages_for_tesseract_are_no_options():
    with pytest.raises(ValueError, match="KB_OCR must be 1, or languages"):
        Extractors.parse("", "eng --help")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("echo 'cannot \033read' >&2; exit 3", r"its extractor /bin/sh failed \(exit status 3\): cannot  ?read"),
        ("kill -SEGV $$; exit 4", r"failed \(exit status 4\)"),
        ("head -c 4000 /usr/bin/env", "it is a program"),
    ],
)
def test_an_extractor_that_gives_nothing_fails_the_file_with_its_reason(reader, script, lines, reason):
    with pytest.raises(Unreadable, match=reason):
        reader(f"image={script(lines)}")(JPEG, "a.jpg")


def test_an_extractor_that_is_late_is_killed_with_all_that_it_started(reader, script, tmp_path):
    started = "sleep 47123 & setsid sleep 47124 & sleep 47125"
    before = time.monotonic()
    with pytest.raises(Unreadable, match=r"took more than 1 seconds \(KB_EXTRACT_SECONDS\)"):
        reader(f"image={script(started)}", seconds=1)(JPEG, "a.jpg")
    assert time.monotonic() - before < 5
    eventually("none is left", lambda: _running("sleep 4712"), lambda left: not left)


def _running(command):
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found += [line] if command in line else []
    return found


def test_what_an_extractor_left_behind_does_not_hold_it_up(reader, script):
    before = time.monotonic()
    assert reader(f"image={script('echo found; sleep 47126 &')}")(JPEG, "a.jpg") == ("text", "found")
    assert time.monotonic() - before < 5
    eventually("none is left", lambda: _running("sleep 47126"), lambda left: not left)


@pytest.mark.rare
def test_an_extractor_that_closes_its_output_before_it_ends_has_not_failed(reader, script):
    assert reader(f"image={script('echo found; exec >&-; sleep 0.3')}")(JPEG, "a.jpg") == ("text", "found")
    with pytest.raises(Unreadable, match="took more than 1 seconds"):
        reader(f"image={script('echo found; exec >&-; sleep 47128')}", seconds=1)(JPEG, "a.jpg")
    eventually("none is left", lambda: _running("sleep 47128"), lambda left: not left)


def test_an_extractor_that_prints_without_end_meets_the_limit(reader):
    with pytest.raises(Unreadable, match=r"\(KB_INDEX_RATIO\)"):
        reader("image=yes")(JPEG, "a.jpg")


def test_an_extractor_that_fills_the_memory_meets_the_limit(reader):
    with pytest.raises(Unreadable, match=r"KB_PARSE_MEMORY_MB|failed"):
        reader("image=tail /dev/zero", memory_mb=100)(JPEG, "a.jpg")


def test_an_extractor_ends_when_the_engine_stops(tmp_path):
    path = tmp_path / "staged"
    path.write_bytes(JPEG)

    def stop(box):
        eventually("it runs", lambda: _running("sleep 47127"), bool)
        box.stop()

    with closing(ExtractingSandbox(Limits(), Extractors.parse("image=sleep 47127"), 20)) as box:
        threading.Thread(target=stop, args=(box,)).start()
        with pytest.raises(Stopped):
            box.extract(path, "a.jpg")
    eventually("none is left", lambda: _running("sleep 47127"), lambda left: not left)


def test_an_extractor_knows_no_keys_and_may_write_to_its_scratch_folder_and_signal_itself(reader, script, monkeypatch):
    monkeypatch.setenv("KB_API_KEY", "secret")
    tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    lines = f"""
    env
    echo scratch > $TMPDIR/file && cat $TMPDIR/file
    exec /usr/bin/perl -e 'syscall({tgkill}, 0+$$, 0+$$, 0) or print "only itself\\n"'
    """
    _, text = reader(f"image={script(lines)}")(JPEG, "a.jpg")
    assert "secret" not in text
    assert text.endswith("scratch only itself")


class Service(http.server.BaseHTTPRequestHandler):
    """Answers as docling and whisper do, with what it was sent."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = {"document": {"md_content": f"# {self.path}\n\n{body.decode('latin-1')[:400]}\n\n## more\n\n- x"}}
        if self.path == "/refuse":
            return self.send_error(500)
        if self.path[1:].isdigit():
            return self.send_error(int(self.path[1:]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())
        return None

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=UTF-8")
        self.end_headers()
        self.wfile.write(f"{self.path} was sent {body.decode()}".encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def service():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_port}"
        listener.shutdown()


def test_a_service_is_sent_the_file_in_a_form_of_the_operators_wording(reader, service):
    doc_type, text = reader(f".doc={service}/convert?a=b#files=@&to_formats=md")(b"the words", "old.doc")
    assert doc_type == "markdown"
    assert "/convert?a=b" in text
    assert 'name="files"; filename="file"' in text
    assert "the words" in text
    assert "to_formats" in text


def test_a_service_is_sent_the_file_itself_as_tika_wants_it(reader, service):
    assert reader(f".doc={service}/tika#@")(b"the words", "old.doc") == ("text", "/tika was sent the words")


@pytest.mark.rare
def test_a_service_that_refuses_or_is_away_fails_the_file(reader, service):
    with pytest.raises(Unreadable, match="it answered 500"):
        reader(f".doc={service}/refuse")(b"the words", "old.doc")
    with pytest.raises(Unreadable, match="Connection refused"):
        reader(".doc=http://127.0.0.1:9/")(b"the words", "old.doc")


@pytest.mark.parametrize("status", mostly_rare([429, 503]))
def test_a_service_that_is_away_or_busy_and_a_command_that_says_so_are_out_of_reach(reader, script, service, status):
    for named in (f"{service}/{status}", "http://127.0.0.1:9/", script("exit 75")):
        with pytest.raises(OutOfReach, match="is unavailable"):
            reader(f".doc={named}")(b"the words", "old.doc")


def test_reasons_name_no_secret_of_an_address(reader):
    with pytest.raises(OutOfReach, match=r"its extractor http://127\.0\.0\.1:9/convert is unavailable"):
        reader(".doc=http://me:secret@127.0.0.1:9/convert?key=secret#file=@")(b"the words", "old.doc")
