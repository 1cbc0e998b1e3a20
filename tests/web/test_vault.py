"""A vault of Obsidian in the web interface."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from lxml import html
from selenium.webdriver.common.by import By

from tests.conftest import ALL_APPS, ROOT
from tests.support.eventually import eventually
from tests.support.vault import vault
from tests.web.conftest import find
from tests.web.shots import shoot, theme, width
from tests.web.test_looks import AXE

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><script>window.hurt=1</script><text y="20">Flue</text></svg>'


@pytest.fixture(scope="module")
def notes(start_server, tmp_path_factory):
    """A server with the vault; the ids of its documents by path."""
    files = vault(days=8) | {
        "attachments/flue.svg": DRAWING,
        "House/Flue.md": b"# Flue\n\n![[flue.svg]]\n\n![The flue](../attachments/flue.svg)\n",
    }
    with (
        start_server(tmp_path_factory.mktemp("vault"), KB_APPS=ALL_APPS) as server,
        httpx2.Client(base_url=f"{server.url}/api/v1", timeout=60) as engine,
    ):
        ids = {}
        for path, content in files.items():
            form = {"files": {"file": (path.rpartition("/")[2], content)}, "data": {"source_path": f"vault/{path}"}}
            ids[path] = engine.post("jobs", params={"wait": 60}, **form).json()["document_id"]
        yield server.url, ids


def page(notes, path, query=""):
    url, ids = notes
    text = httpx2.get(f"{url}/d/{ids[path]}{query}", headers={"Accept": "text/html"}).text
    document = html.fromstring(text, base_url=f"{url}/d/{ids[path]}")
    document.make_links_absolute()
    return document


def classed(document, name, below=""):
    """The elements with a class, or those below them."""
    return document.xpath(f"//*[contains(concat(' ', @class, ' '), ' {name} ')]{below}")


def links(document, within):
    return {each.text_content(): each.get("href") for each in reversed(classed(document, within, "//a"))}


def test_links_lead_to_documents_and_those_documents_lead_back(notes):
    url, ids = notes
    kiln = page(notes, "Projects/Kiln rebuild.md")
    found = links(kiln, "text")
    assert found["Bricks"] == f"{url}/d/{ids['Projects/Bricks.md']}"
    assert found["the list of bricks"] == found["Bricks"]
    assert found["Bricks > Prices"] == f"{found['Bricks']}#h-prices"
    assert found["the insurer"] == f"{url}/d/{ids['House/Insurance.md']}"
    assert found["#projects/kiln"].endswith("/documents?tag=projects%2Fkiln")
    [missing] = classed(kiln, "missing")
    assert (missing.text, missing.get("href")) == ("The old chimney", f"{url}/new?title=The+old+chimney")
    assert "kb doesn't change files." in kiln.text_content()
    [edit] = kiln.xpath("//details[contains(@class, 'menu')]//a[text()='Edit']")
    assert html.fromstring(httpx2.get(edit.get("href")).text).xpath("//details[contains(@class, 'about')][@open]")
    back = links(page(notes, "Projects/Bricks.md"), "backlinks")
    assert back == {"Kiln rebuild": f"{url}/d/{ids['Projects/Kiln rebuild.md']}"}
    assert "[[" not in classed(page(notes, "Projects/Bricks.md"), "backlinks")[0].text_content()


def test_a_page_has_one_title_and_the_fields_of_the_front_matter(notes):
    kiln = page(notes, "Projects/Kiln rebuild.md")
    assert [each.text_content() for each in [*kiln.iter("h1"), *classed(kiln, "again")]] == ["Kiln rebuild"] * 2
    fields = dict(
        zip(
            *([each.text_content() for each in classed(kiln, "head", f"//{tag}")] for tag in ("dt", "dd")),
            strict=True,
        )
    )
    assert fields == {"aliases": "The kiln", "status": "in progress", "supplier": "Bricks"}


def test_embedded_notes_are_shown_once_even_if_they_embed_each_other(notes):
    embeds = classed(page(notes, "Projects/Bricks.md"), "embed")
    assert len(embeds) == 1
    assert "needs new bricks" in embeds[0].text_content()
    assert "4.50" not in embeds[0].text_content()
    [part] = classed(page(notes, "Projects/Kiln rebuild.md"), "embed")
    assert "4.50" in part.text_content()
    assert "Only from" not in part.text_content()


def test_a_page_of_a_pdf_is_shown_where_it_is_embedded(notes):
    [picture] = classed(page(notes, "House/Insurance.md"), "text", "//img")
    answer = httpx2.get(picture.get("src"))
    assert answer.headers["content-type"] == "image/png"


def test_a_picture_is_shown_in_a_sandbox_and_nothing_else_is_a_picture(browser, notes):
    url, ids = notes
    answer = httpx2.get(f"{url}/d/{ids['attachments/flue.svg']}/picture")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert httpx2.get(f"{url}/d/{ids['House/Flue.md']}/picture").status_code == 404
    assert httpx2.get(f"{url}/d/99999/picture").status_code == 404
    browser.get(f"{url}/d/{ids['House/Flue.md']}")
    widths = "return [...document.querySelectorAll('.text img')].map((each) => each.naturalWidth)"
    eventually("both pictures are drawn", lambda: browser.execute_script(widths) == [90, 90])
    browser.expected = ("sandboxed", "Content Security Policy", "favicon")
    browser.get(f"{url}/d/{ids['attachments/flue.svg']}/picture")
    assert browser.execute_script("return window.hurt") is None


def test_a_picture_is_found_by_its_name_and_shown(browser, notes):
    url, ids = notes
    door = ids["attachments/kiln-door.png"]
    found = httpx2.post(f"{url}/api/v1/search", json={"query": "kiln-door"}).json()["results"]
    assert found[0]["document_id"] == door
    assert found[0]["doc_type"] == "image"
    pictures = classed(page(notes, "Projects/Kiln rebuild.md"), "text", "//img")
    assert [each.get("src") for each in pictures] == [f"{url}/d/{door}/picture"] * 2
    assert [each.get("width") for each in pictures] == ["320", None]
    browser.get(f"{url}/d/{door}")
    drawn = "return document.querySelector('.preview-of img').naturalWidth"
    eventually("the picture is drawn", lambda: browser.execute_script(drawn) == 640)


def test_a_note_of_a_synced_vault_opens_in_obsidian_on_this_machine_only(notes, tmp_path):
    url, _ = notes
    (tmp_path / "vault" / ".obsidian").mkdir(parents=True)
    claim = {"prefix": "vault/", "machine": "m", "host": socket.gethostname(), "path": str(tmp_path / "vault")}
    found = {}
    for name, change in {
        "here": {},
        "elsewhere": {"host": "another"},
        "plain": {"path": str(tmp_path / "plain")},
        "silly": {"path": "a\tb"},
    }.items():
        httpx2.put(f"{url}/api/v1/folders", json=claim | change | {"take_over": True}).raise_for_status()
        shown = page(notes, "House/Insurance.md")
        found[name] = shown.xpath("//a[starts-with(@href, 'obsidian:')]/@href")
        assert shown.xpath("//button[text()='Copy path']/@title")[0].endswith("House/Insurance.md")
    file = tmp_path / "vault" / "House" / "Insurance.md"
    assert found.pop("here") == [f"obsidian://open?path={quote(str(file), safe='')}"]
    assert set(map(tuple, found.values())) == {()}
    assert not page(notes, "attachments/policy.pdf").xpath("//a[starts-with(@href, 'obsidian:')]")


def test_a_pdf_shows_its_pages_first_and_its_text_on_demand(browser, notes):
    url, ids = notes
    width(browser, 390)
    browser.get(f"{url}/d/{ids['attachments/policy.pdf']}")
    picture = find(browser, ".looks img")[0]
    assert picture.location["y"] < 800
    assert not browser.find_element(By.CSS_SELECTOR, ".text").is_displayed()
    find(browser, ".page-text summary", "Text")[0].click()
    assert find(browser, ".text", "The policy covers fire.")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_link_to_a_heading_or_a_block_shows_its_place(browser, notes):
    url, ids = notes
    browser.get(f"{url}/d/{ids['Projects/Bricks.md']}")
    find(browser, ".text a", "the cone bends")[0].click()
    find(browser, "h1", "Kiln rebuild")
    assert (
        browser.execute_script("return document.querySelector(':target').parentElement.innerText")
        == "Firing is finished when the cone bends."
    )


def test_a_passage_is_marked_in_a_folded_callout(browser, notes):
    url, ids = notes
    found = httpx2.post(
        f"{url}/api/v1/search", json={"query": "soft brush", "document_id": ids["Projects/Kiln rebuild.md"]}
    ).json()
    browser.get(f"{url}/d/{ids['Projects/Kiln rebuild.md']}?chunk={found['results'][0]['index']}&q=soft brush")
    assert find(browser, ".hit details mark", "brush")


def test_results_show_no_signs_of_markdown(notes):
    url, _ = notes
    text = httpx2.get(f"{url}/?q=kiln bricks prices", headers={"Accept": "text/html"}).text
    shown = " ".join(each.text_content() for each in classed(html.fromstring(text), "results"))
    assert "Soft" in shown
    assert not [sign for sign in ("[[", "]]", "![", "|", "- [", "[!") if sign in shown]


@pytest.mark.parametrize("name", ["Projects/Kiln rebuild.md", "Projects/Bricks.md", "Reading/Дача.md"])
def test_notes_look_right_on_a_phone_and_a_desktop_in_both_themes(browser, notes, name):
    """And a picture of each is kept."""
    url, ids = notes
    folder = Path(os.environ.get("KB_SHOTS", ROOT / "build" / "pages"))
    folder.mkdir(parents=True, exist_ok=True)
    wrong = {}
    for pixels in (390, 1280):
        width(browser, pixels)
        browser.get(f"{url}/d/{ids[name]}")
        find(browser, "main")
        browser.execute_script(AXE.read_text())
        assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
        for look in ("light", "dark"):
            theme(browser, look)
            shoot(browser, folder / f"vault-{ids[name]}-{pixels}-{look}.png")
            found = browser.execute_async_script("axe.run().then(arguments[0])")["violations"]
            wrong |= {(pixels, look, each["id"]): [node["html"][:150] for node in each["nodes"]] for each in found}
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    theme(browser, "")
    assert wrong == {}
