"""Files that would end an engine, and the process that reads them instead."""

import io
import os
import zipfile
from itertools import repeat
from pathlib import Path

from tests.support.eventually import eventually


def parser_of(engine=None):
    """The process id of the parser of this process, or of that of an engine."""
    return eventually("there is a parser", lambda: _parser_of(engine or os.getpid()))


def parser_at_work(engine=None):
    """The same, once it is deep in a file: it has computed for longer than its start takes."""
    parser = parser_of(engine)
    eventually("the parser works on a file", lambda: processor_seconds(parser), until=lambda seconds: seconds > 1)
    return parser


def _parser_of(engine):
    for task in list(Path(f"/proc/{engine}/task").glob("*/children")):
        for child in task.read_text().split():
            if b"kb.parser.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return None


def processor_seconds(process):
    """The CPU seconds of a process."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def document(body, times=1):
    """A packed Word document that repeats a body, never whole in memory."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1 if times > 1 else None) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("_rels/.rels", "<R><r Type='x/officeDocument' Target='word/document.xml'/></R>")
        with archive.open("word/document.xml", "w") as file:
            for part in (b"<w><b>", *repeat(body, times), b"</b></w>"):
                file.write(part)
    return packed.getvalue()


def slow(shown=100):
    """A workbook that shows one sheet many times, each time with a million rows for the parser."""
    return sheet("A", shown)


def sheet(column, shown=1):
    """A sheet with a value in the first cell, and one in the last row of this column."""
    cell = "<row r='{0}'><c r='{1}{0}'><v>1</v></c></row>"
    data = f"<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>{cell.format(1, 'A')}{cell.format(1048576, column)}</sheetData></worksheet>"
    relations = "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='r' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}' Target='{}'/></Relationships>"
    sheets = "".join(f"<sheet name='S{number}' sheetId='{number + 1}' r:id='r'/>" for number in range(shown))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("_rels/.rels", relations.format("officeDocument", "xl/workbook.xml"))
        file.writestr("xl/_rels/workbook.xml.rels", relations.format("worksheet", "worksheets/sheet1.xml"))
        file.writestr("xl/worksheets/sheet1.xml", data)
        file.writestr(
            "xl/workbook.xml",
            f"<workbook xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'><sheets>{sheets}</sheets></workbook>",
        )
    return archive.getvalue()


TAKEOVER = """
import importlib.util, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "kb.formats.readers.text":
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            spec.loader.exec_module = take_over(spec.loader.exec_module)
            return spec

def take_over(load):
    def exec_module(module):
        load(module)
        module.read = run
    return exec_module

def run(data):
    from kb.formats.text.extracted import Extracted
    try:
        exec(data, names := {})
    except BaseException as error:
        return Extracted.of_text(f"{type(error).__name__}: {error}")
    return Extracted.of_text(f"succeeded: {names.get('result')}")

sys.meta_path.insert(0, Finder())
"""
"""A `sitecustomize` that has a parser run the texts that it shall read, as one does that a file took over."""


def taken_over(folder):
    """The `PYTHONPATH` that lets a test take over a parser."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(TAKEOVER)
    return str(folder)
