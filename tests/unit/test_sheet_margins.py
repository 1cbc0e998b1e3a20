"""Headers and footers of sheets, which people see on paper: their words follow the sheets once."""

import struct

import pytest

from kb.formats.extract import extract
from kb.formats.readers.sheet_extras import margin_lines
from tests.support.office import workbook
from tests.support.ole import ole
from tests.support.samples import zipped
from tests.unit.test_extract_sheets import ODS, old_workbook, record, words

E10 = pytest.mark.requirement("E-10")
ENDING = "\n\nHeaders and footers\n\n- Harbour Board\n- R&D draft\n"


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (
            '&L&"Arial,Bold"&12Harbour Board&C&K000000R&&D draft&RPage &P of &N',
            ["", "Harbour Board", "R&D draft", "Page  of "],
        ),
        ("&C&K01+034Plan&D&T&F&A&G", ["", "Plan"]),
        ("Plan &", ["Plan &"]),
        ("", []),
    ],
)
def test_a_header_of_excel_has_its_words_without_the_codes(written, lines):
    assert margin_lines(written) == lines


@E10
def test_headers_and_footers_of_an_excel_sheet_follow_it():
    header = "<headerFooter><oddHeader>&amp;LHarbour Board&amp;RPage &amp;P</oddHeader><oddFooter>&amp;CR&amp;&amp;D draft</oddFooter></headerFooter>"
    data = workbook(f"<row r='1'>{words('A1', 'x')}</row>", header)
    assert extract(data, "a.xlsx")[1].text == f"S\n\nx{ENDING}"


@E10
def test_headers_and_footers_of_an_opendocument_sheet_follow_it():
    text = "<style:{0}><text:p>{1}</text:p></style:{0}>"
    number = "Page <text:page-number>1</text:page-number> / <text:page-count>99</text:page-count>"
    parts = (
        text.format("header", "Harbour Board")
        + text.format("footer", "R&amp;D draft")
        + text.format("footer-left", number)
    )
    styles = f"<office:document-styles {ODS} xmlns:style='s'><office:master-styles><style:master-page>{parts}</style:master-page></office:master-styles></office:document-styles>"
    cell = "<table:table-cell office:value-type='string'><text:p>x</text:p></table:table-cell>"
    body = f"<office:spreadsheet><table:table table:name='S'><table:table-row>{cell}</table:table-row></table:table></office:spreadsheet>"
    content = f"<office:document-content {ODS}><office:body>{body}</office:body></office:document-content>"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    data = zipped({"mimetype": kind, "META-INF/manifest.xml": "<m/>", "content.xml": content, "styles.xml": styles})
    assert extract(data, "a.ods")[1].text == f"S\n\nx{ENDING}"


@E10
def test_headers_and_footers_of_an_old_excel_sheet_follow_it():
    def margin(kind, text):
        return record(kind, struct.pack("<HB", len(text), 1) + text.encode("utf-16-le"))

    margins = margin(0x14, "&LHarbour Board&R&P") + margin(0x15, "&CR&&D draft")
    data = old_workbook()
    end = data.rindex(record(0x0A))
    text = extract(ole({"Workbook": data[:end] + margins + data[end:]}), "a.xls")[1].text
    assert text.endswith(ENDING)
