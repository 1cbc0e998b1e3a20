"""What a number format shows around a number is in the text: 5% is not 0.05 for anyone who looks at the sheet."""

import pytest

from kb.formats.extract import extract
from kb.formats.text.units import unit_of_format, unit_of_text
from tests.support.office import SHEETS, workbook
from tests.unit.test_extract_sheets import spreadsheet

E10 = pytest.mark.requirement("E-10")


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("0.00%", 0.0525, "5.25%"),
        ("0%", 0.07, "7%"),
        ('"$"#,##0.00_);[Red]\\("$"#,##0.00\\)', -1188.44, "-$1188.44"),
        ("#,##0.00\\ [$€-407]", 12.5, "12.5 €"),
        ('_-* #,##0.00\\ "kr."_-;-* #,##0.00\\ "kr."_-', 3, "3 kr."),
        ('0" kg"', 12, "12 kg"),
        ('"Boat "0', 7, "Boat 7"),
        ('"B-"0', 7, "B-7"),
        ('General" m²"', 0.1, "0.1 m²"),
        ("[Blue]0.0\\ \\l", 2, "2 l"),
        ('0" kg"', 1e15, "1000000000000000 kg"),
        ('0.000000" kg"', 0.00001, "0.00001 kg"),
    ],
)
def test_a_number_has_what_its_format_shows_around_it(code, value, shown):
    assert unit_of_format(code).around(value) == shown


@pytest.mark.parametrize(
    "code",
    [
        "General",
        "",
        "0.00",
        "#,##0",
        "yyyy\\-mm\\-dd",
        "[h]:mm",
        "# ?/?",
        "0.00E+00",
        "@",
        "(0)",
        "000\\-00\\-0000",
        '"closed"',
        "[>100]0%",
        '"a',
        '0.0,,"M"',
        '#,##0,"k"',
        '#,##0,.0"k"',
    ],
)
def test_a_format_that_shows_only_the_number_or_no_plain_one_changes_nothing(code):
    assert unit_of_format(code) is None


@E10
def test_numbers_of_an_excel_sheet_have_their_units():
    formats = "<numFmts><numFmt numFmtId='164' formatCode='0.0&quot; kg&quot;'/></numFmts>"
    styles = f"<styleSheet xmlns='{SHEETS}'>{formats}<cellXfs><xf numFmtId='0'/><xf numFmtId='9'/><xf numFmtId='164'/></cellXfs></styleSheet>"
    cells = "<c r='A1' s='1'><v>0.15</v></c><c r='B1' s='2'><f>6*2</f><v>12</v></c><c r='C1'><v>0.15</v></c>"
    parts = {"xl/styles.xml": styles, "xl/_rels/workbook.xml.rels": ""}
    relation = "<Relationship Id='{}' Type='x/{}' Target='/xl/{}'/>"
    own = relation.format("s", "worksheet", "worksheets/sheet1.xml") + relation.format("t", "styles", "styles.xml")
    parts["xl/_rels/workbook.xml.rels"] = f"<Relationships>{own}</Relationships>"
    text = "<c r='A2' s='1' t='inlineStr'><is><t>word</t></is></c><c r='B2' s='1'/>"
    data = workbook(f"<row r='1'>{cells}</row><row r='2'>{text}</row>", parts=parts)
    assert extract(data, "a.xlsx")[1].text == "S\n\n15% | 12 kg | 0.15\nword\n"


@E10
def test_numbers_of_an_opendocument_sheet_have_their_units():
    cell = "<table:table-cell office:value-type='{}' office:value='{}' {}><text:p>{}</text:p></table:table-cell>"
    cells = cell.format("percentage", "0.126", "table:number-columns-repeated='2'", "13%")
    cells += cell.format("currency", "-2711.25", "office:currency='EUR'", "-2.711,25 €")
    cells += cell.format("float", "12", "", "12 kg") + cell.format("float", "1234.5", "", "1,234.50")
    cells += cell.format("float", "12345", "", "1.23E+04") + cell.format("float", "3.5", "", "3 ft 6 in")
    text = extract(spreadsheet(f"<table:table-row>{cells}</table:table-row>"), "a.ods")[1].text
    assert text == "S\n\n12.6% | 12.6% | -2711.25 € | 12 kg | 1234.5 | 12345 | 3 ft 6 in\n"


@pytest.mark.parametrize(
    ("shown", "value", "told"),
    [
        ("13%", 0.126, "12.6%"),
        ("1,000 kg", 999.6, "999.6 kg"),
        ("12,34,567 kg", 1234567, "1234567 kg"),
        ("1\xa0234,6 kg", 1234.56, "1234.56 kg"),
        ("0,5 kg", 0.45, "0.45 kg"),
        ("\N{MINUS SIGN}5 °C", -5, "-5 °C"),
        ("1.5M", 1500000, None),
        ("12k", 12345, None),
        ("1.234 T€", 1234000, None),
        ("0 kg", 0.0004, "0.0004 kg"),
        (f"{'9' * 5000}.{'9' * 5000} kg", 9, None),
    ],
)
def test_a_text_that_shows_another_number_tells_no_unit(shown, value, told):
    unit = unit_of_text(shown, value, is_share=shown.endswith("%"))
    assert (unit and unit.around(value)) == told


@E10
def test_thousands_and_millions_are_told_as_they_are_shown_or_in_full():
    cell = "<table:table-cell office:value-type='float' office:value='1500000'><text:p>1.5M</text:p></table:table-cell>"
    assert extract(spreadsheet(f"<table:table-row>{cell}</table:table-row>"), "a.ods")[1].text == "S\n\n1.5M\n"
