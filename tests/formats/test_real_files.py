"""Real files, as people have them."""

import pytest

from kb.api.errors import Unreadable
from kb.formats.extract import extract

pytestmark = pytest.mark.requirement("E-10")


@pytest.fixture
def files(test_data):
    return test_data / "files"


def read(path):
    doc_type, extracted = extract(path.read_bytes(), path.name)
    assert "".join(extracted.text[part.start : part.end] for part in extracted.sections) == extracted.text
    return doc_type, extracted


@pytest.mark.parametrize(
    ("name", "doc_type", "title", "phrases"),
    [
        ("test.pdf", "pdf", None, ["three reasons confirming its general", "conversation-centric computation"]),
        ("RECEIPT-2024-TXN-98765_retail_purchase.pdf", "pdf", "TECHMART ELECTRONICS", ["Member Discount (15%)-$84.00"]),
        ("REPAIR-2022-INV-001_multipage.pdf", "pdf", None, ["Policy # POL-2022-555", "Bruce Wayne"]),
        ("test.docx", "docx", "AutoGen: Enabling Next-Gen LLM", ["1 | 2 | 3 | 4 | 5 | 6\n7 | 8"]),
        ("test_with_comment.docx", "docx", "AutoGen", ["- Unknown Author: This is a test comment. 12df-321a"]),
        ("equations.docx", "docx", None, ["sin θ=(mλ)/a", "2.2×10^(-4)", "sin 45.0^∘"]),
        ("rlink.docx", "docx", None, ["Testing Linked Images"]),
        ("test_blog.html", "html", "Does Model and Inference Parameter Matter", ["- gpt-4, the state of the art"]),
        ("test_wikipedia.html", "html", "Microsoft - Wikipedia", ["2005 | 39,788 | 12,254 | 70,815 | 61,000"]),
        ("test_serp.html", "html", "Microsoft wikipedia - Search", ["headquartered in Redmond, Washington"]),
        ("test_rss.xml", "xml", "The Official Microsoft Blog", ["creator: Frank X. Shaw", "\nCopilot momentum\n"]),
        (
            "test.pptx",
            "pptx",
            "AutoGen: Enabling",
            ["7 | 8 | 9 | 1b92", "Comment 2:\n- Sub comment 2", "2002 | 2002\n"],
        ),
        ("test.xlsx", "xlsx", None, ["Sheet1\n\nAlpha | Beta | Gamma | Delta\n89 | 82 | 100 | 12\n"]),
        ("test.epub", "epub", "Test EPUB Document", ["- A bullet point\n", "This is a blockquote for testing"]),
        (
            "test_outlook_msg.msg",
            "msg",
            "Test Email",
            ["To: test.recipient@example.com", "This is the body of the test"],
        ),
        ("test_mskanji.csv", "csv", None, ["名前 | 年齢 | 住所\n佐藤太郎 | 30 | 東京\n", "髙橋淳"]),
        ("test.json", "json", None, ['"5b64c88c-b3c3-4510-bcb8-da0b200602d8": "uuid_key"']),
        ("test_notebook.ipynb", "notebook", "Test Notebook", ["# comment in code\nprint(42)\n\n42\n"]),
        ("SOURCE.md", "markdown", None, ["microsoft/markitdown"]),
    ],
)
def test_a_real_file_is_read(files, name, doc_type, title, phrases):
    found, extracted = read(files / name)
    assert found == doc_type
    assert (extracted.title or "").startswith(title or "")
    assert bool(extracted.title) == bool(title)
    assert [phrase for phrase in phrases if phrase not in extracted.text] == []


def test_a_real_scan_fails_with_the_reason(files):
    with pytest.raises(Unreadable, match="its 3 pages have only images"):
        read(files / "MEDRPT-2024-PAT-3847_medical_report_scan.pdf")


def test_slides_and_sheets_are_places_in_a_real_file(files):
    assert [section.page for section in read(files / "test.pptx")[1].sections] == [1, 2, 3, 3, 4, 5, 6]
    assert read(files / "test.xlsx")[1].sections[1].heading == ("Sheet1", "Alpha | Beta | Gamma | Delta")


def test_the_sections_of_a_real_page_follow_its_headings(files):
    headings = [section.heading for section in read(files / "test_wikipedia.html")[1].sections]
    assert ("Microsoft", "History", "1972–1985: Founding") in headings


def test_pages_of_a_real_pdf_are_numbered(files):
    assert [section.page for section in read(files / "REPAIR-2022-INV-001_multipage.pdf")[1].sections] == [1, 2, 3]
