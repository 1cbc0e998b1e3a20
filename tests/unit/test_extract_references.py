"""Exports of Raindrop and Zotero: each row is a document."""

import csv
import io

from kb.formats.extract import extract

RAINDROP = ["id", "title", "note", "excerpt", "url", "folder", "tags", "created", "cover", "highlights", "favorite"]
ZOTERO = [
    "Key",
    "Item Type",
    "Publication Year",
    "Author",
    "Title",
    "Publication Title",
    "DOI",
    "Url",
    "Abstract Note",
    "Date",
    "Manual Tags",
    "Automatic Tags",
]


def table(header, *rows):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, header, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def test_each_bookmark_is_a_document_with_address_tags_and_date():
    row = {
        "id": "7",
        "title": "Tide: tables",
        "note": "For May,\nand June",
        "excerpt": "High water",
        "url": "https://example.org/t",
        "folder": "Boat",
        "tags": "sea, tides",
        "created": "2026-05-01T10:00:00.000Z",
    }
    doc_type, export = extract(
        table(RAINDROP, row, row | {"id": "8", "title": "Knots", "created": "2026-04-01T00:00:00Z"}), "a.csv"
    )
    assert (doc_type, export.title, export.text) == ("csv", "Bookmarks", "2 bookmarks\n\nKnots\nTide: tables\n")
    assert [each.filename for each in export.attachments] == ["Knots 8.md", "Tide tables 7.md"]
    _, bookmark = extract(export.attachments[1].data, export.attachments[1].filename)
    assert (bookmark.title, bookmark.tags, bookmark.date[:10]) == ("Tide: tables", ("sea", "tides"), "2026-05-01")
    for said in ("https://example.org/t", "Folder: Boat", "High water", "For May,\nand June"):
        assert said in bookmark.text


def test_each_source_is_a_document_with_its_authors_and_abstract():
    row = {
        "Key": "ABCD1234",
        "Item Type": "journalArticle",
        "Author": "Doe, Ann; Roe, Bob",
        "Title": 'On "ropes"',
        "Publication Title": "Knots",
        "DOI": "10.1/x",
        "Abstract Note": "Ropes hold.",
        "Date": "2020-03-01",
        "Manual Tags": "rope; knot",
        "Automatic Tags": "sea",
    }
    [source] = extract(table(ZOTERO, row), "library.csv")[1].attachments
    _, read = extract(source.data, source.filename)
    assert (read.title, read.tags, read.date) == ('On "ropes"', ("rope", "knot", "sea"), "2020-03-01")
    for said in ("By Doe, Ann; Roe, Bob", "In Knots", "DOI: 10.1/x", "Ropes hold."):
        assert said in read.text


def test_a_large_export_becomes_exports_in_the_order_of_time():
    rows = [
        {
            "id": str(number),
            "title": f"Page {number}",
            "url": "https://example.org",
            "created": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        }
        for number in range(250)
    ]
    _, export = extract(table(RAINDROP, *reversed(rows)), "a.csv")
    assert [each.filename for each in export.attachments] == ["00001-00100.csv", "00101-00200.csv", "00201-00300.csv"]
    _, last = extract(export.attachments[2].data, "b.csv")
    assert [each.filename for each in last.attachments][::49] == ["Page 200 200.md", "Page 249 249.md"]


def test_other_tables_stay_tables():
    assert extract(b"id,title,url\n1,a,b\n", "a.csv")[1].attachments == ()
