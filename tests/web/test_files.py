"""Documents that are files: their names, their kinds, and opening them in the browser."""

from __future__ import annotations

import httpx2
import pytest

from tests.formats.test_sheets import spreadsheet
from tests.support.eventually import eventually
from tests.web.conftest import MAIL, find

pytestmark = pytest.mark.web
RYE = "<table:table-row><table:table-cell office:value-type='string'><text:p>rye harvest</text:p></table:table-cell></table:table-row>"


def send(site, path, content, **data):
    form = {"files": {"file": (path.rpartition("/")[2], content)}, "data": {"source_path": path} | data}
    return site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]


def test_a_renamed_file_gets_its_new_name_as_title_and_that_can_be_undone(browser, site):
    document = send(site, "names/sextant.txt", b"The horizon mirror is silvered on one half.")
    browser.get(f"{site.url}/d/{document}")
    find(browser, ".more summary")[0].click()
    find(browser, ".more a", "Rename")[0].click()
    [field] = find(browser, ".rename [name=name]")
    assert browser.switch_to.active_element == field
    field.clear()
    field.send_keys("octant")
    find(browser, ".rename button")[0].click()
    find(browser, ".notice", "Renamed to “octant.txt”.")
    find(browser, "h1", "octant")
    assert "octant.txt" in find(browser, ".facts .path")[0].text
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, "h1", "sextant")


def test_a_renamed_file_with_a_title_of_its_own_keeps_it(read, site):
    document = send(site, "names/log.md", b"# Deck log\n\nAll sails set.\n")
    reader = read(f"{site.url}/d/{document}?about=1")
    reader.submit("rename", name="journal")
    assert reader.page.xpath("//h1/text()") == ["Deck log"]
    assert site.engine.get(f"documents/{document}").json()["source_path"] == "names/journal.md"


def test_a_name_with_a_folder_is_refused_and_notes_and_synced_files_have_no_file_to_rename(read, site):
    document = send(site, "names/bell.txt", b"Eight bells end the watch.")
    reader = read(f"{site.url}/d/{document}")
    reader.submit("rename", name="a/b")
    assert (reader.answer.status_code, "without a folder" in reader.text) == (422, True)
    synced = send(site, "vault/bell.txt", b"Four bells.")
    for other in (synced, site.ids["Boat"]):
        reader = read(f"{site.url}/d/{other}")
        assert not [form for form in reader.page.forms if "rename" in (form.action or "")]


@pytest.fixture(scope="module")
def harvest(site):
    """A table, a spreadsheet and a text; returns their ids."""
    contents = {"oats.csv": b"crop,harvest\noats,4\n", "rye.ods": spreadsheet(RYE), "barn.txt": b"The harvest is in."}
    return {name: send(site, f"harvest/{name}", content) for name, content in contents.items()}


def test_the_list_can_be_narrowed_to_all_spreadsheets_whatever_program_made_them(browser, site, harvest):
    browser.get(f"{site.url}/documents?path=harvest/")
    find(browser, ".filter summary")[0].click()
    find(browser, ".filter option[value=spreadsheets]")[0].click()
    find(browser, ".filter .primary")[0].click()
    find(browser, ".chip.set", "Spreadsheets")
    ids = {each.get_attribute("value") for each in find(browser, ".pick")}
    assert ids == {str(harvest["oats.csv"]), str(harvest["rye.ods"])}
    [icon] = {each.get_attribute("href") for each in browser.find_elements("css selector", ".compact use")}
    assert icon == "#of-spreadsheets"


def test_a_search_offers_a_kind_of_which_several_types_were_found(read, site, harvest):
    reader = read(f"{site.url}/?q=path:harvest/")
    reader.click("Spreadsheets")
    assert {int(each) for each in reader.page.xpath("//input[@class='pick']/@value")} == {
        harvest["oats.csv"],
        harvest["rye.ods"],
    }
    typed = read(f"{site.url}/?q=path:harvest/+type:spreadsheets").page
    chips = [" ".join(each.text_content().split()) for each in typed.xpath("//a[@class='chip set']")]
    assert chips == ["in harvest/ ×", "Spreadsheets ×"]


def test_a_pdf_opens_in_the_browser_at_the_page_that_was_shown(browser, site):
    browser.get(f"{site.url}/d/{site.ids['boat/lease.pdf']}?page=2")
    [link] = find(browser, ".place .button", "Open")
    assert link.get_attribute("href").endswith("/open#page=2")
    browser.expected = ("favicon",)
    link.click()
    shown = "return location.href.endsWith('/open#page=2') && document.contentType"
    eventually("the viewer has the PDF", lambda: browser.execute_script(shown) == "application/pdf")


def test_a_text_opens_as_plain_text_in_a_sandbox_with_its_own_name(browser, site):
    document = send(site, "opened/Käse <b>.md", "# Käse\n\n<script>document.title = 'hurt'</script>".encode())
    browser.get(f"{site.url}/d/{document}/open")
    assert "<script>document.title = 'hurt'</script>" in find(browser, "pre", "Käse")[0].text
    assert browser.title != "hurt"
    answer = httpx2.get(f"{site.url}/d/{document}/open")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == "inline; filename*=utf-8''K%C3%A4se%20%3Cb%3E.md"
    assert answer.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(("name", "content"), [
    ("page.html", b"<h1>Oars</h1><script>1</script><p>Oars are of ash.</p>"),
    ("mail.eml", MAIL),
])  # fmt: skip
def test_a_page_or_mail_is_never_opened_in_the_browser(read, site, name, content):
    document = send(site, f"opened/{name}", content)
    assert httpx2.get(f"{site.url}/d/{document}/open", headers={"Accept": "*/*"}).status_code == 404
    assert "Open" not in read(f"{site.url}/d/{document}").page.xpath("//*[@class='place']//a/text()")


def test_a_pdf_has_this_type_and_no_other_and_the_attachment_of_a_mail_opens_too(site):
    document = site.ids["boat/lease.pdf"]
    answer = httpx2.get(f"{site.url}/d/{document}/open")
    assert answer.headers.get_list("content-type") == ["application/pdf"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    mail = MAIL.replace(b"14,Anna", b"16,Cleo").replace(b"in May", b"of Cleo")  # other tests delete the usual one
    form = {"files": {"file": ("cleo.eml", mail)}, "data": {"source_path": "boat/cleo.eml"}}
    asked = {"part_of": site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]}
    [part] = eventually("it is read", lambda: site.engine.get("documents", params=asked).json()["documents"])
    assert "16,Cleo" in httpx2.get(f"{site.url}/d/{part['id']}/open").text
    site.engine.delete(f"documents/{asked['part_of']}").raise_for_status()


@pytest.mark.parametrize(
    ("typed", "found"),
    [("oats", 1), ("OATS.CSV", 1), (".csv", 1), ("oats*", 1), ("ats*", 0), ("barn.txt", 1)],
)
def test_a_part_of_a_file_name_is_enough_to_find_it(read, site, harvest, typed, found):
    for place in ("documents?path=harvest/&name=", "?q=path:harvest/&name="):
        page = read(f"{site.url}/{place}{typed}").page
        assert len(page.xpath("//input[@class='pick']")) == found
        assert typed in page.xpath("//input[@name='name']/@value")


@pytest.mark.parametrize("typed", ["harvest/", "harvest/*", "./harvest/", "harvest%5C"])
def test_the_beginning_of_a_path_may_be_typed_as_in_a_terminal(read, site, harvest, typed):
    page = read(f"{site.url}/documents?path={typed}").page
    assert len(page.xpath("//input[@class='pick']")) == 3


def test_tags_may_be_typed_with_their_sign(read, site, harvest):
    reader = read(f"{site.url}/d/{harvest['barn.txt']}")
    reader.submit("tags$", add="#grain #store/loft, dry place")
    tags = site.engine.get(f"documents/{harvest['barn.txt']}").json()["tags"]
    assert {*tags} == {"grain", "store/loft", "dry place"}


def test_a_link_is_copied_also_where_the_browser_has_no_clipboard(browser, site, harvest):
    browser.get(f"{site.url}/d/{harvest['barn.txt']}")
    browser.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    browser.execute_script(
        "document.addEventListener('copy', () => (window.copied = String(document.activeElement.value)))"
    )
    find(browser, ".more summary")[0].click()
    find(browser, "[data-copy=link]")[0].click()
    assert find(browser, ".toast", "Copied")
    assert browser.execute_script("return window.copied") == browser.current_url


def test_a_note_is_downloaded_as_markdown_with_the_front_matter_of_an_export(reading, site):
    note = {"title": "Kiln / door", "text": "# Kiln\n\nThe door is *hot*.", "tags": ["kiln"]}
    id_ = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    reader = reading(f"{site.url}/d/{id_}")
    [link] = reader.page.xpath("//a[@download]")
    assert link.text == "Download"
    answer = reader.http.get(link.get("href"))
    assert answer.headers["Content-Disposition"] == "attachment; filename*=utf-8''Kiln%20-%20door.md"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    front, _, text = answer.text.partition("\n---\n\n")
    assert front.startswith("---\ntitle: Kiln / door\ntags:\n- kiln\ncreated: ")
    assert text == note["text"]


def test_a_printed_page_has_the_title_and_the_text_only(browser, site):
    browser.get(f"{site.url}/d/{site.ids['Boat']}")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = browser.execute_script("return document.body.innerText")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown.startswith("Boat\n")
    assert shown.rstrip().endswith("pump --prime 3")
    assert not [word for word in ("Search", "Edit", "Linked from", "Similar", "#spring", "Outline") if word in shown]
