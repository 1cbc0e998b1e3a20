"""Files that an extractor leaves or hides in its folder, and a start that cannot detect the rights of extractors."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kb.filesystem import remove_folder
from kb.parser import extractor_exec, extractor_run
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.resource_usage import files_below
from kb.parser.sandbox import Limits
from tests.embed.test_devices import without_rights

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="rights on folders are those of POSIX")


@pytest.fixture
def scratch():
    """A folder of a user who is not root, with one in it that hides a file."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        with without_rights():
            hidden = Path(folder, "run", "d")
            hidden.mkdir(parents=True)
            (hidden / "deep").mkdir()
            (hidden / "deep" / "large").write_bytes(bytes(1000))
            (hidden / "deep").chmod(0o000)
            hidden.chmod(0o300)
        yield Path(folder, "run")


def test_files_in_a_folder_that_cannot_be_looked_into_are_not_taken_for_none(scratch):
    with without_rights(), pytest.raises(PermissionError):
        list(files_below(scratch))


def test_a_folder_that_an_extractor_made_is_removed_whatever_its_rights(scratch):
    with without_rights():
        remove_folder(scratch)
    assert not scratch.exists()


def test_what_cannot_be_removed_is_said_and_stops_no_start(scratch, caplog):
    scratch.parent.chmod(0o555)
    with without_rights():
        remove_folder(scratch)
    assert "cannot be removed" in caplog.text


def test_a_link_in_it_is_removed_and_what_it_leads_to_keeps_its_rights(tmp_path):
    (tmp_path / "outside").mkdir(mode=0o750)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "link").symlink_to(tmp_path / "outside")
    before = (tmp_path / "outside").stat().st_mode
    remove_folder(tmp_path / "run")
    assert (tmp_path / "outside").stat().st_mode == before


@pytest.mark.rare
@pytest.mark.parametrize("fails", ["exit 3", "echo '{'", "sleep 30"])
def test_a_start_that_cannot_find_out_what_extractors_may_do_goes_on(monkeypatch, caplog, tmp_path, fails):
    script = tmp_path / "launcher"
    script.write_text(f"#!/bin/sh\n{fails}\n")
    script.chmod(0o755)
    monkeypatch.setattr(extractor_run, "launcher", lambda *_: [str(script)])
    monkeypatch.setattr(extractor_run, "_REPORT_SECONDS", 1)
    box = ExtractingSandbox(Limits(), Extractors.parse("image=/bin/cat"), 10)
    try:
        box.start()
        assert box.extractors_confined is None
        assert "could not determine how this system confines extractors" in caplog.text
    finally:
        box.close()


LIMITS = """
import resource, sys
from pathlib import Path
from kb.parser import extractor_exec
extractor_exec.HOST = sys.argv[1] or extractor_exec.os.readlink("/proc/self/ns/pid")
before = resource.getrlimit(resource.RLIMIT_NPROC)
extractor_exec.limit(1 << 33, **extractor_exec.limits(1 << 20))
print(resource.getrlimit(resource.RLIMIT_NPROC) == before, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of a container are those of Linux")
@pytest.mark.parametrize(("host", "is_left"), [("pid:[1]", "True"), ("", "False")])
def test_processes_are_limited_only_where_all_that_the_limit_counts_can_be_seen(host, is_left):
    done = subprocess.run([sys.executable, "-c", LIMITS, host], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [is_left, "256"]
    assert extractor_exec.FILES == 256
