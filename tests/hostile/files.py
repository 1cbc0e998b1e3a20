"""Small files that expand to huge ones: each has a name and a function that makes its bytes."""

from __future__ import annotations

import base64
import io
import json
import random
import zipfile
import zlib
from functools import partial

from tests.support.outlook import Embedded, attribute, file, file_with, message, properties, tnef
from tests.support.pdf import pdf, with_files

LETTERS = "a b c d e f g h i j k l m n o p"
"""Sixteen tokens in thirty-two characters: enough for a section of its own."""

LONG = "h" * 290
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SPACES = (
    "xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' "
    "xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0' "
    "xmlns:table='urn:oasis:names:tc:opendocument:xmlns:table:1.0' "
    "xmlns:draw='urn:oasis:names:tc:opendocument:xmlns:drawing:1.0' "
    "xmlns:dc='http://purl.org/dc/elements/1.1/'"
)


def packed(parts):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return archive.getvalue()


def relations(*rows):
    entries = "".join(f"<Relationship Id='{id_}' Type='{OFFICE}/{kind}' Target='{to}'/>" for id_, kind, to in rows)
    return f"<Relationships xmlns='{PACKAGE}'>{entries}</Relationships>"


def docx(body, title=""):
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(
                ("r", "officeDocument", "word/document.xml"), ("c", "core-properties", "core.xml")
            ),
            "core.xml": f"<c xmlns:dc='x'><dc:title>{title}</dc:title></c>",
            "word/document.xml": f"<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>",
        }
    )


def paragraph(text, level=None):
    style = f"<w:pPr><w:outlineLvl w:val='{level}'/></w:pPr>" if level is not None else ""
    return f"<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(*slides):
    names = [f"slides/{number}.xml" for number in range(len(slides))]
    listed = "".join(f"<p:sldId r:id='r{number}'/>" for number in range(len(slides)))
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(("r", "officeDocument", "ppt/presentation.xml")),
        "ppt/_rels/presentation.xml.rels": relations(*((f"r{n}", "slide", name) for n, name in enumerate(names))),
        "ppt/presentation.xml": f"<p:presentation xmlns:p='p' xmlns:r='{OFFICE}'><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
    }
    shape = "<p:sp><p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    texts = (text if text.startswith("<") else shape.format(text) for text in slides)
    slide = "<p:sld xmlns:p='p' xmlns:a='a'><p:cSld><p:spTree>{}</p:spTree></p:cSld></p:sld>"
    return packed(parts | {f"ppt/{name}": slide.format(text) for name, text in zip(names, texts, strict=True)})


def xlsx(rows, names=("S",), shared=""):
    sheets = "".join(f"<sheet name='{name}' sheetId='{n + 1}' r:id='r'/>" for n, name in enumerate(names))
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(("r", "officeDocument", "xl/workbook.xml")),
            "xl/_rels/workbook.xml.rels": relations(
                ("r", "worksheet", "worksheets/1.xml"), ("s", "sharedStrings", "sharedStrings.xml")
            ),
            "xl/worksheets/1.xml": f"<worksheet xmlns='{SHEET}'><sheetData>{rows}</sheetData></worksheet>",
            "xl/sharedStrings.xml": f"<sst xmlns='{SHEET}'><si><t>{shared}</t></si></sst>",
            "xl/workbook.xml": f"<workbook xmlns='{SHEET}' xmlns:r='{OFFICE}'><sheets>{sheets}</sheets></workbook>",
        }
    )


def row(number, *cells):
    written = (
        f"<c r='{chr(65 + column)}{number}' t='inlineStr'><is><t>{cell}</t></is></c>"
        for column, cell in enumerate(cells)
    )
    return f"<row r='{number}'>{''.join(written)}</row>"


def open_document(kind, body, title=""):
    content = f"<office:document-content {SPACES}><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    meta = (
        f"<office:document-meta {SPACES}><office:meta><dc:title>{title}</dc:title></office:meta></office:document-meta>"
    )
    suffix = {"text": "text", "spreadsheet": "spreadsheet", "presentation": "presentation"}[kind]
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{suffix}",
            "content.xml": content,
            "meta.xml": meta,
            "META-INF/manifest.xml": "<m/>",
        }
    )


def nested(levels, line="", title="n"):
    return "".join(
        f"<text:h text:outline-level='{level}'>{title} {level}</text:h><text:p>{line}</text:p>"
        for level in range(1, levels + 1)
    )


def epub(chapter, times=1, title="A book", label="A chapter"):
    spine = "<itemref idref='c'/>" * times
    nav = f"<html><body><nav><a href='c.xhtml'>{label}</a></nav></body></html>"
    opf = (
        f"<package xmlns:dc='http://purl.org/dc/elements/1.1/'><metadata><dc:title>{title}</dc:title></metadata><manifest>"
        "<item id='c' href='c.xhtml' media-type='application/xhtml+xml'/><item id='n' href='n.xhtml' properties='nav' media-type='application/xhtml+xml'/>"
        f"</manifest><spine>{spine}</spine></package>"
    )
    container = "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>"
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "b.opf": opf,
            "c.xhtml": chapter,
            "n.xhtml": nav,
        }
    )


def inflating_pdf(text, times):
    content = zlib.compress(b"BT /F1 12 Tf 72 720 Td " + f"({text}) Tj ".encode() * times + b"ET", 9)
    whole = pdf("x").replace(b"/Length", b"/Filter /FlateDecode /Length")
    start, end = whole.index(b"stream\n") + 7, whole.index(b"\nendstream")
    return whole[:start] + content + whole[end:]


def mail(body="words", subject="s", more="", parts=()):
    head = f"From: a@b\nSubject: {subject}\nMIME-Version: 1.0\n{more}"
    if not parts:
        return f"{head}\n{body}".encode()
    attached = "".join(
        f'--x\nContent-Type: application/octet-stream\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename="{name}"\n\n{base64.encodebytes(data).decode()}\n'
        for name, data in parts
    )
    return f"{head}Content-Type: multipart/mixed; boundary=x\n\n--x\n\n{body}\n{attached}--x--".encode()


def nested_mail(depth):
    message = mail("innermost")
    for _ in range(depth):
        message = b"From: a@b\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n" + message
    return message


def notebook(*sources):
    cells = [{"cell_type": "markdown", "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "cells": cells, "metadata": {}}).encode()


def levels(heading, line, count, levels=6):
    """Markdown with long headings above many short sections."""
    above = "".join(f"{'#' * level} {heading}{level}\n" for level in range(1, levels))
    return (above + f"{'#' * levels} {line}\n" * count).encode()


def html(body, title="t"):
    return f"<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>".encode()


def laughs():
    entities = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 10))
    return f"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e0 'ha'>{entities}]><x>{'&e9;' * 10}</x>".encode()


def feed(items):
    entries = "".join(
        f"<item><title>{LONG} {n}</title><description>{LETTERS}</description></item>" for n in range(items)
    )
    return f"<?xml version='1.0'?><rss><channel><title>{LONG}</title>{entries}</channel></rss>".encode()


def literal(text, times=1, before="", after=""):
    return (before + text * times + after).encode()


def base64_text(size):
    return base64.b64encode(random.Random(1).randbytes(size))


def nested_tnef(depth):
    packed = message({0x0037: "innermost", 0x1000: "words"})
    for level in range(depth):
        packed = message({0x0037: f"level {level}"}, file_with({0x3707: "inner", 0x3701: Embedded(packed)}))
    return packed


def shown_in_itself(times):
    """A document that shows itself again and again, and a page."""
    chunks = "".join(f"<w:altChunk r:id='{'s' if number % 2 else 'p'}'/>" for number in range(times))
    body = chunks + paragraph(LETTERS)
    main = f"<w:document xmlns:w='w' xmlns:r='{OFFICE}'><w:body>{body}</w:body></w:document>"
    inner = docx(paragraph(LETTERS))
    for _ in range(4):
        inner = with_chunks(main, inner)
    return inner


def with_chunks(main, inner):
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(("r", "officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": relations(("s", "aFChunk", "s.docx"), ("p", "aFChunk", "p.html")),
            "word/document.xml": main,
            "word/s.docx": inner,
            "word/p.html": f"<html><body>{f'<h1>{LETTERS}</h1>' * 50}</body></html>",
        }
    )


def notes(count, more=""):
    one = f"<note><title>{LONG}</title><content><![CDATA[<en-note>{LETTERS}</en-note>]]></content>{more}</note>"
    return f"<?xml version='1.0'?><en-export>{one * count}</en-export>".encode()


def calendar(line, count):
    events = f"BEGIN:VEVENT\r\nSUMMARY:{LETTERS}\r\n{line}END:VEVENT\r\n" * count
    return f"BEGIN:VCALENDAR\r\n{events}END:VCALENDAR\r\n".encode()


def boxes(depth):
    """A text box in a text box in a text box, with a chart in it."""
    inside = "<draw:frame><draw:object xlink:href='./Object 1' xmlns:xlink='x'/></draw:frame>"
    for _ in range(depth):
        inside = f"<draw:frame><draw:text-box><text:p>{LETTERS}{inside}</text:p></draw:text-box></draw:frame>"
    return open_document("text", f"<text:p>{inside}</text:p>")


def shapes_side_by_side(count):
    shape = "<p:sp><p:spPr><a:xfrm><a:off x='{}' y='0'/><a:ext cx='5' cy='5'/></a:xfrm></p:spPr></p:sp>"
    return pptx("".join(shape.format(10 * number) for number in range(count)))


def formulas(count):
    """Formulas without values, all made from a long one."""
    master = f"<c r='A1'><f t='shared' ref='A1:A{count}' si='0'>{'B1+' * 300_000}B1</f></c>"
    rows = "".join(f"<row r='{n}'><c r='A{n}'><f t='shared' si='0'/></c></row>" for n in range(2, count))
    return xlsx(f"<row r='1'>{master}</row>{rows}")


TOP = "".join(f"<h{n}>{LONG}{n}</h{n}>" for n in range(1, 6))
FILES = {
    "a word of letters": ("a.txt", partial(literal, "A", 60_000)),
    "a word of base64": ("a.txt", partial(base64_text, 18_000)),
    "marks": ("a.txt", partial(literal, "!?", 8_000)),
    "empty lines": ("a.txt", partial(literal, "\n", 60_000, "x", "x")),
    "letters on lines": ("a.txt", partial(literal, "a\n", 10_000)),
    "elephants": ("a.txt", partial(literal, "🐘", 10_000)),
    "no width": ("a.txt", partial(literal, "\u200b", 15_000, "x", "x")),
    "chinese": ("a.txt", partial(literal, "日本語の長い文章です", 1200)),
    "a minified script": ("a.js", partial(literal, "function(a,b){return a.c[b]||null};", 500)),
    "a long heading": ("a.md", partial(literal, "long ", 5_000, "# ")),
    "headings of letters": ("a.md", partial(literal, f"# {LETTERS}\n", 800)),
    "headings without text": ("a.md", partial(literal, "#\n", 8_000, "x\n")),
    "headings below long ones": ("a.md", partial(levels, LONG, LETTERS, 800)),
    "nested quotes": ("a.md", partial(literal, ">" * 200 + " a\n", 80)),
    "links that do not end": ("a.md", partial(literal, "[a](b", 4_000, "# x\n## y\n")),
    "links in a text of no kind": ("upload", partial(literal, "](", 12_000, "# x\n## y\n\n")),
    "emphasis that does not end": ("a.md", partial(literal, "*a **b ", 3000)),
    "a front title": ("a.md", partial(literal, "t", 50_000, "---\ntitle: ", "\n---\ntext\n")),
    "front tags": (
        "a.md",
        lambda: literal(", ".join(f"{'t' * 190}{n}" for n in range(300)), 1, "---\ntags: [", "]\n---\ntext\n"),
    ),
    "front aliases": (
        "a.md",
        lambda: literal(
            ", ".join(f"{LONG}{n}" for n in range(200)), 1, "---\naliases: [", "]\n---\n" + f"# {LETTERS}\n" * 300
        ),
    ),
    "dotted keys": ("a.md", partial(literal, "a.", 29_000, "+++\n", "a = 1\n+++\ntext\n")),
    "a page title": ("a.html", lambda: html(f"<p>{LETTERS}</p>" * 500, "long " * 8000)),
    "page headings": ("a.html", lambda: html(TOP + f"<h6>{LETTERS}</h6>" * 1000)),
    "page headings of letters": ("a.html", lambda: html(f"<h1>{LETTERS}</h1>" * 1200)),
    "unclosed elements": ("a.html", lambda: html("<div>" * 2000 + "x")),
    "unclosed headings": ("a.html", lambda: html("<h1>a" * 4_000)),
    "entities of a page": ("a.html", lambda: html("&#128024;" * 6000)),
    "attributes": ("a.html", lambda: html("<p " + " ".join(f"a{n}=1" for n in range(30_000)) + ">x</p>")),
    "cells of a page": ("a.html", lambda: html("<table>" + "<tr><td>a<td>b" * 2000 + "</table>")),
    "entities of entities": ("a.xml", laughs),
    "entries of a feed": ("a.xml", partial(feed, 150)),
    "nested elements": ("a.xml", partial(literal, "<a>", 10_000, "<?xml version='1.0'?>")),
    "nested lists": ("a.json", lambda: literal("[" * 900 + ",".join(["1"] * 12_000) + "]" * 900)),
    "nested objects": ("a.json", lambda: literal('{"a":' * 900 + "1" + "}" * 900)),
    "escapes": ("a.json", partial(literal, "\\u00e9", 8000, '["', '"]')),
    "cells of a notebook": ("a.ipynb", lambda: notebook(*[f"# {LETTERS}"] * 800)),
    "a notebook's heading": ("a.ipynb", lambda: notebook("# " + "long " * 8000, *["# a\ntext"] * 500)),
    "columns with long names": (
        "a.csv",
        lambda: literal(",".join(f"{LONG}{n}" for n in range(3)) + "\n" + "a,b,c\n" * 2000),
    ),
    "very many columns": (
        "a.csv",
        lambda: literal(",".join(f"c{n}" for n in range(3000)) + "\n" + ",".join("1" * 3000)),
    ),
    "nothing but commas": ("a.csv", partial(literal, ",", 16_000, "a", "b")),
    "text that unpacks": ("a.docx", lambda: docx(paragraph("words of a bomb " * 300_000))),
    "marks that unpack": ("a.docx", lambda: docx(paragraph("! " * 100_000))),
    "paragraphs that unpack": ("a.docx", lambda: docx(paragraph(LETTERS) * 20_000)),
    "headings of a document": (
        "a.docx",
        lambda: docx("".join(paragraph(f"{LONG}{n}", n) for n in range(9)) + paragraph(LETTERS, 8) * 5000),
    ),
    "a document's title": ("a.docx", lambda: docx(paragraph(LETTERS, 0) * 2000, "long " * 10_000)),
    "nested tables": (
        "a.docx",
        lambda: docx("<w:tbl><w:tr><w:tc>" * 60 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 60),
    ),
    "slides": ("a.pptx", lambda: pptx(*(f"word {n}" for n in range(600)))),
    "a slide that unpacks": ("a.pptx", lambda: pptx("words of a bomb " * 300_000)),
    "one text in all cells": (
        "a.xlsx",
        lambda: xlsx(
            "".join(f"<row r='{n}'><c r='A{n}' t='s'><v>0</v></c></row>" for n in range(1, 3000)), shared="text " * 400
        ),
    ),
    "sheets": ("a.xlsx", lambda: xlsx(row(1, "a", "b") + row(2, LETTERS, 1), [f"Sheet {n}" for n in range(1500)])),
    "names of columns": (
        "a.xlsx",
        lambda: xlsx(row(1, f"{LONG}a", f"{LONG}b") + "".join(row(n, LETTERS, n) for n in range(2, 1500))),
    ),
    "repeated cells": (
        "a.ods",
        lambda: open_document(
            "spreadsheet",
            "<table:table table:name='a'><table:table-row table:number-rows-repeated='20000'><table:table-cell office:value-type='string' table:number-columns-repeated='50'><text:p>words</text:p></table:table-cell></table:table-row></table:table>",
        ),
    ),
    "400 nested headings": ("a.odt", lambda: open_document("text", nested(400, LETTERS))),
    "1200 nested headings": ("a.odt", lambda: open_document("text", nested(1200, LETTERS))),
    "nested long headings": ("a.odt", lambda: open_document("text", nested(600, LETTERS, LONG))),
    "spaces": ("a.odt", lambda: open_document("text", "<text:p>x" + "<text:s text:c='80'/>y" * 20_000 + "</text:p>")),
    "a text's title": (
        "a.odt",
        lambda: open_document("text", f"<text:h text:outline-level='1'>{LETTERS}</text:h>" * 2000, "long " * 10_000),
    ),
    "slides of a presentation": (
        "a.odp",
        lambda: open_document(
            "presentation",
            "".join(
                f"<draw:page><draw:frame><draw:text-box><text:p>{LETTERS} {n}</text:p></draw:text-box></draw:frame></draw:page>"
                for n in range(3000)
            ),
        ),
    ),
    "a chapter many times": (
        "a.epub",
        lambda: epub(f"<html><body><h1>{LONG}</h1><p>{LETTERS * 40}</p></body></html>", 1000),
    ),
    "a book's title": (
        "a.epub",
        lambda: epub(f"<html><body>{f'<h1>{LETTERS}</h1>' * 1000}</body></html>", title="long " * 10_000),
    ),
    "a chapter's name": (
        "a.epub",
        lambda: epub(f"<html><body>{f'<p>{LETTERS}</p>' * 500}</body></html>", label="long " * 10_000),
    ),
    "pages": ("a.pdf", lambda: pdf(*(f"word {n}" for n in range(400)))),
    "a page that inflates": ("a.pdf", lambda: inflating_pdf("words of a bomb", 200_000)),
    "hyphens": ("a.pdf", lambda: inflating_pdf("a-", 20_000)),
    "links of rich text": ("a.rtf", partial(literal, 'HYPERLINK "', 2800, "{\\rtf1 ", "}")),
    "groups of rich text": ("a.rtf", partial(literal, "{", 20_000, "{\\rtf1 x", "}" * 20_001)),
    "a subject": ("a.eml", partial(mail, subject="long " * 10_000, body=LETTERS * 100)),
    "addressees": ("a.eml", lambda: mail(more=f"To: {', '.join(f'a{n}@b' for n in range(6000))}\n")),
    "attached bombs": (
        "a.eml",
        lambda: mail(parts=[(f"{n}.docx", docx(paragraph(f"{n} words of a bomb " * 4000))) for n in range(20)]),
    ),
    "attached words": ("a.eml", lambda: mail(parts=[(f"{n}.txt", f"word {n}".encode()) for n in range(300)])),
    "mails in mails": ("a.eml", partial(nested_mail, 40)),
    "packages in packages": ("winmail.dat", partial(nested_tnef, 100)),
    "files of a package": ("winmail.dat", lambda: message({0x1000: "words"}, *[file("a.txt", b"a word")] * 1500)),
    "properties of a package": ("winmail.dat", lambda: tnef(*[attribute(1, 0x9003, properties({0x1000: "a"}))] * 2000)),
    "documents that show themselves": ("a.docx", partial(shown_in_itself, 40)),
    "notes of an export": ("a.enex", partial(notes, 150)),
    "notes that do not end": ("a.enex", partial(literal, "<note>", 10_000, "<en-export>")),
    "empty files of a note": ("a.enex", partial(notes, 1, "<resource><data/><mime>image/png</mime></resource>" * 1500)),
    "entities of an export": ("a.enex", lambda: laughs().replace(b"<x>", b"<en-export><note><title>")),
    "appointments": ("a.ics", partial(calendar, "", 800)),
    "files of appointments": ("a.ics", partial(calendar, "ATTACH;ENCODING=BASE64:YSB3b3Jk\r\n", 1200)),
    "components in each other": ("a.ics", partial(literal, "BEGIN:VEVENT\r\n", 4000, "BEGIN:VCALENDAR\r\n", "X:1\r\n")),
    "a folded line": ("a.ics", partial(calendar, "DESCRIPTION:" + "a\r\n " * 12_000 + "\r\n", 1)),
    "a line of a contact": (
        "a.vcf",
        partial(literal, "=\n", 20_000, "BEGIN:VCARD\nFN;QUOTED-PRINTABLE:a", "\nEND:VCARD\n"),
    ),
    "files of a pdf": ("a.pdf", lambda: with_files("word", [(f"{n}.txt", f"word {n}") for n in range(300)])),
    "a file of a pdf many times": ("a.pdf", partial(with_files, "word", [("a.txt", "word")], repeated=1000)),
    "boxes in boxes": ("a.odt", partial(boxes, 50)),
    "shapes side by side": ("a.pptx", partial(shapes_side_by_side, 10_000)),
    "one formula in all cells": ("a.xlsx", partial(formulas, 20_000)),
    "spaces before a title": ("a.md", partial(literal, " ", 60_000, "---\ntitle: a", "b\nx: [\n---\ntext\n")),
    "names of attached files": ("a.eml", lambda: mail(parts=[(f"{'n' * 900}{n}.txt", b"word") for n in range(50)])),
}
