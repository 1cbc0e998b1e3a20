"""Installed programs read old office documents. Without them, the error names the package to install."""

import os
import stat
import sys
from base64 import b64encode
from contextlib import closing

import pytest

from kb.api.errors import Unreadable
from kb.api.job_error_phrases import remedy_for
from kb.formats.text.external_types import Opaque
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors
from kb.parser.sandbox import Limits
from tests.support.office import paragraph, word
from tests.support.ole import ole
from tests.support.rare_cases import mostly_rare

pytestmark = [
    pytest.mark.requirement("E-10"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes"),
]
OLD = {
    "a.doc": ole({"WordDocument": bytes(64)}),
    "a.ppt": ole({"PowerPoint Document": bytes(64)}),
    "a.wpd": b"\xffWPC" + bytes(64),
    "a.wri": b"\x31\xbe\0\0" + bytes(64),
}


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """`reader(antiword="echo found")(data, name)` is what becomes of a file where these programs are installed."""
    boxes = []

    def with_programs(named="", **programs):
        folder = tmp_path / "opt"
        folder.mkdir(exist_ok=True)
        for name, script in programs.items():
            program = folder / name
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        system = [each for each in ("sh", "base64", "cat", "head", "mkdir") if not (folder / each).exists()]
        for each in system:
            (folder / each).symlink_to(f"/bin/{each}")
        monkeypatch.setenv("PATH", str(folder))
        box = ExtractingSandbox(Limits(), Extractors.parse(named), 20)
        boxes.append(box)

        def read(data, name):
            path = tmp_path / "staged"
            path.write_bytes(data)
            doc_type, extracted = box.extract(path, name)
            return doc_type, extracted.text.strip()

        return read

    yield with_programs
    for box in boxes:
        box.close()


@pytest.mark.parametrize("name", mostly_rare(OLD))
def test_without_a_program_the_message_names_what_to_install(name, tmp_path):
    path = tmp_path / "old"
    path.write_bytes(OLD[name])
    with closing(ExtractingSandbox(Limits(), Extractors(), 20)) as box, pytest.raises(Unreadable) as raised:
        box.extract(path, name)
    assert " install " in raised.value.detail
    assert raised.value.detail.startswith("kb itself does not read")
    assert remedy_for(raised.value.detail) == "extractor"


def test_a_program_that_is_installed_reads_old_documents_by_itself(reader):
    read = reader(antiword='test -f "$5" && echo "of the lease, section 4"', wpd2text="echo words perfect")
    assert read(OLD["a.doc"], "a.doc") == ("text", "of the lease, section 4")
    assert read(OLD["a.doc"], "named-otherwise.bin") == ("text", "of the lease, section 4")
    assert read(OLD["a.wpd"], "a.wpd") == ("text", "words perfect")
    with pytest.raises(Opaque, match="install catdoc"):
        read(OLD["a.ppt"], "a.ppt")


def test_where_one_program_fails_the_next_one_is_tried(reader):
    read = reader(antiword="exit 1", catdoc="echo rescued")
    assert read(OLD["a.doc"], "a.doc")[1] == "rescued"


def test_what_libreoffice_converts_is_read_with_its_structure(reader, monkeypatch):
    converted = b64encode(word(paragraph("from LibreOffice"))).decode()
    monkeypatch.setattr("kb.parser.old_office._NOT_CONFINED", ())  # what it prints is the same elsewhere
    read = reader(soffice=f'mkdir "$HOME/out"; echo {converted} | base64 -d > "$HOME/out/file.docx"; echo noise')
    assert read(OLD["a.doc"], "a.doc") == ("docx", "from LibreOffice")


def test_libreoffice_is_not_asked_where_it_cannot_start(reader):
    with pytest.raises(Opaque, match="install antiword"):
        reader(soffice="echo no")(OLD["a.doc"], "a.doc")


def test_a_setting_counts_before_what_is_installed_and_can_turn_it_off(reader):
    assert reader("doc=head -c 0; .doc=cat", antiword="echo no")(b"by suffix", "a.doc")[1] == "by suffix"
    with pytest.raises(Opaque, match="install antiword"):
        reader("doc=off", antiword="echo no")(OLD["a.doc"], "a.doc")


def test_the_suffixes_of_what_can_be_read_are_named(reader):
    reader(antiword="", catppt="")
    assert {".doc", ".dot", ".ppt", ".pps"} <= set(Extractors.parse("").suffixes)
    assert ".wpd" not in Extractors.parse("").suffixes


@pytest.mark.rare
def test_extractors_run_where_python_has_no_waitid(reader, monkeypatch):
    monkeypatch.delattr(os, "waitid")
    read = reader(antiword="echo found; (while :; do :; done) &")
    assert read(OLD["a.doc"], "a.doc") == ("text", "found")
    with pytest.raises(Unreadable, match="failed"):
        reader(antiword="exit 3")(OLD["a.doc"], "a.doc")
