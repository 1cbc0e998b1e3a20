"""Attacks by an extractor that a file has taken over, each in a real run, and their effect if unconfined."""

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kb.parser.extractor_exec import NEEDED
from tests.support import extractor_attacks
from tests.support.rare_cases import mostly_rare
from tests.support.scans import photo

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes"),
]

PICTURE = photo("words", 1)

ENGINE = """
import sys
from pathlib import Path
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
if "--without-landlock" in sys.argv:
    from tests.parser.test_extractor_attacks import forbid_landlock
    forbid_landlock()
box = ExtractingSandbox(Limits(memory_mb=int(sys.argv[3])), Extractors.parse(sys.argv[1]), 100, unconfined="--unconfined" in sys.argv)
try:
    box.start()
    print(box.extractors_confined, file=sys.stderr)
    print(box.extract(Path(sys.argv[2]), "page.jpg")[1].text)
except Exception as error:
    print(f"{type(error).__name__}: {error.detail}")
box.close()
"""


def forbid_landlock():
    """Have this process and its children live without Landlock, as containers may."""
    from kb.parser import seccomp

    rules = [
        seccomp._instruction(seccomp._IF_EQUAL, 444, skip_unless=1),
        seccomp._refuse(errno.ENOSYS),
        seccomp._return(seccomp._ALLOW),
    ]
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    assert seccomp._install(libc, lambda _: iter(rules))


@pytest.fixture
def engine(tmp_path):
    """`engine(extractor)` is what an engine of its own says of a picture that the extractor reads, and its log."""

    def run(extractor, *options, memory_mb=2048):
        picture = tmp_path / "staged"
        picture.write_bytes(PICTURE)
        done = subprocess.run(
            [sys.executable, "-c", ENGINE, extractor, picture, str(memory_mb), *options],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
            timeout=200,
        )
        return done.stdout.strip(), done.stderr.strip()

    return run


def python(*arguments):
    """The entry of an extractor in Python, whose own files it may read."""
    return f"image={sys.executable} {' '.join(map(str, arguments))} {sys.base_prefix} {sys.prefix}"


def code(tmp_path, lines):
    path = tmp_path / "extractor.py"
    path.write_text(textwrap.dedent(lines))
    return python(path)


@pytest.fixture
def folder(tmp_path):
    """A folder with a document that only its owner may read."""
    folder = tmp_path / "documents"
    folder.mkdir(mode=0o700)
    document = folder / "document"
    document.write_text("my salary")
    document.chmod(0o600)
    os.utime(document, (1_700_000_000, 1_700_000_000))
    return folder


def state_of(folder):
    return [
        (path.name, oct(path.stat().st_mode), path.stat().st_mtime, path.stat().st_uid)
        for path in (folder, *sorted(folder.iterdir()))
        if path != folder
    ] + [oct(folder.stat().st_mode), (folder / "document").read_text()]


def attack(engine, folder, *options):
    """Make all attacks from an extractor; return what became of each, or what was said instead."""
    service = str(folder.parent / "service")
    before = state_of(folder)
    victim = subprocess.Popen(["/bin/sleep", "300"])
    limits = Path(f"/proc/{victim.pid}/limits").read_text()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix:
        unix.bind(service)
        port = listener.getsockname()[1]
        script = Path(extractor_attacks.__file__)  # paths that begin with a slash it could read: they are its command's
        said, log = engine(python(script, victim.pid, port, str(folder)[1:], service[1:]), *options)
    try:
        assert victim.poll() is None
        assert Path(f"/proc/{victim.pid}/limits").read_text() == limits
        assert os.getpriority(os.PRIO_PROCESS, victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    finally:
        victim.kill()
        victim.wait()
    assert state_of(folder) == before
    return said, log


def test_none_of_the_attacks_from_an_extractor_gets_through(engine, folder):
    said, log = attack(engine, folder)
    outcomes = json.loads(said)
    assert set(outcomes) == set(extractor_attacks.ATTACKS)
    assert len(outcomes) >= 62
    through = [name for name, outcome in outcomes.items() if outcome == "succeeded"]
    broken = {name: outcome for name, outcome in outcomes.items() if "NameError" in outcome or "SyntaxError" in outcome}
    assert not through
    assert not broken
    assert str(sorted(NEEDED)) in log


def test_without_landlock_an_extractor_is_not_run_and_its_file_says_why(engine, folder):
    said, log = attack(engine, folder, "--without-landlock")
    assert said.startswith("OutOfReach: its extractor")
    assert "cannot keep it from your files" in said
    assert "set KB_EXTRACTORS_UNCONFINED=1 to run it without protection" in said
    assert "['network', 'processes']" in log


@pytest.mark.rare
def test_without_landlock_an_extractor_runs_where_a_setting_says_so(engine):
    assert engine("image=wc -c", "--without-landlock", "--unconfined")[0] == str(len(PICTURE))


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    mostly_rare(
        [
            "a = b'x' * (400 << 20)",
            "import mmap; m = mmap.mmap(-1, 400 << 20); m.write(bytes(400 << 20))",
            """
        import mmap
        m = mmap.mmap(-1, 400 << 20)
        for at in range(0, 400 << 20, 4096):
            m[at] = 1
        m.madvise(mmap.MADV_DONTNEED)
        """,
            """
        import mmap, os
        kept = []
        for each in range(40):
            m = mmap.mmap(-1, 10 << 20)
            m.write(bytes(10 << 20))
            if not os.fork():
                import time; time.sleep(60)
        """,
            """
        import os
        for each in range(9):
            with open(f'{each}', 'wb') as file:
                file.write(bytes(50 << 20))
        """,
            """
        import os
        kept = []
        for each in range(9):
            kept.append(open(f'{each}', 'wb'))
            os.unlink(f'{each}')
            os.write(kept[-1].fileno(), bytes(50 << 20))
        """,
        ],
        2,
    ),
    ids=["its own", "shared", "shared and not in use", "shared with children", "files", "files without a name"],
)
def test_memory_of_every_kind_counts_for_the_limit(engine, tmp_path, lines):
    said, _ = engine(code(tmp_path, f"{textwrap.dedent(lines)}\nimport time; time.sleep(60)"), memory_mb=128)
    assert "KB_PARSE_MEMORY_MB" in said or "MemoryError" in said


@pytest.mark.slow
def test_an_extractor_cannot_fill_the_machine_with_processes(engine, tmp_path):
    lines = """
    import os, time
    try:
        for each in range(2000):
            if not os.fork():
                time.sleep(60)
    except BlockingIOError:
        print("no more processes")
    time.sleep(5)
    """
    said, _ = engine(code(tmp_path, lines), memory_mb=100_000)
    assert "no more processes" in said or "started more than 512 processes" in said


@pytest.mark.slow
def test_what_extractors_take_still_works(engine, tmp_path):
    lines = """
    import concurrent.futures, os, subprocess, tempfile, threading, time
    with tempfile.TemporaryDirectory() as folder:
        open(f"{folder}/a", "w").write("words")
        os.rename(f"{folder}/a", f"{folder}/b")
        read = subprocess.run(["/bin/sh", "-c", f"cat {folder}/b | tr a-z A-Z"], capture_output=True, text=True)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        squares = sum(pool.map(lambda n: n * n, range(100)))
    time.sleep(0.01)
    print(read.stdout, squares, len(os.listdir("/usr/bin")) > 10)
    """
    assert engine(code(tmp_path, lines))[0] == "WORDS 328350 True"
