"""Small Office files, put together from their parts."""

from __future__ import annotations

from tests.support.samples import zipped

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
ODF = (
    "xmlns:office='o' xmlns:text='t' xmlns:table='b' xmlns:draw='d' xmlns:style='s' xmlns:presentation='p' xmlns:xlink='x'"
    " xmlns:svg='v' xmlns:chart='c' xmlns:dc='dc' xmlns:calcext='calcext'"
)


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


def position(place):
    """The position and size of a shape."""
    x, y, width, height = place
    return f"<a:xfrm><a:off x='{x}' y='{y}'/><a:ext cx='{width}' cy='{height}'/></a:xfrm>"


def shape(text, place=None, role=None):
    """A shape of a slide with a paragraph for each line; `role` are the attributes of its place in the layout."""
    kind = f"<p:ph {role}/>" if role else ""
    words = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    where = f"<p:spPr>{position(place) if place else ''}</p:spPr>"
    return f"<p:sp><p:nvSpPr><p:cNvPr/><p:nvPr>{kind}</p:nvPr></p:nvSpPr>{where}<p:txBody>{words}</p:txBody></p:sp>"


def slide(shapes, kind="sld", more=""):
    tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
    return f"<p:{kind} xmlns:p='p' xmlns:a='{DRAWING}' xmlns:r='r' xmlns:c='c' {more}>{tree}</p:{kind}>"


def presentation(slides, parts=None, relations=None, layout="", master=""):
    """A presentation; `relations` of each slide: id -> (kind, target)."""
    names = [f"ppt/slides/slide{number}.xml" for number in range(len(slides), 0, -1)]  # not in the order of the show
    order = "".join(f"<p:sldId id='{256 + number}' r:id='s{number}'/>" for number in range(len(slides)))
    main = f"<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst>{order}</p:sldIdLst></p:presentation>"
    templates = {"ppt/layout1.xml": layout, "ppt/master1.xml": master}
    related = {name: {"l": ("slideLayout", "ppt/layout1.xml")} | (relations or {}) for name in names}
    related["ppt/presentation.xml"] = {f"s{number}": ("slide", name) for number, name in enumerate(names)}
    related["ppt/layout1.xml"] = {"m": ("slideMaster", "ppt/master1.xml")}
    written = dict(zip(names, slides, strict=True)) | {name: text for name, text in templates.items() if text}
    return package("ppt/presentation.xml", {"ppt/presentation.xml": main} | written | (parts or {}), related)


def words(place, text):
    """A cell of a sheet that holds a text."""
    return f"<c r='{place}' t='inlineStr'><is><t>{text}</t></is></c>"


def workbook(sheets, beside="", parts=None, relations=None, calculation="", styles=""):
    """A workbook of the rows of a sheet `S`, or of several by name; `relations` of the first: id -> (kind, target)."""
    sheets = {"S": sheets} if isinstance(sheets, str) else sheets
    names = [f"xl/worksheets/sheet{number}.xml" for number in range(1, len(sheets) + 1)]
    listed = "".join(
        f"<sheet name='{name}' sheetId='{number}' r:id='s{number}'/>" for number, name in enumerate(sheets, 1)
    )
    main = f"<workbook xmlns='{SHEETS}' xmlns:r='{RELATIONS}'><sheets>{listed}</sheets>{calculation}</workbook>"
    own = {f"s{number}": ("worksheet", name) for number, name in enumerate(names, 1)} | {
        "t": ("styles", "xl/styles.xml")
    }
    files = {"xl/workbook.xml": main, "xl/styles.xml": f"<styleSheet xmlns='{SHEETS}'>{styles}</styleSheet>"}
    files |= {
        name: f"<worksheet xmlns='{SHEETS}' xmlns:r='{RELATIONS}'><sheetData>{rows}</sheetData>{beside}</worksheet>"
        for name, rows in zip(names, sheets.values(), strict=True)
    }
    return package(
        "xl/workbook.xml", files | (parts or {}), {"xl/workbook.xml": own, names[0]: relations or {}} if names else {}
    )


def opendocument(kind, body, styles="", **parts):
    """An OpenDocument file: a text, a presentation or a spreadsheet."""
    entries = {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "META-INF/manifest.xml": "<m/>"}
    return zipped(entries | {"content.xml": document_content(kind, body, styles)} | parts)


def document_content(kind, body, styles=""):
    """The content of an OpenDocument file, or of an object in one."""
    body = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    return f"<office:document-content {ODF}>{styles}{body}</office:document-content>"


def document_styles(pages):
    """The styles of an OpenDocument file with these master pages."""
    return (
        f"<office:document-styles {ODF}><office:master-styles>{pages}</office:master-styles></office:document-styles>"
    )


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
