"""Elsewhere than on Linux: kb without the calls that macOS lacks does all that people do every day."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import without_settings
from tests.support.eventually import eventually
from tests.support.scans import photo

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="here that is so anyway")

ELSEWHERE = """
import asyncio, concurrent.futures, ctypes, ctypes.util, email, fcntl, getpass, http.client, importlib.metadata
import logging.handlers, mimetypes, multiprocessing, os, platform, resource, selectors, shutil, signal, socket, ssl
import subprocess, sys, tempfile, time, urllib.request, uuid, webbrowser, zipfile, zoneinfo

import pypdfium2_raw  # it looks for the library of the system that it is on

LACKING = {
    os: '''waitid waitid_result P_PID P_PGID P_ALL P_PIDFD WEXITED WNOWAIT WSTOPPED pidfd_open memfd_create eventfd eventfd_read
        eventfd_write sched_getaffinity sched_setaffinity sched_setscheduler sched_getscheduler sched_setparam sched_getparam
        posix_fadvise posix_fallocate fdatasync splice copy_file_range getrandom setresuid setresgid getresuid getresgid
        getxattr setxattr listxattr removexattr pipe2 unshare setns O_PATH O_TMPFILE O_NOATIME O_DIRECT O_RSYNC O_LARGEFILE
        MFD_CLOEXEC GRND_NONBLOCK CLD_STOPPED'''.split(),
    signal: "sigtimedwait sigwaitinfo pidfd_send_signal SIGPWR SIGPOLL SIGRTMIN SIGRTMAX SIGSTKFLT SIGCLD".split(),
    fcntl: '''F_SETPIPE_SZ F_GETPIPE_SZ F_ADD_SEALS F_GET_SEALS F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW F_NOTIFY F_SETLEASE
        F_SETSIG F_GETSIG'''.split(),
    resource: '''prlimit RLIMIT_OFILE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_SIGPENDING RLIMIT_MSGQUEUE RLIMIT_RTTIME
        RUSAGE_THREAD'''.split(),
    time: "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid".split(),
}
for module, names in LACKING.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

tempfile._O_TMPFILE_WORKS = False  # it was there when the module looked
fcntl.F_FULLFSYNC = 51
real = fcntl.fcntl
fcntl.fcntl = lambda fd, command, argument=0: os.fsync(fd) if command == fcntl.F_FULLFSYNC else real(fd, command, argument)


class Finder:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("kb", "kb_cli", "kb_mcp", "kb_web"):
            sys.platform = "darwin"
            sys.meta_path.remove(self)


sys.meta_path.insert(0, Finder())


def no_proc(event, arguments):  # there is none
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc/") and sys.platform == "darwin":
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


sys.addaudithook(no_proc)
"""


@pytest.fixture
def elsewhere(tmp_path):
    """An environment in which each Python lacks what macOS lacks, and thinks that it is there."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(ELSEWHERE)
    return {"PYTHONPATH": str(site), "HOME": str(tmp_path)}


@pytest.mark.slow
def test_serve_add_search_sync_edit_back_up_and_ocr_work_without_what_macos_lacks(start_server, elsewhere, tmp_path):
    program = tmp_path / "ocr"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho the words of a photo\n")
    program.chmod(0o700)
    settings = {"KB_EXTRACTORS": f"image={program}", "KB_EXTRACTORS_UNCONFINED": "1", "KB_LOG_LEVEL": "info"}
    with start_server(tmp_path / "data", **elsewhere, **settings) as server:

        def kb(*arguments, code=0):
            done = subprocess.run(
                [sys.executable, "-m", "kb_cli.main", *map(str, arguments)],
                env=without_settings()
                | elsewhere
                | {"KB_ENGINE_URL": server.url, "KB_DATA_DIR": str(tmp_path / "data")},
                capture_output=True,
                text=True,
                check=False,
                cwd=tmp_path,
            )
            assert done.returncode == code, done.stdout + done.stderr
            return done.stdout

        folder = tmp_path / "notes"
        folder.mkdir()
        (folder / "a.md").write_text("# Harbour\n\nThe keeper counts the boats.\n")
        (folder / "b.jpg").write_bytes(photo("words", 1))
        assert "darwin" in subprocess.run(
            [sys.executable, "-c", "import kb, sys, os; print(sys.platform, hasattr(os, 'waitid'))"],
            env=os.environ | elsewhere, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        kb("add", folder / "a.md", "--wait")
        kb("addnote", "the key is under the mat", "--wait")
        assert "keeper" in kb("search", "who counts boats")
        kb("sync", folder, "--as", "notes")
        found = eventually("the photo is read", lambda: kb("search", "words of a photo"), lambda text: "b.jpg" in text)
        assert "the words of a photo" in found
        (folder / "a.md").write_text("# Harbour\n\nThe keeper counts the gulls.\n")
        kb("sync", folder, "--as", "notes")
        eventually("the change is found", lambda: kb("search", "gulls"), lambda text: "gulls" in text)
        assert "not confined, because this system" in kb("status")
        kb("backup", tmp_path / "backups")
        assert "no fault" in kb("backup", "verify", tmp_path / "backups")
        kb("doctor")
        assert "extractors run unconfined and can read and change all your files" in server.log.read_text()
    log = (tmp_path / "data" / "server.log").read_text()
    assert not re.findall(r"AttributeError.*", log)


@pytest.mark.slow
def test_an_extractor_does_not_run_where_it_cannot_be_confined(start_server, elsewhere, tmp_path):
    settings = {"KB_EXTRACTORS": "image=/bin/cat"}
    (tmp_path / "b.jpg").write_bytes(photo("words", 1))
    with start_server(tmp_path / "data", **elsewhere, **settings) as server:
        environment = without_settings() | elsewhere | {"KB_ENGINE_URL": server.url}
        command = [sys.executable, "-m", "kb_cli.main", "add", str(tmp_path / "b.jpg"), "--wait"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert "set KB_EXTRACTORS_UNCONFINED=1 to run it without protection" in done.stdout + done.stderr
        assert "extractors do not run" in server.log.read_text()


SOURCES = Path(__file__).parents[2] / "src"


def test_what_windows_lacks_is_asked_for_only_where_that_was_seen():
    """Modules that Windows does not have are imported where they are used, and not when a module is loaded."""
    absent = re.compile(r"^(?:import|from) (fcntl|resource|pwd|grp|termios|tty|pty|posix)\b", re.MULTILINE)
    found = [
        f"{path.relative_to(SOURCES)}: {match[0]}"
        for path in SOURCES.rglob("*.py")
        for match in absent.finditer(path.read_text())
    ]
    assert not found
