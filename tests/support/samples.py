"""A small file of each format, and damaged forms of it."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from base64 import encodebytes

from hypothesis import strategies as st

from tests.support.cms import signed
from tests.support.hostile import document
from tests.support.ole import ole
from tests.support.outlook import Embedded, file, file_with, message, rich_text, tnef
from tests.support.pdf import pdf, with_files

MAIL = (
    "From: Ann <ann@example.org>\nTo: b@example.org\nDate: Mon, 1 Jan 2024 10:00:00 +0000\nMessage-ID: <1@x>\n"
    "Subject: =?utf-8?q?caf=C3=A9?=\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
    "Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n<p hidden>a<p>w=C3=B6rd\n"
    "--b\nContent-Type: text/csv; name*=utf-8''a.csv\nContent-Transfer-Encoding: base64\n\nMSwyCg==\n--b--\n"
)
HTML = (
    "<!DOCTYPE html><html><head><title>T</title><meta name=date content=2024-01-01></head><body><h1>One</h1><p hidden>"
    "no</p><ul><li>a<li>b</ul><table><tr><td>1<td>2</table><pre>x\n y</pre><h2 style='display:none'>no</h2></body></html>"
)
MARKDOWN = (
    "---\ntitle: T\ntags: [a, b]\ndate: 2024-01-01\n---\n# One\n\n- `a` #tag\n\n```\n# no\n```\n\nTwo\n---\n[a](b)\n"
)
TOML = "+++\ntitle = 'T'\ntags = ['a']\ndate = 2024-01-01\n[a.b]\nc.d = {e = 1}\n+++\n# One\n"
RTF = (
    r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}{\info{\title T}}one \b two\par caf\'e9 "
    r'\u8211? {\field{\*\fldinst{HYPERLINK "http://x"}}{\fldrslt{\ul link}}}\cell a\cell\row}'
)
FEED = "<?xml version='1.0'?><rss><channel><title>N</title><item><title>O</title><description>&lt;p&gt;a</description></item></channel></rss>"
BOOK = "<?xml version='1.0'?><book><title>T</title><section><title>One</title><para>Many words of a paragraph.</para></section></book>"
ORG = "#+TITLE: T\n* TODO One :a:\n#+BEGIN_SRC\n* no\n#+END_SRC\n** Two\n"
RST = "=====\nTitle\n=====\n\nOne\n---\ntext\n\n  a\n  -\n"
NOTEBOOK = {
    "nbformat": 4,
    "cells": [
        {"cell_type": "markdown", "source": ["# One\n", "a"]},
        {"cell_type": "code", "source": "1", "outputs": [{"output_type": "stream", "text": ["x"]}]},
    ],
}
OPEN_DOCUMENT = (
    "<office:document-content xmlns:office='o' xmlns:text='t' xmlns:table='b'><office:body><office:text><text:h"
    " text:outline-level='1'>One</text:h><text:p>a</text:p></office:text></office:body></office:document-content>"
)
SLIDE = "<p:sld xmlns:p='p' xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>One</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
NUMBERS = "<w:numbering xmlns:w='w'><w:abstractNum w:abstractNumId='0'><w:lvl w:ilvl='0'><w:start w:val='1'/><w:numFmt w:val='upperRoman'/><w:lvlText w:val='%1.'/></w:lvl><w:lvl w:ilvl='1'><w:numFmt w:val='decimal'/><w:lvlText w:val='%1.%2'/><w:lvlRestart w:val='1'/></w:lvl></w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='0'/><w:lvlOverride w:ilvl='0'><w:startOverride w:val='7'/></w:lvlOverride></w:num></w:numbering>"
NUMBERED = "<w:document xmlns:w='w' xmlns:r='r'><w:body><w:p><w:pPr><w:numPr><w:ilvl w:val='0'/><w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>One</w:t></w:r></w:p><w:p><w:pPr><w:numPr><w:ilvl w:val='1'/><w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>Two</w:t><w:sym w:font='Symbol' w:char='F061'/></w:r></w:p><w:altChunk r:id='a'/></w:body></w:document>"
LISTED = "<office:document-content xmlns:office='o' xmlns:text='t' xmlns:style='s'><office:automatic-styles><text:list-style style:name='L'><text:list-level-style-number text:level='1' style:num-format='a' style:num-suffix=')'/></text:list-style></office:automatic-styles><office:body><office:text><text:list text:style-name='L'><text:list-item><text:p>One</text:p></text:list-item></text:list></office:text></office:body></office:document-content>"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


# Records of the binary format of Excel: a sheet `S`, a word and an error in it, a note on A1.
BINARY_WORKBOOK = (
    bytes.fromhex("8301008f0100")
    + b"\x9c\x01\x14"
    + struct.pack("<IIIHIH", 0, 1, 1, 114, 1, 83)
    + bytes.fromhex("900100840100")
)
BINARY_SHEET = (
    bytes.fromhex("810100940110") + struct.pack("<IIII", 0, 9, 0, 9) + bytes.fromhex("9101000011") + bytes(17)
    + b"\x06\x0e" + struct.pack("<IIIH", 0, 0, 1, 65) + b"\x03\x09" + struct.pack("<IIB", 1, 0, 7) + bytes.fromhex("920100820100")
)  # fmt: skip
BINARY_NOTES = b"\xfb\x04\x24" + bytes(36) + b"\xfd\x04\x0b\0" + struct.pack("<I", 3) + "why".encode("utf-16-le")


def zipped(entries):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return archive.getvalue()


def _relation(kind, target):
    return f"<Relationships><Relationship Id='r' Type='{OFFICE}/{kind}' Target='/{target}'/></Relationships>"


def _message():
    text = {"0037": "Plan", "1000": "words", "0C1A": "Ann", "007D": "Date: Mon, 1 Jan 2024 10:00:00 +0000\n"}
    streams = {f"__substg1.0_{number}001F": value.encode("utf-16-le") for number, value in text.items()}
    name = "a.csv".encode("utf-16-le")
    attached = {"__substg1.0_3707001F": name, "__substg1.0_37010102": b"1,2"}
    rich = bytes.fromhex("2d0000002b0000004c5a4675f1c5c7a703000a00726370673132354232")
    fixed = {"__properties_version1.0": bytes(48), "__substg1.0_10090102": rich}
    return ole(streams | fixed | {"__attach_version1.0_#00000000": attached})


EVERNOTE = (
    "<?xml version='1.0'?><!DOCTYPE en-export SYSTEM 'x'><en-export><note><title>T</title><content><![CDATA[<?xml version='1.0'?>"
    "<en-note><en-todo checked='true'/>one<en-media hash='7fc56270e7a70fa81a5935b72eacbe29' type='image/png'/></en-note>]]>"
    "</content><created>20240301T101500Z</created><tag>a</tag><resource><data encoding='base64'>QQ==</data><mime>image/png"
    "</mime></resource></note></en-export>"
)
SAVED_PAGE = (
    "From: <Saved by Blink>\nSubject: T\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type:"
    f" text/html\nContent-Transfer-Encoding: quoted-printable\n\n{HTML.replace('=', '=3D')}\n--b\nContent-Type: text/css\n\np {{}}\n--b--\n"
)
CALENDAR = (
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:One\n two\nDTSTART;TZID=X:20240301T100000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=2\n"
    'ATTENDEE;CN="A:b":mailto:a@x\nATTACH;ENCODING=BASE64;FILENAME=a.txt:QQ==\nDESCRIPTION:a\\,b\\nc<br>\nEND:VEVENT\nEND:VCALENDAR\n'
)
CONTACT = "BEGIN:VCARD\nN;QUOTED-PRINTABLE:M=C3=\n=BC;J\nitem1.TEL;TYPE=home:1\nitem1.X-ABLabel:x\nADR:;;a;b\nPHOTO;ENCODING=b:QQ==\nEND:VCARD\n"
MAP = (
    "<?xml version='1.0'?><kml xmlns='http://www.opengis.net/kml/2.2'><Document><name>T</name><Placemark><name>One</name>"
    "<description>&lt;b&gt;a</description><Point><coordinates>8.1,61.2,0</coordinates></Point></Placemark></Document></kml>"
)
SIGNED = (
    b"From: a@x\nMessage-ID: <1@x>\nContent-Type: application/pkcs7-mime; smime-type=signed-data\n"
    b"Content-Transfer-Encoding: base64\n\n" + encodebytes(signed(b"Content-Type: text/plain\n\nwords\n"))
)
FLOWED = (
    "From: a@x\nMessage-ID: <1@x>\nContent-Type: text/plain; format=flowed; delsp=yes\n\na \nb\n> c \n>> d\n-- \ne\n"
    "begin 644 a.txt\n#86)C\n`\nend\n"
)
PACKED = message(
    {0x0037: "T", 0x1000: "words", 0x1009: rich_text("rich")},
    file("a.csv", b"1,2"),
    file_with({0x3701: Embedded(tnef())}),
)


SAMPLES = {
    "door.png": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "code.py": b"def f():\n    return 1\n",
    "table.csv": b"Name;Born\nAnn;2000\n",
    "word.docx": document(b"<w:p xmlns:w='w'><w:r><w:t>One</w:t></w:r></w:p>"),
    "mail.eml": MAIL.encode(),
    "wide.eml": MAIL.encode("utf-16"),
    "apple.emlx": f"{len(MAIL)}\n{MAIL}<plist/>".encode(),
    "signed.eml": SIGNED,
    "old.eml": FLOWED.encode(),
    "joplin.md": b"T\n\nwords\n\nid: 0123456789abcdef0123456789abcdef\ncreated_time: 2024-01-01\ntype_: 1",
    "winmail.dat": PACKED,
    "notes.enex": EVERNOTE.encode(),
    "map.kmz": zipped({"doc.kml": MAP}),
    "page.mht": SAVED_PAGE.encode(),
    "dates.ics": CALENDAR.encode(),
    "people.vcf": CONTACT.encode(),
    "broken.md": b"---\ntitle: a: b\ntags: [a, b\n---\n# One\n\n![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB)\n",
    "book.epub": zipped({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<container><rootfiles><rootfile full-path='book.opf'/></rootfiles></container>",
        "book.opf": "<package><metadata/><manifest><item id='a' href='a.xhtml'/></manifest><spine><itemref idref='a'/></spine></package>",
        "a.xhtml": "<html><body><h1>One</h1><p>a</p></body></html>",
    }),
    "page.html": HTML.encode(),
    "data.json": b'{"a": ["first\\nsecond", 1, "\\u00e9"]}',
    "lines.jsonl": b'{"a": "x\\ty"}\n{"a": 2}\n',
    "note.md": MARKDOWN.encode(),
    "toml.md": TOML.encode(),
    "box.mbox": "".join(f"From a Mon Jan  1 10:00:00 2024\n{MAIL}\n" for _ in range(2)).encode(),
    "mail.msg": _message(),
    "book.ipynb": json.dumps(NOTEBOOK).encode(),
    "slides.odp": zipped({"mimetype": "application/vnd.oasis.opendocument.presentation", "content.xml": OPEN_DOCUMENT}),
    "sheet.ods": zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": OPEN_DOCUMENT}),
    "text.odt": zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": OPEN_DOCUMENT}),
    "page.pdf": pdf("One", "two"),
    "slides.pptx": zipped({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": _relation("officeDocument", "ppt/presentation.xml"),
        "ppt/presentation.xml": "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId id='256' r:id='r'/></p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": _relation("slide", "ppt/slide1.xml"),
        "ppt/slide1.xml": SLIDE,
    }),
    "rich.rtf": RTF.encode(),
    "text.txt": "Grüße, 東京\r\n\r\nwords".encode("utf-16"),
    "a.org": ORG.encode(),
    "a.rst": RST.encode(),
    "old.xls": ole({"Workbook": bytes(64)}),
    "sheet.xlsx": zipped({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": _relation("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": _relation("worksheet", "xl/sheet1.xml"),
        "xl/sheet1.xml": f"<worksheet xmlns='{SHEETS}'><sheetData><row r='1'><c r='A1'><v>1</v></c></row></sheetData></worksheet>",
        "xl/workbook.xml": f"<workbook xmlns='{SHEETS}' xmlns:r='{OFFICE}'><sheets><sheet name='S' sheetId='1' r:id='r'/></sheets></workbook>",
    }),
    "numbered.docx": zipped({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": _relation("officeDocument", "word/document.xml"),
        "word/document.xml": NUMBERED,
        "word/numbering.xml": NUMBERS,
        "word/chunk.html": "<h1>Three</h1><p>four",
        "word/_rels/document.xml.rels": f"<R><Relationship Id='n' Type='{OFFICE}/numbering' Target='numbering.xml'/><Relationship Id='a' Type='{OFFICE}/aFChunk' Target='chunk.html'/></R>",
    }),
    "listed.odt": zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": LISTED}),
    "formulas.xlsx": zipped({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": _relation("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": _relation("worksheet", "xl/sheet1.xml"),
        "xl/sheet1.xml": f"<worksheet xmlns='{SHEETS}'><sheetData><row r='1'><c r='A1'><f t='shared' si='0'>B1+$C$2</f></c></row><row r='2'><c r='A2'><f t='shared' si='0'/></c><c r='B2' t='e'><v>#N/A</v></c></row></sheetData></worksheet>",
        "xl/_rels/sheet1.xml.rels": _relation("comments", "xl/comments1.xml"),
        "xl/comments1.xml": f"<comments xmlns='{SHEETS}'><commentList><comment ref='A1'><text><t>why</t></text></comment></commentList></comments>",
        "xl/workbook.xml": f"<workbook xmlns='{SHEETS}' xmlns:r='{OFFICE}'><sheets><sheet name='S' sheetId='1' r:id='r'/></sheets></workbook>",
    }),
    "files.pdf": with_files("One", [("a.txt", "x")], [("b.txt", "y")], ["why"]),
    "noted.xls": ole({"Workbook": struct.pack("<HHHH4x", 0x0809, 8, 0x0600, 5) + struct.pack("<HHIBBBB", 0x85, 9, 37, 0, 0, 1, 0) + b"S" + struct.pack("<HH", 0x0A, 0) + struct.pack("<HHHH4x", 0x0809, 8, 0x0600, 16) + struct.pack("<HHHHHHHBB", 0x1C, 12, 0, 0, 0, 1, 1, 0, 65) + b"\0" + struct.pack("<HH", 0x0A, 0)}),
    "noted.xlsb": zipped({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": _relation("officeDocument", "xl/workbook.bin"),
        "xl/workbook.bin": BINARY_WORKBOOK,
        "xl/_rels/workbook.bin.rels": f"<R xmlns='x'><Relationship Id='r' Type='{OFFICE}/worksheet' Target='worksheets/s.bin'/></R>",
        "xl/worksheets/s.bin": BINARY_SHEET,
        "xl/worksheets/_rels/s.bin.rels": _relation("comments", "xl/c.bin"),
        "xl/c.bin": BINARY_NOTES,
    }),
    "units.xlsx": zipped({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": _relation("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": f"<Relationships><Relationship Id='r' Type='{OFFICE}/worksheet' Target='/xl/s.xml'/><Relationship Id='t' Type='{OFFICE}/styles' Target='/xl/t.xml'/></Relationships>",
        "xl/s.xml": f"<worksheet xmlns='{SHEETS}'><sheetData><row r='1'><c r='A1' s='1'><v>0.5</v></c></row></sheetData><headerFooter><oddHeader>&amp;LDraft &amp;P</oddHeader></headerFooter></worksheet>",
        "xl/t.xml": f"<styleSheet xmlns='{SHEETS}'><numFmts><numFmt numFmtId='164' formatCode='[Red]0.0&quot; kg&quot;_);@'/></numFmts><cellXfs><xf/><xf numFmtId='164'/></cellXfs></styleSheet>",
        "xl/workbook.xml": f"<workbook xmlns='{SHEETS}' xmlns:r='{OFFICE}'><sheets><sheet name='S' sheetId='1' r:id='r'/></sheets></workbook>",
    }),
    "feed.xml": FEED.encode(),
    "book.xml": BOOK.encode(),
}  # fmt: skip

# What to do at which part of a file: leave bytes out, write others over them or between them, or repeat them.
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["cut", "write", "insert", "repeat"]),
        st.floats(0, 1),
        st.integers(0, 64),
        st.binary(max_size=8)
        | st.sampled_from([b"\0", b"<", b"{", b"}", b'"', b"\\", b"\n", b"`", b"99999999999", b"%"]),
    ),
    min_size=1,
    max_size=6,
)


def damaged(data, changes):
    """A file with these changes made to it; of an archive, to what is in it."""
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        names = [name for name in entries if len(entries[name]) < 1 << 20] * len(changes)
        for change, name in zip(changes, names[int(changes[0][1] * 100) :] or names, strict=False):
            entries[name] = damaged_bytes(entries[name], [change])
        return zipped(entries)
    return damaged_bytes(data, changes)


def damaged_bytes(data, changes):
    for kind, share, length, content in changes:
        start = int(share * len(data))
        after = {"cut": data[start + length :], "insert": content + data[start:]}
        after |= {
            "write": content + data[start + len(content) :],
            "repeat": data[start : start + length] * 50 + data[start:],
        }
        data = data[:start] + after[kind]
    return data
