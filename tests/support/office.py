"""Small Office files, put together from their parts."""

from __future__ import annotations

from tests.support.samples import zipped

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
ODF = "xmlns:office='o' xmlns:text='t' xmlns:table='b' xmlns:draw='d' xmlns:style='s' xmlns:presentation='p' xmlns:xlink='x'"


def package(main, parts, relations):
    """An Office file; `relations`: part -> {id: (kind, target)}."""
    entries = {"[Content_Types].xml": "<Types/>"}
    for part, related in ({"": {"r": ("officeDocument", main)}} | relations).items():
        folder, _, name = part.rpartition("/")
        rows = (
            f"<Relationship Id='{i}' Type='{RELATIONS}/{kind}' Target='/{to}'/>" for i, (kind, to) in related.items()
        )
        entries[f"{folder}/_rels/{name}.rels".lstrip("/")] = f"<Relationships>{''.join(rows)}</Relationships>"
    return zipped(entries | parts)


def word(body, parts=None, relations=None):
    """A Word document; `relations` of its main part: id -> (kind, target)."""
    main = f"<w:document xmlns:w='{WORD}' xmlns:r='{RELATIONS}' xmlns:a='{DRAWING}' xmlns:v='urn:schemas-microsoft-com:vml'><w:body>{body}</w:body></w:document>"
    return package(
        "word/document.xml", {"word/document.xml": main} | (parts or {}), {"word/document.xml": relations or {}}
    )


def paragraph(text, level=None, number="1", style=None, more=""):
    """A paragraph, of a list if it has a level."""
    listed = f"<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{number}'/></w:numPr>" if level is not None else ""
    styled = f"<w:pStyle w:val='{style}'/>" if style else ""
    return f"<w:p><w:pPr>{styled}{listed}{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def level(place, way, text, start=1, more=""):
    """How a level of a list counts."""
    return f"<w:lvl w:ilvl='{place}'><w:start w:val='{start}'/><w:numFmt w:val='{way}'/>{more}<w:lvlText w:val='{text}'/></w:lvl>"


def listed(body, *levels, lists="", styles=""):
    """A Word document with the list 1 of these levels; `lists` are more of them."""
    own = f"<w:abstractNum w:abstractNumId='0'>{''.join(levels)}</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>"
    parts = {
        "word/numbering.xml": f"<w:numbering xmlns:w='{WORD}'>{own}{lists}</w:numbering>",
        "word/styles.xml": f"<w:styles xmlns:w='{WORD}'>{styles}</w:styles>",
    }
    relations = {"n": ("numbering", "word/numbering.xml"), "s": ("styles", "word/styles.xml")}
    return word(body, parts, relations)


def workbook(rows, beside="", parts=None, relations=None, calculation=""):
    """A workbook of one sheet `S`; `relations` of the sheet: id -> (kind, target)."""
    main = f"<workbook xmlns='{SHEETS}' xmlns:r='{RELATIONS}'><sheets><sheet name='S' sheetId='1' r:id='s'/></sheets>{calculation}</workbook>"
    sheet = f"<worksheet xmlns='{SHEETS}' xmlns:r='{RELATIONS}'><sheetData>{rows}</sheetData>{beside}</worksheet>"
    return package(
        "xl/workbook.xml",
        {"xl/workbook.xml": main, "xl/worksheets/sheet1.xml": sheet} | (parts or {}),
        {
            "xl/workbook.xml": {"s": ("worksheet", "xl/worksheets/sheet1.xml")},
            "xl/worksheets/sheet1.xml": relations or {},
        },
    )


def opendocument(kind, body, styles="", **parts):
    """An OpenDocument file: a text, a presentation or a spreadsheet."""
    content = f"<office:document-content {ODF}>{styles}<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    return zipped({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content} | parts)


def book(chapters, *, manifest="", spine="", title="The book", dates="", **parts):
    """An EPUB book; `manifest` and `spine` are more of these."""
    items = "".join(f"<item id='{n}' href='text/{n}.xhtml' media-type='application/xhtml+xml'/>" for n in chapters)
    order = "".join(f"<itemref idref='{n}'/>" for n in sorted(chapters))
    opf = (
        f"<package xmlns='o' xmlns:dc='d'><metadata><dc:title>{title}</dc:title>{dates}</metadata>"
        f"<manifest>{items}{manifest}</manifest><spine>{order}{spine}</spine></package>"
    )
    container = "<container xmlns='c'><rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles></container>"
    pages = {f"OPS/text/{n}.xhtml": text for n, text in chapters.items()}
    entries = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "OPS/book.opf": opf}
    return zipped(entries | pages | parts)
