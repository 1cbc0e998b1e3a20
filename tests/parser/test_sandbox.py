"""Files that would take the engine down: each fails with its reason, and the next one is read."""

import errno
import os
import signal
import subprocess
import sys
import threading
import zlib
from itertools import repeat
from pathlib import Path

import pytest

from kb.api.errors import Stopped, Unreadable
from kb.formats.extract import extract
from kb.parser.protocol import _LENGTH
from kb.parser.sandbox import Limits, Sandbox, resident
from tests.support.eventually import eventually
from tests.support.hostile import document, parser_at_work, parser_of, sheet, slow
from tests.support.pdf import pdf
from tests.support.rare_cases import mostly_rare

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone"),
]


@pytest.fixture
def sandbox():
    boxes = []

    def start(**limits):
        boxes.append(Sandbox(Limits(**limits)))
        return boxes[-1]

    yield start
    for box in boxes:
        box.close()


@pytest.fixture
def file(tmp_path):
    def file(data, name="file.txt"):
        path = tmp_path / name
        path.write_bytes(data)
        return path, name

    return file


def amid_a_file(act):
    """Do something to the parser as soon as it is busy."""
    threading.Thread(target=lambda: act(parser_at_work())).start()


def assert_fails(sandbox, file, reason):
    """The file fails for this reason, within the patience of a test, and the next one is read."""
    with pytest.raises(Unreadable, match=reason):
        sandbox.extract(*file)
    after = file[0].with_name("after.txt")
    after.write_bytes(b"the next file")
    assert sandbox.extract(after, "after.txt")[1].text == "the next file"


def test_a_file_is_read_as_it_would_be_without_the_process_around_it(sandbox, file, test_data):
    box = sandbox()
    for path in sorted((test_data / "files").iterdir()):
        try:
            expected = extract(path.read_bytes(), path.name)
        except Unreadable as error:
            with pytest.raises(Unreadable, match=error.detail[:20]):
                box.extract(path, path.name)
        else:
            assert box.extract(path, path.name) == expected


def test_that_a_file_cannot_be_opened_says_nothing_of_what_it_holds(sandbox, file, tmp_path):
    box = sandbox()
    with pytest.raises(FileNotFoundError):
        box.extract(tmp_path / "missing", "missing")
    assert box.extract(*file(b"the next file"))[1].text == "the next file"


def test_attachments_come_out_whole(sandbox, file):
    message = b'MIME-Version: 1.0\nFrom: a\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Disposition: attachment; filename="a.bin"\nContent-Transfer-Encoding: base64\n\nAAEC/w==\n--x--'
    [attachment] = sandbox().extract(*file(message))[1].attachments
    assert (attachment.filename, attachment.data) == ("a.bin", b"\0\1\2\xff")


def test_one_process_reads_file_after_file(sandbox, file):
    box = sandbox()
    box.extract(*file(b"one"))
    first = parser_of()
    with pytest.raises(Unreadable, match="the file is empty"):
        box.extract(*file(b""))
    box.extract(*file(b"two"))
    assert parser_of() == first


def test_a_zip_bomb_is_refused_by_the_size_it_states(sandbox, file):
    bomb = document(b"<p/>" * (1 << 20), times=130)
    assert len(bomb) < 4 << 20
    assert_fails(sandbox(), file(bomb, "bomb.docx"), "unpacks to more than 512 MB")


@pytest.mark.rare
def test_a_smaller_zip_bomb_meets_the_limit_on_memory(sandbox, file):
    bomb = document(b"<p/>" * (1 << 20), times=20)
    assert_fails(sandbox(memory_mb=256), file(bomb, "bomb.docx"), r"more than 256 MiB of memory, the limit set by KB_PARSE_MEMORY_MB")  # fmt: skip


def test_a_demand_for_all_memory_at_once_is_a_matter_of_memory_too(sandbox, file):
    assert_fails(sandbox(), file(sheet("XFD"), "far.xlsx"), "more than 2048 MiB of memory")


@pytest.mark.slow
def test_a_file_that_keeps_its_parser_busy_is_given_up(sandbox, file):
    assert_fails(
        sandbox(seconds=2), file(slow(), "slow.xlsx"), r"more than 2 seconds, the limit set by KB_PARSE_SECONDS"
    )


@pytest.mark.rare
def test_a_pdf_of_ten_thousand_pages_is_over_a_limit_that_can_be_raised(sandbox, file):
    many = file(pdf(*(f"page {number}" for number in range(10_000))), "many.pdf")
    assert_fails(sandbox(), many, "it has 10000 pages; the limit is 5000")
    assert len(sandbox(pages=10_000).extract(*many)[1].sections) == 10_000
    with pytest.raises(Unreadable, match=r"more than 0.1 seconds"):
        sandbox(seconds=0.1).extract(*many)


def test_a_pdf_that_claims_pages_without_end_is_read_as_far_as_it_goes(sandbox, file):
    endless = pdf("words").replace(b"/Count 1", b"/Count 99999999")
    assert sandbox(seconds=5).extract(*file(endless, "endless.pdf"))[1].text == "words\n\n"


@pytest.mark.rare
def test_a_stream_that_inflates_a_thousandfold_meets_a_limit(sandbox, file):
    packer, words = zlib.compressobj(9), b"(words of the bomb) Tj " * 1024
    parts = [b"BT /F1 12 Tf 72 720 Td ", *repeat(words, 8 << 10), b"ET"]
    content = b"".join(map(packer.compress, parts)) + packer.flush()
    whole = pdf("x").replace(b"/Length", b"/Filter /FlateDecode /Length")
    start, end = whole.index(b"stream\n") + 7, whole.index(b"\nendstream")
    bomb = whole[:start] + content + whole[end:]
    assert_fails(sandbox(seconds=5, memory_mb=256), file(bomb, "bomb.pdf"), "the limit|damaged")


def test_a_file_with_too_much_text_is_refused(sandbox, file):
    assert_fails(sandbox(output_mb=1), file(b"words " * 200_000), r"more than 1 MiB of text, the limit")  # fmt: skip


def test_a_parser_that_is_killed_fails_its_file_alone(sandbox, file):
    box = sandbox()
    box.extract(*file(b"words"))
    amid_a_file(lambda parser: os.kill(parser, signal.SIGKILL))
    assert_fails(box, file(slow(), "slow.xlsx"), r"the parser crashed on it \(SIGKILL\)")


@pytest.mark.rare
def test_stopping_interrupts_a_file_and_blames_it_for_nothing(sandbox, file):
    box = sandbox()
    amid_a_file(lambda _: box.stop())
    with pytest.raises(Stopped):
        box.extract(*file(slow(), "slow.xlsx"))
    with pytest.raises(Stopped):
        box.extract(*file(b"words"))


ENGINE = """
import sys, threading
from pathlib import Path
from kb.parser.sandbox import Sandbox
box = Sandbox()
box.start()
print("started", flush=True)
box.extract(Path(sys.argv[1]), "slow.xlsx")
"""


@pytest.mark.rare
def test_the_parser_ends_with_an_engine_that_is_killed_in_the_middle_of_a_file(file):
    path, _ = file(slow(), "slow.xlsx")
    with subprocess.Popen([sys.executable, "-c", ENGINE, path], stdout=subprocess.PIPE) as engine:
        engine.stdout.readline()
        parser = parser_at_work(engine.pid)
        engine.kill()
    eventually("the parser has ended", lambda: resident(parser), until=lambda memory: memory == 0)


def test_the_parser_knows_no_keys(sandbox, file, monkeypatch):
    monkeypatch.setenv("KB_API_KEY", "the-secret")
    sandbox().extract(*file(b"words"))
    assert b"the-secret" not in Path(f"/proc/{parser_of()}/environ").read_bytes()


REPLIES = {
    "a title that is none": {"title": {"a": 1}},
    "tags that are none": {"tags": [1, None]},
    "sections without end": {"sections": [[0, 10**12, ["a"], None]]},
    "a type that is none": {"doc_type": "note"},
    "no sections": {"sections": None},
}


@pytest.mark.rare
@pytest.mark.parametrize("wrong", mostly_rare(REPLIES.values(), 2), ids=REPLIES)
def test_a_parser_that_was_taken_over_fails_its_file_alone(sandbox, file, tmp_path, monkeypatch, wrong):
    code = tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(
        f"import kb.parser.protocol as protocol\nsound = protocol.pack\n"
        f"protocol.pack = lambda kind, text: sound(kind, text) | ({wrong!r} if 'evil' in text.text else {{}})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(code), prepend=os.pathsep)
    assert_fails(sandbox(), file(b"evil"), "its parser returned an invalid answer")


@pytest.mark.rare
def test_a_parser_that_goes_silent_is_given_up(sandbox, file, tmp_path, monkeypatch):
    code = tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(
        "import os, time\nimport kb.parser.protocol as protocol\nsound = protocol.pack\n"
        "def pack(kind, text):\n"
        "    if 'evil' in text.text:\n        os.closerange(1, 64)\n        time.sleep(600)\n"
        "    return sound(kind, text)\nprotocol.pack = pack\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(code), prepend=os.pathsep)
    assert_fails(sandbox(seconds=2), file(b"evil"), "KB_PARSE_SECONDS")


@pytest.mark.rare
def test_a_file_that_its_disk_gives_only_in_part_is_given_up(sandbox, file, monkeypatch):
    def send_length(requests, file):
        requests.write(_LENGTH.pack(100))
        requests.flush()
        raise OSError(errno.EIO, "Input/output error")

    box = sandbox(seconds=1)
    with monkeypatch.context() as broken:
        broken.setattr("kb.parser.sandbox.send_file", send_length)
        with pytest.raises(Unreadable):
            box.extract(*file(b"text"))
    assert box.extract(*file(b"the next file"))[1].text == "the next file"


@pytest.mark.slow
def test_text_that_is_packed_too_well_is_refused_by_the_size_of_its_file(sandbox, file):
    bomb = document(b"<p><r><t>words of a bomb </t></r></p>" * 100_000)
    assert len(bomb) < 20_000
    assert_fails(sandbox(), file(bomb, "bomb.docx"), r"more than 400 kB and 20 times the size of the file, the limit \(KB_INDEX_RATIO\)")  # fmt: skip
    assert len(sandbox(index_ratio=1000).extract(*file(bomb, "bomb.docx"))[1].text) > 1_000_000
