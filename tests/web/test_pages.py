"""The web interface without scripts: its answers, and who gets them."""

from __future__ import annotations

import json
import re
import socket
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html import unescape
from io import BytesIO
from urllib.parse import urljoin, urlsplit

import apsw
import httpx2
import pytest
from docx import Document
from lxml import html

from kb_web.pages import assets, waiting
from tests.conftest import ALL_APPS, KEY
from tests.formats.test_exports import ZOTERO, claude, table
from tests.support.eventually import eventually
from tests.support.pdf import pdf
from tests.web.conftest import MAIL, pages
from tests.web.proxy import proxied

PAGE = {"Accept": "text/html"}
BOOKS = table(
    ZOTERO, *({"Key": key, "Item Type": "book", "Title": f"Knots of the {key}"} for key in ("north", "south"))
)


class Reader:
    """Follows links and sends forms, as a browser without script."""

    def __init__(self, url):
        self.http = httpx2.Client(follow_redirects=True, headers=PAGE)
        self.open(url)

    def open(self, place):
        self._take(self.http.get(place))

    def _take(self, answer):
        self.answer = answer
        self.page = html.fromstring(answer.text, base_url=str(answer.url))
        self.page.make_links_absolute()

    @property
    def text(self):
        return self.page.text_content()

    def click(self, words):
        [link, *_] = [each for each in self.page.iter("a") if words in each.text_content()]
        self.open(link.get("href"))

    def submit(self, action, **values):
        forms = [each for each in self.page.forms if re.search(action, each.action or "")]
        [form, *_] = [each for each in forms if all(name in each.fields for name in values)]
        for name, value in values.items():
            form.fields[name] = value
        fields = form.form_values()
        if form.method == "GET":
            self._take(self.http.get(form.action, params=fields))
        elif form.get("enctype") == "multipart/form-data":
            self._take(self.http.post(form.action, files=parts(fields)))
        else:
            self._take(self.http.post(form.action, data=dict(fields)))


def parts(fields):
    """The fields of a form as its parts."""
    return [(name, (None, value.encode())) for name, value in fields]


@pytest.mark.web
def test_everything_is_found_read_and_written_without_script(read, site):
    reader = read(f"{site.url}/")
    reader.submit("/$", q="carburettor")
    reader.click("Boat")
    assert reader.page.xpath("//div[contains(@class, 'text')]//mark")
    assert not reader.page.xpath("//*[contains(@class, 'hit')]"), "the passage is the whole note"
    reader.click("Write")
    reader.submit("/new$", text="Written without script.", title="Plain")
    assert "Written without script." in reader.text
    reader.click("Edit")
    reader.submit("/edit$", text="Changed without script.")
    assert "Changed without script." in reader.text
    reader.click("History")
    reader.submit("/revert$")
    assert "Written without script." in reader.text
    reader.submit("/tags$", add="plain, quiet")
    assert {each.text for each in reader.page.xpath("//*[@class='tag']/a")} == {"plain", "quiet"}
    reader.submit("/delete$")
    assert "Plain" in reader.text
    reader.submit("/restore$")
    assert "Written without script." in reader.text


@pytest.mark.web
def test_a_new_note_that_kb_knows_says_so_and_leads_to_similar_ones(read, site):
    reader = read(f"{site.url}/new")
    reader.submit("/new$", text="The Kestrel sails on Friday at noon from pier four.")
    assert not reader.page.xpath("//*[contains(@class, 'toast notice')]")
    first = reader.answer.url.path
    reader.open(f"{site.url}/new")
    reader.submit("/new$", text="The Kestrel sails on Friday at nine from pier four.")
    assert "Similar notes: The Kestrel sails on Friday at noon from pier four." in reader.text
    reader.click("at noon from pier four")
    assert reader.answer.url.path == first
    reader.open(f"{site.url}/new")
    reader.submit("/new$", text="The Kestrel sails on Friday at noon from pier four.")
    assert reader.answer.url.path == first
    assert "kb already had this text. Similar notes: The Kestrel sails on Friday at nine" in reader.text


@pytest.mark.web
def test_a_file_that_kb_has_already_is_named_as_such(read, site):
    reader = read(f"{site.url}/add")
    for known in (0, 1):
        reader.open(f"{site.url}/add")
        data = {"token": reader.page.xpath("//form[contains(@class, 'adding')]//input[@name='token']/@value")[0]}
        reader.http.post(f"{site.url}/add", data=data, files={"file": ("cleats.txt", b"Cleats hold the sheets.")})
        newest = eventually(
            "the file is read",
            lambda: reader.open(f"{site.url}/jobs") or reader.page.xpath("//ul[contains(@class, 'jobs')]/li")[0],
            until=lambda row: "done" in row.get("class"),
        )
        assert ("kb already had this file." in newest.text_content()) == bool(known)


@pytest.mark.web
@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("明天的天气预报说,有雨。", "天气", ["天气"]),
        ("黒猫が好きです。 Catalogue of cats.", "猫 cat", ["猫", "cats"]),
        ("หนังสือภาษาไทยเล่มนี้ดี", "ภาษา", ["ภาษา"]),
        ("A lamp, and a lampshade.", "lamp", ["lamp"]),
    ],
)
def test_the_page_of_a_document_marks_whole_words_and_parts_of_what_has_no_spaces(read, site, text, query, marked):
    reader = read(f"{site.url}/new")
    reader.submit("/new$", text=text, title="Marks")
    reader.open(f"{str(reader.answer.url).partition('?')[0]}?chunk=0&q={query}")
    assert [each.text for each in reader.page.xpath("//div[contains(@class, 'text')]//mark")] == marked


@pytest.mark.web
def test_programs_are_told_in_json_that_nothing_is_served_there_and_people_on_a_page(site):
    problem = httpx2.get(f"{site.url}/nowhere")
    assert problem.headers["content-type"] == "application/problem+json"
    assert problem.json()["detail"] == "Nothing is served at /nowhere."
    page = httpx2.get(f"{site.url}/nowhere", headers=PAGE)
    assert page.status_code == 404
    assert "Page not found" in page.text
    assert httpx2.get(f"{site.url}/api/v1/nowhere", headers=PAGE).headers["content-type"] == "application/problem+json"


@pytest.mark.web
def test_a_form_counts_only_with_the_token_of_its_page(read, site):
    note = {"text": "Forged."}
    assert httpx2.post(f"{site.url}/new", data=note).status_code == 403
    assert httpx2.post(f"{site.url}/new", data=note | {"token": "0" * 64}).status_code == 403
    reader, other = read(f"{site.url}/new"), read(f"{site.url}/new")
    token = reader.page.xpath("//body/@data-token")[0]
    assert other.http.post(f"{site.url}/new", data=note | {"token": token}).status_code == 403


@pytest.mark.web
def test_pages_of_other_sites_may_not_send_forms(site):
    answer = httpx2.post(f"{site.url}/new", data={"text": "x"}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert httpx2.get(f"{site.url}/", headers={"Host": "evil.example"}).status_code == 421


def test_nothing_is_shown_without_the_key(server):
    for place in pages(defaultdict(lambda: 1)).values():
        answer = httpx2.get(f"{server.url}/{place}", headers=PAGE)
        assert answer.status_code == (
            404 if place == "nowhere" else 200 if place == "sign-in" or place.startswith("help/") else 401
        ), place
    for place in ("events", "jobs/1", "d/1/file"):
        assert httpx2.get(f"{server.url}/{place}").status_code == 401


def test_the_one_who_signs_in_gets_another_session_whose_forms_are_others(read, server):
    reader = read(f"{server.url}/sign-in")
    before, token = reader.http.cookies["kb_session"], reader.page.xpath("//body/@data-token")[0]
    reader.submit("/sign-in$", key=KEY)
    assert reader.http.cookies["kb_session"] != before
    assert reader.page.xpath("//body/@data-token")[0] != token
    reader.submit("/sign-out$")
    assert "Key" in reader.text
    assert httpx2.get(f"{server.url}/documents", headers=PAGE, cookies={"kb_session": before}).status_code == 401


def test_a_cookie_is_sent_back_over_tls_alone_where_there_is_tls(server):
    plain = httpx2.get(f"{server.url}/sign-in").headers["set-cookie"]
    assert "HttpOnly" in plain
    assert "samesite=strict" in plain.lower()
    assert "Secure" not in plain
    assert "Secure" in httpx2.get(f"{server.url}/sign-in", headers={"X-Forwarded-Proto": "https"}).headers["set-cookie"]


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "x\r\nSet-Cookie: a=b"],
)
def test_signing_in_leads_to_our_own_pages_alone(read, server, place):
    reader = read(f"{server.url}/sign-in")
    token = reader.page.xpath("//body/@data-token")[0]
    form = {"key": KEY, "place": place, "token": token}
    answer = reader.http.post(f"{server.url}/sign-in", data=form, follow_redirects=False)
    assert answer.headers["location"] == "./"


@pytest.mark.web
def test_who_tries_many_keys_is_told_to_wait_and_agents_are_not(read, start_server, tmp_path):
    with start_server(tmp_path, KB_API_KEY=KEY, KB_APPS="api,web") as server:
        reader = read(f"{server.url}/sign-in")
        for number in range(25):
            reader.submit("/sign-in$", key=f"guess-{number}")
        assert "too many wrong keys" in reader.text
        reader.submit("/sign-in$", key=KEY)
        assert "too many wrong keys" in reader.text, "the right one is not looked at either"


@pytest.mark.web
def test_every_page_forbids_what_it_does_not_need(site):
    for place in pages(site.ids).values():
        headers = httpx2.get(f"{site.url}/{place}", headers=PAGE).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.web
def test_every_link_stays_below_the_path_that_a_proxy_serves_the_pages_at(read, site):
    with proxied(site.url, "/tools/kb") as top:
        for place in pages(site.ids).values():
            reader = read(f"{top}/{place}")
            links = {link for _, _, link, _ in reader.page.iterlinks()}
            links = {link for link in links if not link.startswith(("#", "https://"))}  # the guide cites other sites
            assert {link for link in links if not link.startswith(f"{top}/")} == set(), place
        reader = read(f"{top}/d/{site.ids['Boat']}")
        reader.submit("/tags$", add="proxied")
        assert str(reader.answer.url) == f"{top}/d/{site.ids['Boat']}?about=1"
        assert "proxied" in reader.text


@pytest.mark.web
def test_a_browser_keeps_scripts_and_the_stylesheet_until_they_are_others(read, site):
    links = read(f"{site.url}/map").page.xpath("//script/@src | //link[@rel='stylesheet']/@href")
    assert {"style.css", "map.js"} <= {link.partition("?")[0].rpartition("/")[2] for link in links}
    for link in links:
        assert "immutable" in httpx2.get(link).headers["cache-control"]
        plain = link.partition("?")[0]
        for other in (plain, f"{plain}?of-another-kb"):
            assert "cache-control" not in httpx2.get(other).headers
    marks = {link.partition("?")[2] for link in links}
    assert marks == {assets()}


@pytest.mark.web
def test_systems_are_told_how_to_search_and_share(site):
    manifest = httpx2.get(f"{site.url}/manifest.webmanifest").json()
    assert manifest["share_target"]["action"] == "new"
    assert manifest["start_url"] == "./"
    assert f"{site.url}/?q={{searchTerms}}" in httpx2.get(f"{site.url}/opensearch.xml").text
    assert (
        "Boat" in httpx2.get(f"{site.url}/open?u=web%2Bkb:{site.ids['Boat']}", headers=PAGE, follow_redirects=True).text
    )
    shared = httpx2.get(
        f"{site.url}/new", params={"title": "T", "text": "shared", "url": "https://example.org"}, headers=PAGE
    )
    assert "shared\n\nhttps://example.org" in shared.text


@pytest.mark.web
def test_without_what_they_need_the_pages_say_how_to_get_them(start_server, tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(
        "import importlib.util as u\nfound = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'jinja2' else found(name, *more)\n"
    )
    with start_server(tmp_path / "data", PYTHONPATH=str(tmp_path / "without"), KB_APPS=ALL_APPS) as server:
        answer = httpx2.get(server.url)
        assert answer.status_code == 200
        assert "reinstall kb-local" in answer.text
        assert httpx2.get(f"{server.url}/nowhere").json()["detail"] == "Nothing is served at /nowhere."


@pytest.mark.web
def test_a_page_that_listens_does_not_keep_the_server_from_stopping(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api,web") as server, httpx2.stream("GET", f"{server.url}/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("data: {")
        server.process.terminate()
        assert not any(lines), "it ends in order, not cut off"
        assert server.process.wait(timeout=30) == 0


def test_an_original_comes_as_it_was_sent_and_as_a_download(read, server):
    content = "".join(f"Line {number} of a text.\n" for number in range(300)).encode()
    sent = {"params": {"wait": 60}, "files": {"file": ("lines.txt", content)}, "timeout": 90}
    job = httpx2.post(f"{server.url}/api/v1/jobs", headers={"Authorization": f"Bearer {KEY}"}, **sent).json()
    reader = read(f"{server.url}/sign-in")
    reader.submit("/sign-in$", key=KEY)
    answer = reader.http.get(f"{server.url}/d/{job['document_id']}/file")
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''lines.txt"
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert reader.http.get(f"{server.url}/d/999999/file", headers={"Accept": "*/*"}).status_code == 404


def test_no_large_form_is_read_of_who_has_not_signed_in(read, server):
    reader = read(f"{server.url}/sign-in")
    token = reader.page.xpath("//body/@data-token")[0]
    for place, data in (("new", {"text": "x" * 4_500_000}), ("preview", {"text": "x"}), ("add", {})):
        sent = parts((data | {"token": token}).items())
        answer = reader.http.post(f"{server.url}/{place}", files=sent, headers={"Accept": "*/*"})
        assert answer.status_code == 401, place
    assert reader.http.post(f"{server.url}/sign-in", data={"key": "x" * 100_000, "token": token}).status_code == 413


@pytest.mark.web
@pytest.mark.parametrize("first", ["the token of another", "another field", "a file"])
def test_of_a_form_that_is_not_ours_no_more_is_read_than_its_beginning(site, first):
    fields = {
        "the token of another": 'Content-Disposition: form-data; name="token"\r\n\r\n' + "0" * 64,
        "another field": 'Content-Disposition: form-data; name="tags"\r\n\r\nwork',
        "a file": 'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + "x" * 200_000,
    }
    said = [
        "POST /add HTTP/1.1",
        "Host: localhost",
        "Content-Type: multipart/form-data; boundary=b",
        f"Content-Length: {300 << 20}",
        "",
        "--b",
        f"{fields[first]}\r\n--b",
        'Content-Disposition: form-data; name="file"; filename="b"',
        "",
        "The rest never comes.",
    ]
    with socket.create_connection(("127.0.0.1", urlsplit(site.url).port), timeout=20) as connection:
        connection.sendall("\r\n".join(said).encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")


@pytest.mark.web
def test_a_form_holds_no_more_than_the_limits_say(read, site):
    reader = read(f"{site.url}/new")
    token = reader.page.xpath("//body/@data-token")[0]
    tags = f"d/{site.ids['Boat']}/tags"

    def status(place, fields, **sent):
        return reader.http.post(f"{site.url}/{place}", **(sent or {"files": parts([("token", token), *fields])}))

    assert status("preview", [("text", "x" * 500_000)]).status_code == 200
    assert status("new", [("text", "x" * 4_000_001)]).status_code == 422
    refused = status(tags, [("add", "x" * (64 << 10 | 1))])
    assert refused.status_code == 422
    assert "form: a field can have at most 65536 bytes." in refused.text
    assert status(tags, [("add", "x" * (3 << 19))]).status_code == 422
    assert status(tags, [("other", "x")] * 120).status_code == 422
    assert status(tags, [], data={"token": token, "add": "x" * (64 << 10 | 1)}).status_code == 422
    assert status("preview", [], data={"token": token, "text": "x" * (256 << 10)}).status_code == 413
    file = {"token": (None, token.encode()), "file": ("a.txt", b"x")}
    assert status("new", [], files=file).status_code == 422
    assert not {"other", "x"} & set(site.engine.get(f"documents/{site.ids['Boat']}").json()["tags"])


@pytest.mark.web
@pytest.mark.parametrize("place", ["preview", "api/v1/jobs"])
def test_a_form_in_an_encoding_that_takes_long_to_decode_is_refused(read, site, place):
    reader = read(f"{site.url}/new")
    for declared in ("charset=punycode", "charset=utf-8; charset=punycode", "charset*=utf-8''punycode"):
        kind = {"Content-Type": f"multipart/form-data; {declared}; boundary=b"}
        body = b'--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nx\r\n--b--\r\n'
        answer = reader.http.post(f"{site.url}/{place}", content=body, headers=kind)
        assert answer.status_code == 422
        assert "UTF-8" in answer.text
    assert (
        "UTF-8"
        not in reader.http.post(
            f"{site.url}/{place}",
            content=body,
            headers={"Content-Type": "multipart/form-data; charset=UTF-8; boundary=b"},
        ).text
    )


def write(site, **note):
    return site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]


@pytest.mark.web
def test_matches_beside_a_document_contain_the_words_and_give_their_lines(read, site):
    filler = "The clerk copied each bill of lading twice.\n" * 60
    text = f"{filler}{filler}The windlass was oiled on Mondays.\n{filler}"
    document = write(site, title="Bills of lading", text=text)
    page = read(f"{site.url}/d/{document}?q=windlass").page
    [row] = [each.text_content() for each in page.xpath("//section[h2='Matches']//li")]
    assert "line 121" in row
    assert "windlass" in row
    short = write(site, title="Capstan", text="Intro.\n\nThe capstan was greased.")
    assert not read(f"{site.url}/d/{short}?q=capstan").page.xpath("//section[h2='Matches']")


@pytest.mark.web
def test_what_is_similar_to_a_document_is_what_the_engine_says(read, site):
    said = "The pilot said that the landing went {} and everyone on deck was glad."
    quoted = write(site, title="Landing, quoted", text=said.format('"exactly as rehearsed"'))
    write(site, title="Landing, told", text=said.format("just like planned"))
    found = site.engine.get(f"documents/{quoted}/similar", params={"top": 5}).json()["results"]
    shown = read(f"{site.url}/d/{quoted}").page.xpath("//section[h2='Similar']//a[@class='title']/text()")
    assert shown == [each["title"] for each in found]
    assert shown[0] == "Landing, told"


@pytest.mark.web
def test_a_note_that_was_replaced_leads_to_what_replaced_it_and_says_where_it_is_from(read, site):
    old = write(site, text="The anchor chain is forty metres.", source="the \u202eowner", tags=["chain"])
    new = write(site, text="The anchor chain is fifty metres.", replaces=old, tags=["chain"])
    for page in (f"d/{old}", "documents?tag=chain", "?q=anchor+chain&tag=chain"):
        shown = read(f"{site.url}/{page}").page
        assert f"/d/{new}" in [link[-len(f"/d/{new}") :] for link in shown.xpath("//a[@class='replaced']/@href")], page
        [source] = shown.xpath("//*[@class='from']/text()")
        assert source.startswith("from the "), page
        assert "\u202e" not in source, page


@pytest.mark.web
def test_a_note_that_is_saved_unchanged_stays_as_it_is(read, site):
    title, text = "Two  spaces and \u200fa turn", "\n\nIt begins with empty lines."
    note = write(site, title=title, text=text)
    reader = read(f"{site.url}/d/{note}/edit")
    assert f"autofocus>\n{text}</textarea>" in reader.answer.text, "browsers leave out the first line end"
    reader.submit("/edit$", text=text)
    after = site.engine.get(f"documents/{note}").json()
    assert (after["title"], after["chunks"][0]["text"]) == (title, text)


@pytest.mark.web
@pytest.mark.parametrize("is_conflict", [False, True])
def test_tags_and_a_title_that_someone_else_set_meanwhile_stay(read, site, is_conflict):
    note = write(site, title="Before", text="Shared by two.", tags=["kept", "dropped"])
    reader = read(f"{site.url}/d/{note}/edit")
    theirs = {"title": "Theirs", "tags_add": ["urgent"], "tags_remove": ["kept"]}
    theirs |= {"text": "Theirs, too."} if is_conflict else {}
    site.engine.patch(f"notes/{note}", json=theirs).raise_for_status()
    reader.submit("/edit$", text="Mine.", tags="kept, dropped, mine")
    if is_conflict:
        reader.submit("/edit$", text="Mine.")
    after = site.engine.get(f"documents/{note}").json()
    assert (after["title"], after["tags"], after["chunks"][0]["text"]) == (
        "Theirs",
        ["dropped", "mine", "urgent"],
        "Mine.",
    )


@pytest.mark.web
def test_a_conflict_shows_the_title_and_tags_that_will_be_saved(read, site):
    note = write(site, title="Before", text="Shared.", tags=["dropped", "kept"])
    reader = read(f"{site.url}/d/{note}/edit")
    change = {"title": "Theirs", "tags_add": ["urgent"], "text": "Theirs."}
    site.engine.patch(f"notes/{note}", json=change).raise_for_status()
    reader.submit("/edit$", text="Mine.", title="Mine", tags="kept")
    [form] = [each for each in reader.page.forms if "shown_tags" in each.fields]
    assert (form.fields["title"], form.fields["tags"]) == ("Mine", "kept, urgent")
    reader.submit("/edit$", text="Mine.", tags="kept")
    after = site.engine.get(f"documents/{note}").json()
    assert (after["title"], after["tags"]) == ("Mine", ["kept"])


@pytest.mark.web
def test_a_title_that_a_note_was_not_given_goes_on_following_its_text(read, site):
    note = write(site, text="# First heading\n\nWords.")
    reader = read(f"{site.url}/d/{note}/edit")
    reader.submit("/edit$", text="# Second heading\n\nWords.")
    assert site.engine.get(f"documents/{note}").json()["title"] == "Second heading"


@pytest.mark.web
@pytest.mark.parametrize("base", ["", "*", "ü"])
def test_a_form_that_does_not_say_which_text_it_changes_overwrites_nothing(read, site, base):
    note = write(site, title="Kept", text=f"Stays, whatever {base!r} is.")
    reader = read(f"{site.url}/d/{note}/edit")
    reader.submit("/edit$", text="Overwritten.", content_hash=base)
    assert reader.answer.status_code == 412
    assert "This note has changed in the meantime" in reader.text
    assert site.engine.get(f"documents/{note}").json()["chunks"][0]["text"].startswith("Stays")


@pytest.mark.web
def test_numbers_of_any_length_are_answered_with_a_page(read, site):
    for number in ("9" * 18, "9" * 19, "9" * 25, "9" * 5000):
        for place in (f"d/{number}", f"jobs/{number}", f"d/{site.ids['boat/lease.pdf']}/pages/{number}.png"):
            assert httpx2.get(f"{site.url}/{place}", headers=PAGE).status_code == 404, place[:40]
    reader = read(f"{site.url}/d/{site.ids['Boat']}")
    token = reader.page.xpath("//body/@data-token")[0]
    for version in ("abc", "", "0", "9" * 25, "9" * 5000):
        place = f"{site.url}/d/{site.ids['Boat']}/revert"
        assert reader.http.post(place, data={"version": version, "token": token}).status_code == 422, version[:40]


@pytest.mark.web
def test_who_asks_for_the_head_of_a_page_gets_that_of_the_page(site):
    for place in pages(site.ids).values():
        statuses = {
            httpx2.request(method, f"{site.url}/{place}", headers=PAGE).status_code for method in ("GET", "HEAD")
        }
        assert len(statuses) == 1, place


@pytest.mark.web
def test_a_preview_that_takes_long_keeps_nobody_waiting(read, site):
    reader = read(f"{site.url}/new")
    token = reader.page.xpath("//body/@data-token")[0]
    form = parts([("token", token), ("text", "*a_ " * 50_000)])
    with ThreadPoolExecutor(1) as threads:
        preview = threads.submit(reader.http.post, f"{site.url}/preview", files=form)
        answered = 0
        while not preview.done():
            assert httpx2.get(f"{site.url}/readyz").status_code == 200
            answered += 1
    assert preview.result().status_code == 200
    assert answered > 3


@pytest.mark.web
def test_results_show_what_markdown_says_without_its_signs_and_tasks_have_boxes(read, site):
    reader = read(f"{site.url}/?q=carburettor impeller ropes&tag=spring")
    [shown] = {each.text_content() for each in reader.page.xpath("//*[@class='snippet']")}
    assert "Wanderer" in shown
    assert "impeller" in shown
    assert not re.search(r"\*\*|---|```|\[ \]|# Boat", shown)
    items = read(f"{site.url}/d/{site.ids['Boat']}").page.xpath("//article//li")
    assert [each.text_content().strip() for each in items] == ["☐ ropes", "☑ flares"]


@pytest.mark.web
def test_a_mail_stands_under_its_head(read, site):
    page = read(f"{site.url}/d/{site.ids['boat/moorings.eml']}").page
    head = dict(zip(page.xpath("//dl/dt/text()"), (each.text_content() for each in page.xpath("//dl/dd")), strict=True))
    assert head["From"] == "Anna <anna@example.org>"
    assert head["Subject"] == "Moorings in May"
    assert "ninth of May" in page.xpath("//div[contains(@class, 'text')]//p")[0].text


@pytest.mark.web
@pytest.mark.parametrize("path", [None, "inbox/2026 #5/berths.eml"])
def test_a_mail_and_what_came_in_it_lead_to_each_other_with_a_path_and_without(read, site, path):
    mail = MAIL.replace(b"14,Anna", f"14,{path}".encode()).replace(b"ninth", f"tenth {path}".encode())
    form = {"files": {"file": ("berths.eml", mail)}, "data": {"source_path": path} if path else {}}
    document = site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]
    listed = {"part_of": document}
    eventually("it is read", lambda: site.engine.get("documents", params=listed).json()["documents"])
    reader = read(f"{site.url}/d/{document}")
    [title] = reader.page.xpath("//section[h2='Attachments']//a[@class='title']/text()")
    shown = [each.get("title") for each in reader.page.xpath("//section[h2='Attachments']//*[@class='path']")]
    assert shown == ([f"{path}#berths.csv"] if path else []), "without a path, its title says it all"
    reader.open(reader.page.xpath("//section[h2='Attachments']//a[@class='title']/@href")[0])
    assert title in reader.text
    assert "job:" not in reader.text
    reader.open(reader.page.xpath("//*[@class='meta whole']/a/@href")[0])
    assert reader.page.xpath("//h1/text()") == ["Moorings in May"]


@pytest.mark.web
@pytest.mark.parametrize(
    ("name", "export"), [("chats.json", json.dumps([claude(71), claude(72)]).encode()), ("library.csv", BOOKS)]
)
def test_an_export_lists_the_documents_that_it_is_of(read, site, name, export):
    file = {"file": (name, export)}
    document = site.engine.post("jobs", params={"wait": 30}, files=file).json()["document_id"]

    def parts():
        return site.engine.get("documents", params={"part_of": document}).json()["documents"]

    found = eventually("both are read", parts, lambda parts: len(parts) == 2)
    listed = read(f"{site.url}/d/{document}").page.xpath("//section[h2='Documents inside']//a[@class='title']/text()")
    assert sorted(listed) == sorted(each["title"] for each in found)


@pytest.mark.web
def test_the_pages_of_a_pdf_end_with_its_last_one_though_that_has_no_text(read, site):
    file = {"file": ("berths.pdf", pdf("The list of berths.", ""))}
    document = site.engine.post("jobs", params={"wait": 30}, files=file).json()["document_id"]
    reader = read(f"{site.url}/d/{document}")
    reader.click("Page 2")
    [image] = reader.page.xpath("//*[@class='looks']//img/@src")
    assert "/pages/2.png" in image
    assert reader.http.get(image).headers["content-type"] == "image/png"
    assert reader.page.xpath("//*[@class='looks']//figcaption/a/text()") == ["Page 1"]
    reader.open(f"{site.url}/d/{document}?page=999")
    assert reader.page.xpath("//*[@class='looks']//img/@src") == [image], (
        "the last one stands in for one that is not there"
    )


def chip(reader, label):
    """The filter with this label: in use, or in the panel with all of them."""
    places = "//*[@id='facets']//a[contains(@class, ' set')] | //*[@id='groups']//a"
    [found] = [each for each in reader.page.xpath(places) if label in each.text_content()]
    return found


@pytest.mark.web
def test_operators_of_a_query_are_chips_that_take_themselves_away(read, site):
    reader = read(f"{site.url}/?q=May+%23boat+type:eml+-impeller")
    assert len(reader.page.find_class("hit-link")) == 1
    chips = [" ".join(each.text_content().split()) for each in reader.page.find_class("set")]
    assert chips == ["#boat ×", "Mail ×", "without impeller ×"]
    reader.click("without impeller")
    assert reader.answer.url.query == b"q=May+%23boat+type%3Aeml"
    reader.open(f"{site.url}/?q=tag:spring")
    assert [link.text_content() for link in reader.page.find_class("hit-link")] == ["Boat"]
    reader.open(f"{site.url}/?q=boiler+tag:nowhere")
    reader.click("Search without the filters")
    assert "Heating" in reader.text


@pytest.mark.web
def test_a_line_follows_the_results_with_all_words(read, site):
    shown = read(f"{site.url}/?q=boiler").page.get_element_by_id("results").text_content()
    assert shown.index("Heating") < shown.index("Only close in meaning from here.") < shown.rindex("Why this?")


@pytest.mark.web
def test_a_subject_that_is_probably_not_in_kb_gets_few_results_and_a_link_to_all(read, site):
    reader = read(f"{site.url}/?q=salary+of+the+president+of+Ruritania+in+May")
    assert "This is probably not in kb. The closest:" in reader.text
    assert len(reader.page.find_class("hit-link")) == 3
    number = int(re.search(r"Show (\d+) more", reader.text)[1])
    reader.click(f"Show {number} more")
    assert len(reader.page.find_class("hit-link")) == 3 + number


@pytest.mark.web
def test_a_corrected_word_can_be_searched_for_as_typed(read, site):
    reader = read(f"{site.url}/?q=carburettorr")
    assert "kb searched for" in reader.text
    reader.click("Search for exactly what I typed")
    assert reader.answer.url.query == b"q=%22carburettorr%22"
    assert "kb searched for" not in reader.text


@pytest.mark.web
def test_a_path_and_dates_that_narrow_a_search_are_chips_that_take_themselves_away(read, site):
    reader = read(f"{site.url}/?q=boat&path=boat/&after=2026-01-01&before=2099-01-01")
    for label in ("in boat/", "from 2026-01-01 before 2099-01-01"):
        assert "set" in chip(reader, label).get("class")
        reader.open(chip(reader, label).get("href"))
    assert reader.answer.url.query == b"q=boat"


@pytest.mark.web
def test_folders_and_times_of_what_was_found_are_chips_that_count_what_they_lead_to(read, site):
    for year, folder in (("2019", "spring"), ("2019", "summer"), ("2021", "summer")):
        text = f"---\ndate: {year}-0{5 if folder == 'spring' else 7}-07\n---\nThe gunwale was varnished in {year}, {folder}.\n"
        form = {"files": {"file": ("log.md", text.encode())}, "data": {"source_path": f"/varnish/{folder}/{year}.md"}}
        site.engine.post("jobs", params={"wait": 30}, **form).raise_for_status()
    for label, number in (("in summer/", 2), ("in spring/", 1), ("2019", 2), ("2021", 1)):
        reader = read(f"{site.url}/?q=gunwale+varnished&mode=words&path=/varnish/")
        assert chip(reader, label).xpath("b/text()") == [str(number)]
        reader.open(chip(reader, label).get("href"))
        assert len(reader.page.xpath("//ol[@class='results']/li")) == number, label
    reader = read(f"{site.url}/?q=gunwale&mode=words&path=/varnish/&after=2019-01-01&before=2020-01-01")
    assert chip(reader, "May 2019").xpath("b/text()") == ["1"]


@pytest.mark.web
def test_claude_desktop_is_told_which_program_to_start_and_where_that_asks(read, site):
    [said] = read(f"{site.url}/connect").page.xpath("//section[h2[contains(., 'Claude Desktop')]]/pre/text()")
    server = json.loads(said)["mcpServers"]["kb"]
    assert (server["command"], server["args"]) == ("kb", ["stdio"])
    assert server["env"] == {"KB_MCP_URL": f"{site.url}/mcp"}


@pytest.mark.web
def test_the_bench_of_the_pages_tells_what_is_beyond_its_limit():
    from bench.in_browser import judge

    good = {"wire_bytes": 60_000.0, "usable_p95_ms": 300.0, "frames_per_second": 50.0, "shown_p95_ms": 900.0}
    assert judge(good) == []
    assert judge({"frames_per_second": 49.9, "beside_engine_p95_ms": 80.1}) == [
        "beside_engine_p95_ms is 80.1, more than 80",
        "frames_per_second is 49.9, less than 50",
    ]


@pytest.mark.web
@pytest.mark.parametrize("change", ["tags", "search"])
def test_a_page_that_listens_is_told_of_searches_and_of_changed_tags(site, change):
    with httpx2.stream("GET", f"{site.url}/events") as stream:
        told = (json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: "))
        before = next(told)
        if change == "tags":
            site.engine.patch(f"documents/{site.ids['Boat']}/tags", json={"add": ["told of"]}).raise_for_status()
            assert any(each["changed"] != before["changed"] for each in told)
            site.engine.patch(f"documents/{site.ids['Boat']}/tags", json={"remove": ["told of"]})
        else:
            site.engine.post("search", json={"query": "told of"}).raise_for_status()
            assert any(each["searches"] > before["searches"] for each in told)


@pytest.mark.web
def test_the_overview_shows_what_takes_room(read, site):
    stored = site.engine.get("storage").json()
    assert stored["originals"] > 0
    [picture] = read(f"{site.url}/server").page.xpath("//section[@aria-labelledby='storage']/svg")
    assert "original files" in picture.get("aria-label")
    widths = [float(each.get("width")) for each in picture.iter("rect")]
    assert abs(sum(widths) - 640) < 1


ATTENTION = "//section[@aria-labelledby='attention']//li"


@pytest.mark.web
@pytest.mark.sqlite
def test_the_overview_names_what_somebody_added_to_the_database_and_leads_to_the_doctor(read, site):
    with closing(apsw.Connection(str(site.data / "kb.db"))) as database:
        database.execute("CREATE TRIGGER spy AFTER INSERT ON audit BEGIN SELECT 1; END")
        try:
            [said] = read(f"{site.url}/overview").page.xpath(f"{ATTENTION}[contains(., 'trigger spy')]")
            assert "doctor" in said.text_content()
        finally:
            database.execute("DROP TRIGGER spy")
    assert not read(f"{site.url}/overview").page.xpath(f"{ATTENTION}[contains(., 'trigger spy')]")


@pytest.mark.web
def test_a_failed_job_says_why_and_offers_only_what_can_help(read, site):
    broken = {"file": ("cut-off.pdf", b"%PDF-1.4 and no more")}
    site.engine.post("jobs", params={"wait": 30}, files=broken).raise_for_status()
    reader = read(f"{site.url}/jobs?status=failed")
    [job] = reader.page.xpath("//li[contains(@class, 'failed')][contains(., 'cut-off.pdf')]")
    assert "the PDF is damaged: kb cannot open it" in job.text_content()
    assert [each.text for each in job.xpath(".//button")] == ["Dismiss"]
    place = job.xpath(".//form/@action")[0].rpartition("jobs/")[2]
    reader.submit(f"jobs/{place}$")
    assert "cut-off.pdf" not in read(f"{site.url}/jobs?status=failed").text


@pytest.mark.web
def test_a_filtered_list_counts_its_own_documents_and_its_tags_keep_the_filters(read, site):
    ids = []
    for name, tags in {"a": "seam,seam/fine", "b": "seam", "c": ""}.items():
        form = {"files": {"file": (f"{name}.md", f"# {name}\n\nSewn {name}.".encode())}, "data": {"tags": tags}}
        form["data"]["source_path"] = f"sewing/{name}.md"
        ids.append(site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"])
    other = {"files": {"file": ("d.md", b"# d\n\nSewn d.")}, "data": {"tags": "seam", "source_path": "elsewhere/d.md"}}
    ids.append(site.engine.post("jobs", params={"wait": 30}, **other).json()["document_id"])
    reader = read(f"{site.url}/documents?path=sewing/&sort=oldest&type=")
    chips = {
        " ".join(each.text_content().split()): each.get("href") for each in reader.page.xpath("//a[@class='chip']")
    }
    assert chips.keys() == {"#seam 2", "#seam/fine 1"}
    assert all("path=sewing%2F&sort=oldest&tag=seam" in href for href in chips.values())
    reader.open(chips["#seam 2"])
    assert [each.text for each in reader.page.xpath("//a[@class='title']")] == ["a", "b"]
    reader.open(reader.page.xpath("//a[@class='tag'][text()='seam/fine']")[0].get("href"))
    assert [each.text for each in reader.page.xpath("//a[@class='title']")] == ["a"]
    assert "path=sewing" in str(reader.answer.url)
    for each in ids:
        site.engine.delete(f"documents/{each}")


@pytest.mark.web
def test_a_search_that_no_document_answers_shows_no_full_bar(read, site):
    assert not read(f"{site.url}/?q=zzqqxxy").page.xpath("//*[@class='score'][contains(@aria-label, 'Relevance')]")
    assert read(f"{site.url}/?q=moorings").page.xpath("//*[@class='score'][contains(@aria-label, 'Relevance')]")


@pytest.mark.web
def test_a_search_without_a_word_that_was_found_says_that_meaning_alone_is_shown(read, site):
    shown = read(f"{site.url}/?q=zzqqxxy").text
    assert "No document contains any of your words. These are the closest in meaning." in shown
    assert "closest in meaning" not in read(f"{site.url}/?q=moorings").text
    narrowed = read(f"{site.url}/?q=zzqqxxy&type=note").text
    assert "With these filters, no document contains any of your words. These are the closest in meaning." in narrowed
    assert "Show all documents" in read(f"{site.url}/documents?tag=absent-tag").text


def test_under_a_path_the_cookie_is_for_that_path_alone(server):
    cookie = httpx2.get(f"{server.url}/sign-in", headers={"X-Forwarded-Prefix": "/kb"}).headers["set-cookie"]
    assert "Path=/kb/;" in f"{cookie};"
    for prefix in ("", "/", "/a; Domain=x", "//evil.example/x y"):
        cookie = httpx2.get(f"{server.url}/sign-in", headers={"X-Forwarded-Prefix": prefix}).headers["set-cookie"]
        assert "Path=/;" in f"{cookie};", prefix


def test_of_two_cookies_the_first_counts_which_is_of_the_longer_path(read, server):
    reader = read(f"{server.url}/sign-in")
    reader.submit("/sign-in$", key=KEY)
    mine = reader.http.cookies["kb_session"]
    for cookies, status in (
        (f"kb_session={mine}; kb_session=other", 200),
        (f"kb_session=other; kb_session={mine}", 401),
    ):
        answer = httpx2.get(f"{server.url}/documents", headers={**PAGE, "Cookie": cookies})
        assert answer.status_code == status


def test_signing_out_takes_drafts_and_searches_from_the_browser_along(read, server):
    reader = read(f"{server.url}/sign-in")
    reader.submit("/sign-in$", key=KEY)
    token = reader.page.xpath("//body/@data-token")[0]
    ended = reader.http.post(f"{server.url}/sign-out", data={"token": token}, follow_redirects=False)
    assert ended.headers["clear-site-data"] == '"cache", "storage"'


@pytest.mark.web
def test_the_folders_of_the_paths_are_a_tree_beside_the_list(read, site):
    for path in ("attic/one.md", "attic/trunk/two.md", "attic/trunk/box/three.md", "attic/C#/four.md"):
        form = {"files": {"file": (path.rpartition("/")[2], path.encode())}, "data": {"source_path": path}}
        site.engine.post("jobs", params={"wait": 30}, **form)
    reader = read(f"{site.url}/documents")
    reader.click("attic")
    tree = reader.page.xpath("//nav[@aria-label='Folders']//li")
    shown = [each.text_content().split() for each in tree if each.get("class") == "l1"]
    assert shown == [["C#", "1"], ["trunk", "2"]]
    assert reader.page.xpath("//nav[@aria-label='Folders']//a[@aria-current='page']/text()") == ["attic"]
    reader.click("trunk")
    titles = reader.page.xpath("//ul[contains(@class, 'compact')]//a[@class='title']/text()")
    assert sorted(titles) == ["three", "two"]
    reader.click("three")
    places = [each.text for each in reader.page.xpath("//nav[@class='crumbs']/a")]
    assert places == ["Documents", "attic", "trunk", "box"]


@pytest.mark.web
def test_a_list_is_in_the_order_of_the_column_that_was_clicked(read, site):
    reader = read(f"{site.url}/documents?tag=log")
    newest = reader.page.xpath("//a[@class='title']/text()")
    reader.click("Changed")
    assert reader.page.xpath("//a[@class='title']/text()") == newest[::-1]
    reader.open(f"{site.url}/documents")
    reader.click("Dated")
    links = reader.page.xpath("//a[@class='title']/@href")
    listed = site.engine.get("documents", params={"sort": "date", "limit": 40}).json()["documents"]
    assert [int(re.search(r"d/(\d+)", link)[1]) for link in links] == [each["id"] for each in listed]


@pytest.mark.web
def test_the_note_of_a_day_is_written_once(read, site):
    reader = read(f"{site.url}/today?day=2031-02-03")
    assert reader.page.xpath("//input[@name='title']/@value") == ["2031-02-03"]
    reader.submit("/new$", text="Calm all day.")
    note = reader.answer.url.path
    reader.open(f"{site.url}/today?day=2031-02-03")
    assert reader.answer.url.path == f"{note}/edit"
    reader.open(f"{site.url}/today?day=31-2")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", reader.page.xpath("//input[@name='title']/@value")[0])


def test_the_note_of_a_day_goes_where_the_notes_of_other_days_are(read, site):
    form = {"text": "Fog until noon.", "title": "2031-03-01", "source_path": "diary/daily/2031-03-01.md"}
    site.engine.post("jobs", params={"wait": 30}, json=form).raise_for_status()
    for text in ("Fog again.", "Written in another tab."):
        reader = read(f"{site.url}/new?title=2031-03-02&source_path=diary/daily/2031-03-02.md")
        if text == "Fog again.":
            reader.open(f"{site.url}/today?day=2031-03-02")
        reader.submit("/new$", text=text)
    notes = site.engine.get("documents", params={"name": "2031-03-02*"}).json()["documents"]
    assert sorted(str(note["source_path"]) for note in notes) == ["None", "diary/daily/2031-03-02.md"]


def test_a_document_is_moved_from_its_own_page(read, site):
    note = write(site, title="Bower anchor", text="It lies at the bow.")
    reader = read(f"{site.url}/d/{note}?about=folder")
    reader.submit("/many$", folder="gear/anchors")
    assert site.engine.get(f"documents/{note}").json()["source_path"] == "gear/anchors/Bower anchor.md"


def test_the_list_is_filtered_by_the_dates_of_documents(read, site):
    for day in ("1611-04-02", "1612-04-02"):
        write(site, title=f"Log of {day}", text=f"---\ndate: {day}\n---\nThe log of that year.")
    reader = read(f"{site.url}/documents?after=1611-01-01&before=1612-01-01")
    assert [each.text_content() for each in reader.page.xpath("//a[@class='title']")] == ["Log of 1611-04-02"]
    assert reader.page.xpath("//a[contains(@aria-label, 'from 1611-01-01')]")


def test_a_list_shows_a_pdf_in_small_until_it_is_purged(site):
    form = {"files": {"file": ("small.pdf", pdf("A thumbnail of the ketch Halcyon."))}}
    document = site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]
    for place in ("", "?q=Halcyon"):
        page = httpx2.get(f"{site.url}/{place}").text
        [small] = re.findall(rf'<img class="face" src="([^"]*d/{document}/thumbnail[^"]*)"', page)
    shown = httpx2.get(urljoin(f"{site.url}/", unescape(small)))
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/webp")
    assert shown.headers["cache-control"].startswith("private")
    assert httpx2.get(f"{site.url}/d/{site.ids['Boat']}/thumbnail").status_code == 404
    [kept] = [file for file in site.data.rglob("thumbnails/*/*") if file.read_bytes() == shown.content]
    site.engine.delete(f"documents/{document}", params={"purge": True}).raise_for_status()
    eventually("it is gone with the file", lambda: not kept.exists())
    assert httpx2.get(urljoin(f"{site.url}/", unescape(small))).status_code == 404


def test_the_page_of_a_word_file_says_where_its_pictures_are(site):
    document = Document()
    document.add_paragraph("The sails of the Halcyon.")
    with BytesIO() as file:
        document.save(file)
        form = {"files": {"file": ("sails.docx", file.getvalue())}}
    number = site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]
    assert "Its pictures and layout are in the file" in httpx2.get(f"{site.url}/d/{number}").text
    assert "Its pictures and layout" not in httpx2.get(f"{site.url}/d/{site.ids['Boat']}").text


def test_what_is_still_to_read_counts_the_queue_and_the_notes_folder():
    queue = {"queued": 3, "running": 1}
    assert waiting({"queue": queue, "notes_folder": None}) == 4
    assert waiting({"queue": queue, "notes_folder": {"to_read": 1700}}) == 1704


@pytest.mark.web
def test_a_task_is_ticked_on_the_page_of_its_note_and_the_tick_can_be_undone(read, site):
    text = "Moor the boat.\r\n\r\n- [ ] fenders\n- [x] lines\n"
    note = write(site, title="Mooring", text=text)
    reader = read(f"{site.url}/d/{note}")
    [tick] = [form for form in reader.page.forms if form.get("id") == "tick"]
    boxes = reader.page.xpath("//button[@form='tick']")
    assert [(each.get("aria-label"), each.get("aria-checked")) for each in boxes] == [
        ("fenders", "false"),
        ("lines", "true"),
    ]

    def press(line):
        reader._take(reader.http.post(tick.action, data={**dict(tick.form_values()), "line": line}))
        shown = site.engine.get(f"documents/{note}").json()
        return "".join(each["text"] for each in shown["chunks"])

    before = press("1")
    assert "- [ ] fenders" in before
    assert "changed in the meantime" in reader.text
    after = press(boxes[0].get("value"))
    assert after == before.replace("[ ]", "[x]")
    assert "Changed: fenders" in reader.text
    assert reader.page.xpath("//*[contains(@class, 'notice')]//button")
    assert press(boxes[1].get("value")) == after, "the form names the text of before"
    assert "changed in the meantime" in reader.text


@pytest.mark.web
def test_words_that_no_document_contains_are_named_on_one_line(read, site):
    write(site, title="Gangway", text="The gangway is aluminium.")
    shown = read(f"{site.url}/?q=gangway+zzqxvt+wwkjqp+xxvbnq").page.xpath("//p[@class='tally']")
    said = [" ".join(each.text_content().split()) for each in shown]
    assert "No document contains “zzqxvt”, “wwkjqp” or “xxvbnq”." in said
    assert sum("No document contains" in each for each in said) == 1
    one = read(f"{site.url}/?q=gangway+zzqxvt").text
    assert "No document contains “zzqxvt”." in one


@pytest.mark.web
def test_the_page_for_adding_leads_to_watched_folders(read, site):
    assert read(f"{site.url}/add").page.xpath("//main//a[contains(@href, 'folders')]")


@pytest.mark.web
def test_the_types_of_documents_are_listed_by_the_names_that_people_read(read, site):
    every, *types = read(f"{site.url}/documents?name=*").page.xpath("//select[@name='type']/option/text()")
    assert (every, types) == ("All", sorted(types))
    assert len(types) > 3
