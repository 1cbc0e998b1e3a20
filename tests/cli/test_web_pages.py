"""Web pages, fetched by the command line: kb keeps the main text, and drops menus and other parts around it."""

from __future__ import annotations

import io
import re
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import run
from threading import Thread

import pytest

from kb.formats.readers import html
from kb_cli.sync import web_fetch
from kb_cli.sync.article import decode_markup, readable
from tests.hostile.files import docx, paragraph
from tests.support.pdf import pdf
from tests.support.rare_cases import mostly_rare
from tests.support.web_pages import AROUND, CAME_FOR, page

ADDRESS = "https://tides.example/page"


class Site(BaseHTTPRequestHandler):
    """Answers each path with a type and a content."""

    def __init__(self, answers, *arguments):
        self.answers = answers
        super().__init__(*arguments)

    def do_GET(self):
        name = self.path.removeprefix("/")
        if name not in self.answers:
            return self.send_error(404)
        kind, content = self.answers[name]
        if isinstance(kind, int):
            self.send_response(kind)
            self.send_header("Location", content)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return self.wfile.write(content)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def site(tag):
    """What a web server answers, and its address; pages of different tests have different ones."""
    answers = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, answers)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield answers, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def read(markup):
    """What kb reads of a page: its text with spaces as one, and its headings."""
    extracted = html.read(markup.encode())
    headings = {heading for section in extracted.sections for heading in section.heading}
    return spaced(f"{extracted.title}\n{extracted.text}"), headings


def spaced(text):
    return re.sub(r"[ \t\xa0]+", " ", text)


def is_in(expected, text, headings):
    return expected[2:] in headings if expected.startswith("# ") else spaced(expected) in text


def test_what_people_come_for_stays_and_what_stands_around_it_goes():
    lost, left = [], []
    for name in CAME_FOR:
        markup = decode_markup(page(name))
        text, headings = read(readable(markup, ADDRESS) or markup)
        lost += [(name, each) for each in CAME_FOR[name] if not is_in(each, text, headings)]
        left += [(name, each) for each in AROUND[name] if each in text]
    assert lost == []
    assert len(left) <= 0.1 * sum(map(len, AROUND.values())), left


@pytest.mark.parametrize("stray", [b"\xe4", b"\xc3", b"\x93"])
def test_a_stray_byte_in_a_page_costs_no_other_character(stray):
    content = page("german")
    beginning, body = content.split(b"<p>", 1)
    assert decode_markup(beginning + b"<p>" + stray + body) == f"{beginning.decode()}<p>\ufffd{body.decode()}"


def test_a_web_page_goes_in_by_its_address_and_is_refreshed_in_its_place(kb, site, tag):
    answers, address = site
    name, kind = f"{tag}/tides", "application/octet-stream"
    page = f"{address}/{name}"
    answers[name] = (kind, f"<html><title>Tides</title><p>High water of {tag} at six.</p></html>".encode())
    [first] = kb.json("add", page, "--wait")
    document = kb.json("get", first["document_id"])
    assert (document["source_path"], document["title"], document["doc_type"]) == (page, "Tides", "html")
    answers[name] = (kind, f"<html><title>Tides</title><p>High water of {tag} at seven.</p></html>".encode())
    [again] = kb.json("add", page, "--wait")
    assert again["document_id"] == first["document_id"]
    assert "at seven" in kb("get", first["document_id"], "--text").stdout
    missing = kb("add", f"{address}/{tag}/none", page.replace("http://", "http://me:secret@"), "--wait")
    assert (missing.returncode, missing.stderr) == (1, f"kb: {address}/{tag}/none: the server answered 404\n")
    assert missing.stdout == "2 files: 1 already existed, 1 failed\n"
    assert len(kb.json("list", "--under", f"{address}/{tag}")["documents"]) == 1


@pytest.mark.rare
def test_a_page_is_one_document_under_all_its_addresses(kb, site, tag):
    answers, address = site
    content = f"<html><head><link rel=canonical href='/{tag}'></head><p>High water of {tag} at six.</html>".encode()
    queries = ("", "?utm_source=n&fbclid=1", "?id=1", "?id=2")
    answers |= {f"{tag}{query}": ("text/html", content + query.encode()) for query in queries}
    answers |= {f"{tag}/": (301, f"/{tag}"), f"old/{tag}": (308, f"/{tag}"), f"in/{tag}": (302, f"/{tag}")}
    page = f"{address}/{tag}"
    same = (
        page,
        f"{page}#x",
        f"{page}?utm_source=n&fbclid=1",
        f"{page}/",
        page.replace("http:", "HTTP:"),
        f"{address}/old/{tag}",
    )
    others = (f"{page}?id=1", f"{page}?id=2", f"{address}/in/{tag}")
    items = kb.json("add", *same, *others, "--whole", "--wait")
    added = dict(zip((*same, *others), items, strict=True))
    assert len({added[each]["document_id"] for each in same}) == 1
    assert len({each["document_id"] for each in added.values()}) == 4
    assert added[f"{page}/"]["source_path"] == page
    assert kb.json("get", "--path", f"{page}?utm_medium=mail#y")["id"] == added[page]["document_id"]
    note = kb.json("addnote", f"[[{page}?utm_source=m|tides]] and {page}/#z", "--wait")["document_id"]
    assert {link["document_id"] for link in kb.json("links", note)["links"]} == {added[page]["document_id"]}


def test_a_page_has_its_title_author_site_and_date(kb, site, tag):
    answers, address = site
    answers[tag] = ("text/html; charset=utf-8", page("news"))
    [added] = kb.json("add", f"{address}/{tag}", "--wait")
    document = kb.json("get", added["document_id"])
    assert document["title"] == "Harbour bridge to close for nine months of repairs"
    assert document["source_path"] == f"{address}/{tag}"
    assert document["date"] == "2026-03-14"
    text = kb("get", added["document_id"], "--text").stdout
    assert "Maren Oldfield · The Coastal Courier · 2026-03-14\n" in text
    assert text.count("Harbour bridge to close") == 1
    found = kb.json("search", "Tomas Weir deck", "--fts-only", "--path", f"{address}/{tag}")["results"]
    assert "Tomas Weir" in found[0]["text"]
    assert found[0]["place"]["heading"][-1] == "Why not at night"


@pytest.mark.rare
def test_all_of_a_page_is_kept_if_asked_and_the_same_address_is_the_same_document(kb, site, tag):
    answers, address = site
    answers[tag] = ("text/html", page("docs"))
    [first] = kb.json("add", f"{address}/{tag}", "--wait")
    assert "Quickstart for the impatient" not in kb("get", first["document_id"], "--text").stdout
    [whole] = kb.json("add", f"{address}/{tag}", "--whole", "--wait")
    assert whole["document_id"] == first["document_id"]
    assert "Quickstart for the impatient" in kb("get", first["document_id"], "--text").stdout
    assert kb("add", "nowhere.md", "--whole").returncode == 2


@pytest.mark.rare
def test_of_a_page_with_no_text_to_tell_all_is_kept_and_said_so(kb, site, tag):
    answers, address = site
    answers[tag] = ("text/html; charset=utf-8", b"<html><body><p>Ring the bell at the yard gate.</p></body></html>")
    added = kb("add", f"{address}/{tag}", "--wait")
    assert added.stderr == (
        f"kb: {address}/{tag}: kb keeps the whole page, including menus: kb could not extract its main text\n"
    )
    assert added.stdout == "1 file: 1 added\n"


def test_a_page_with_hardly_any_text_loses_its_menu_alone():
    text, _ = read(readable(decode_markup(page("thin")), ADDRESS))
    assert "Ring the bell at the yard gate." in text
    assert "Fletcher's Hardware, Mill Lane 4" in text
    assert "Contact" not in text


@pytest.mark.parametrize(
    ("marked", "kept"),
    [
        ("<article><h1>Kiln</h1><p>It fires at nine.</p></article>", "It fires at nine."),
        ("<div><div><article><nav><a href=/n>Next</a></nav><p>Short.</p></article></div></div>", "Short."),
        ("<main><p>Only this.</p></main>", "Only this."),
        ("<div role=main><p>Only this.</p></div>", "Only this."),
        ("<article><p>One.</p></article><article><p>Two.</p></article>", "One.\n\nTwo."),
        ("</body></html><article><p>Behind the end.</p></article>", "Behind the end."),
        ("<main><p>Shut till May.</p><article><p>Teaser.</p></article></main>", "Shut till May.\n\nTeaser."),
        ("<main><p>Shut till May.</p></main><aside><article><p>Teaser.</p></article></aside>", "Shut till May."),
        ("<main><p>Shut till May.</p></main><footer><article><p>Teaser.</p></article></footer>", "Shut till May."),
        ("<main><article><p>Short.</p></article><aside><p>Related.</p></aside></main>", "Short."),
    ],
)
def test_what_a_page_marks_as_its_article_is_kept_however_short(marked, kept):
    around = "<nav><a href=/>Home</a></nav><ul><li><a href=/a>About</a></ul>", "<footer>Imprint of the site</footer>"
    text, _ = read(readable(f"<html><body>{around[0]}{marked}{around[1]}</body></html>", ADDRESS))
    assert kept in text
    assert not [each for each in ("Home", "About", "Next", "Imprint") if each in text]


def test_a_list_of_links_that_is_all_of_a_page_is_no_menu():
    assert readable("<html><body><ul><li><a href=/a>About</a></ul></body></html>", ADDRESS) is None


@pytest.mark.parametrize("declared", mostly_rare(["", "; charset=windows-1251"]))
def test_a_page_is_read_in_the_encoding_that_its_server_names_or_it_declares(kb, site, tag, declared):
    answers, address = site
    meta = "" if declared else '<meta charset="windows-1251">'
    words = "Мост через гавань закрывается на девять месяцев. Пешеходов перевезёт паром. " * 5
    markup = (
        f"<html><head>{meta}<title>Мост</title></head><body><nav>Спорт</nav><article><p>{words}</p></article></body>"
    )
    answers[tag] = (f"text/html{declared}", markup.encode("windows-1251"))
    answers[f"{tag}.txt"] = (f"text/plain{declared}", words.encode("windows-1251"))
    pages = kb.json("add", f"{address}/{tag}", f"{address}/{tag}.txt", "--wait")
    for each in pages:
        text = kb("get", each["document_id"], "--text").stdout
        assert "Пешеходов перевезёт паром" in text
        assert "Спорт" not in text


@pytest.mark.parametrize("named", mostly_rare(["; charset=ISO-8859-1", ""]))
def test_a_page_in_what_western_pages_call_latin_1_has_its_quotes_and_dashes(kb, site, tag, named):
    answers, address = site
    words = "The harbour \u2018opens\u2019 at six \u2013 the caf\u00e9 \u201cnever\u201d. " * 10
    markup = f'<html><head><meta charset="iso-8859-1"></head><body><article><p>{words}</p></article></body></html>'
    answers[tag] = (f"text/html{named}", markup.encode("cp1252"))
    [added] = kb.json("add", f"{address}/{tag}", "--wait")
    assert words.strip() in kb("get", added["document_id"], "--text").stdout


@pytest.mark.rare
def test_what_is_in_utf_8_or_no_text_stays_so_whatever_its_server_names(kb, site, tag):
    answers, address = site
    kind = "text/plain; charset=ISO-8859-1"
    answers[f"{tag}.md"] = (kind, f"# Kähne\n\nDie „Möwe“ von {tag}.\n".encode())
    answers[f"{tag}.docx"] = (kind, docx(paragraph(f"The keel of {tag}.")))
    answers[f"{tag}.txt"] = ("text/plain; charset=utf-8", f"Die „Möwe“ von {tag}.\n".encode())
    added = kb.json("add", *(f"{address}/{name}" for name in answers), "--wait")
    for each, (_, content) in zip(added, answers.values(), strict=True):
        kb("get", each["document_id"], "--file", "kept")
        assert (kb.folder / "kept").read_bytes() == content
        (kb.folder / "kept").unlink()
    assert f"The keel of {tag}." in kb("get", added[1]["document_id"], "--text").stdout
    assert f"Die „Möwe“ von {tag}." in kb("get", added[0]["document_id"], "--text").stdout


@pytest.mark.rare
def test_what_is_no_page_is_kept_as_it_is(kb, site, tag):
    answers, address = site
    answers[f"{tag}.pdf"] = ("application/pdf", pdf(f"The keel of {tag}."))
    answers[f"{tag}.md"] = ("text/markdown", f"# Keels\n\nOf {tag}.\n".encode())
    added = kb.json("add", f"{address}/{tag}.pdf", f"{address}/{tag}.md", "--wait")
    documents = [kb.json("get", each["document_id"]) for each in added]
    assert [each["doc_type"] for each in documents] == ["pdf", "markdown"]
    kb("get", documents[1]["id"], "--file", "keels.md")
    assert (kb.folder / "keels.md").read_bytes() == answers[f"{tag}.md"][1]


@pytest.mark.rare
def test_a_page_that_its_parser_gives_up_on_is_kept_whole(kb, site, tag):
    answers, address = site
    answers[tag] = ("text/html", b"<html><body>" + b"<div>" * 1500 + f"<p>The keel of {tag}.".encode())
    added = kb("add", f"{address}/{tag}", "--wait")
    assert "kb keeps the whole page" in added.stderr
    assert (added.returncode, added.stdout) == (0, "1 file: 1 added\n")


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", [b"<a href=x>link</a> ", b"<tr><td>a<td>b", b"<p>12.03.2024 by Anna Bell</p>", b"<b>x"]
)
def test_a_page_of_ten_megabytes_takes_no_more_than_it_may(piece):
    content = io.BytesIO(b"<html><body>" + piece * (10_000_000 // len(piece)))
    fetched = web_fetch.readable(web_fetch.Fetched("page.html", content), ADDRESS)
    assert (fetched.content, fetched.why_whole) == (content, "kb could not extract its main text")


def test_the_library_is_not_loaded_before_a_page_is_there():
    code = "import sys, kb_cli.main, kb_cli.commands.add; print('trafilatura' in sys.modules or 'lxml' in sys.modules)"
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
