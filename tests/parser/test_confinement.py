"""The limits of a parser that a file has taken over: hostile code runs in the real process, and fails."""

import ctypes
import os
import platform
import resource
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kb.parser.sandbox import Limits, Sandbox
from tests.support.hostile import parser_of, taken_over

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes"),
]

CREATE_RULESET, GET_SECCOMP = 444, 21


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    """A parser that was taken over: `parser(code)` is what became of running it there."""
    folder = tmp_path_factory.mktemp("parser")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", taken_over(folder / "site"), prepend=os.pathsep)
        box = Sandbox(Limits(seconds=20))
        box.start()

    def run(code):
        path = folder / "code.py"
        path.write_text(code)
        return box.extract(path, "code.py")[1].text

    run.sandbox = box
    with closing(box):
        assert run("result = 6 * 7") == "succeeded: 42"
        yield run


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with sqlite3.connect(folder / "kb.db") as database:
        database.execute("CREATE TABLE documents (id)")
    return folder


@pytest.fixture(scope="module")
def port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_all_is_used_that_the_kernel_offers(parser):
    libc = ctypes.CDLL(None)
    expected = set()
    if libc.syscall(CREATE_RULESET, None, 0, 1) > 0:
        expected |= {"files", "writing"}
    if libc.prctl(GET_SECCOMP, 0, 0, 0, 0) >= 0 and platform.machine() in ("x86_64", "aarch64"):
        expected |= {"writing", "network", "processes"}
    assert parser.sandbox.confined == sorted(expected)


ATTACKS = {
    "connect": ("network", "import socket; socket.create_connection(('127.0.0.1', {port}))"),
    "send a datagram": ("network", "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    "listen": ("network", "import socket; socket.create_server(('127.0.0.1', 0))"),
    "talk to a local service": ("network", "import socket; socket.socket(socket.AF_UNIX)"),
    "execute": ("processes", "import subprocess; subprocess.run(['/bin/true'])"),
    "become another program": ("processes", "import os; os.execv('/bin/true', ['true'])"),
    "fork": ("processes", "import os; os.fork() or os._exit(0)"),
    "start a thread": ("processes", "import threading; threading.Thread(target=print).start()"),
    "kill the engine": ("processes", "import os; os.kill(os.getppid(), 0)"),
    "kill the engine by a handle": ("processes", "import os, signal; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)"),
    "have the kernel signal the engine": ("processes", "import fcntl, os; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())"),
    "trace the engine": ("processes", "import ctypes, os; assert ctypes.CDLL(None).ptrace(0x4206, os.getppid(), 0, 0) == 0; os._exit(1)"),
    "raise its own limits": ("processes", "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (9, 9))"),
    "make namespaces": ("processes", "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0"),
    "mount": ("processes", "import ctypes; assert ctypes.CDLL(None).mount(b'none', b'{data}', b'tmpfs', 0, None) == 0"),
    "read /etc/passwd": ("files", "result = open('/etc/passwd').read()"),
    "list the data": ("files", "import os; result = os.listdir('{data}')"),
    "read the database": ("files", "result = open('{data}/kb.db', 'rb').read(16)"),
    "read the engine's environment": ("files", "import os; result = open(f'/proc/{{os.getppid()}}/environ', 'rb').read()"),
    "read the engine's memory": ("files", "import os; result = open(f'/proc/{{os.getppid()}}/mem', 'rb')"),
    "read its own environment": ("files", "result = open('/proc/self/environ').read()"),
    "write to the database": ("writing", "result = open('{data}/kb.db', 'r+b')"),
    "make a file": ("writing", "result = open('{data}/new', 'w')"),
    "make a file without a name": ("writing", "import os; os.open('{data}', os.O_TMPFILE | os.O_RDWR)"),
    "make a file in memory": ("writing", "import os; os.memfd_create('x')"),
    "make a folder": ("writing", "import os; os.mkdir('{data}/folder')"),
    "make a link": ("writing", "import os; os.symlink('/etc', '{data}/link')"),
    "remove": ("writing", "import os; os.unlink('{data}/kb.db')"),
    "rename": ("writing", "import os; os.rename('{data}/kb.db', '{data}/gone')"),
    "empty": ("writing", "import os; os.truncate('{data}/kb.db', 0)"),
    "change rights": ("writing", "import os; os.chmod('{data}/kb.db', 0o777)"),
    "change its modules": ("writing", "import kb.api; result = open(kb.api.__file__, 'a')"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_code_in_the_parser_cannot(attack, parser, data_dir, port):
    restriction, code = ATTACKS[attack]
    if restriction not in parser.sandbox.confined:
        pytest.skip(f"this kernel does not forbid it ({restriction})")
    outcome = parser(code.format(data=data_dir, port=port))
    assert not outcome.startswith("succeeded"), outcome
    assert "NameError" not in outcome
    assert "SyntaxError" not in outcome
    assert [each.name for each in data_dir.iterdir()] == ["kb.db"]


def test_of_other_files_hostile_code_in_the_parser_learns_only_that_they_are_there_and_how_large(parser, data_dir):
    if "files" not in parser.sandbox.confined:
        pytest.skip("this kernel does not forbid it (files)")
    size = (data_dir / "kb.db").stat().st_size
    assert parser(f"import os; result = os.stat('{data_dir}/kb.db').st_size") in (f"succeeded: {size}", "")
    for more in ("os.getxattr('{0}/kb.db', 'user.x')", "os.readlink('/proc/self/exe')", "os.scandir('{0}').__next__()"):
        outcome = parser(f"import os; result = {more.format(data_dir)}")
        assert not outcome.startswith("succeeded"), outcome


def test_what_a_file_in_the_making_needs_can_still_be_imported(parser):
    assert parser("import xml.dom.minidom; 'ä'.encode('cp1140'); result = 'imported'") == "succeeded: imported"


def test_what_its_kernel_does_not_forbid_a_limit_makes_small(parser):
    limits = {name: resource.prlimit(parser_of(), getattr(resource, f"RLIMIT_{name}")) for name in ("CORE", "FSIZE", "NOFILE", "NPROC")}  # fmt: skip
    assert limits == {"CORE": (0, 0), "FSIZE": (65536, 65536), "NOFILE": (64, 64), "NPROC": (0, 0)}


def test_the_parser_of_a_root_has_no_rights_of_root(parser):
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{parser_of()}/status").read_text().splitlines())
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"] == "1"


def test_the_parser_works_in_no_folder_of_anyones(parser):
    assert Path(f"/proc/{parser_of()}/cwd").resolve() == Path("/")


ENGINE = """
import os, sys
from pathlib import Path
from kb.parser.sandbox import Sandbox
os.environ["PYTHONPATH"] = os.pathsep.join(["", "lib", os.environ.get("PYTHONPATH", "")])
box = Sandbox()
print(box.extract(Path("code.py"), "code.py")[1].text)
box.close()
"""


def test_no_code_of_the_working_directory_runs_in_the_parser(tmp_path):
    for name in ("struct", "json", "kb", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("open('code-ran', 'w')")
    (tmp_path / "code.py").write_text("result = 'read'")
    taken_over(tmp_path / "lib")  # whose path is relative, and counts
    done = subprocess.run(
        [sys.executable, "-P", "-c", ENGINE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "succeeded: read\n", done.stderr
    assert not (tmp_path / "code-ran").exists()
