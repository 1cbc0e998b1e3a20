"""The guide at /help in a browser, without a network."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.conftest import ROOT
from tests.web.conftest import browser, find, hosts_asked, one_browser  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("default")]  # warnings are the browser driver's own
LINKS = "aside nav .outline li:not(.l1) a"


@pytest.fixture(scope="module")
def address(start_server, tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("help"), KB_APPS="api,web") as server:
        yield f"{server.url}/help/"


def click(browser, element):  # noqa: F811 - not the fixture
    """Click what may lie outside the window, as a person who scrolls there first."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def test_every_page_can_be_reached_by_clicking_and_asks_this_machine_alone(browser, address):  # noqa: F811 - fixtures
    browser.get(address)
    pages = list(dict.fromkeys(each.get_attribute("href") for each in browser.find_elements("css selector", LINKS)))
    assert len(pages) > 40
    for page in pages:
        click(browser, next(each for each in find(browser, LINKS) if each.get_attribute("href") == page))
        assert browser.current_url == page
        assert find(browser, "article h1")[0].text
        assert [each.get_attribute("href") for each in find(browser, LINKS + "[aria-current=page]")] == [page]
    assert hosts_asked(browser) == {"127.0.0.1"}
    shown = {urlsplit(page).path.removeprefix("/help/") + ".md" for page in pages}
    written = {
        str(each.relative_to(ROOT / "docs"))
        for folder in ("docs", "docs/reference")
        for each in (ROOT / folder).glob("*.md")
    }
    assert written - shown == {"README.md"}


@pytest.mark.parametrize(("word", "page"), [("KB_PARSE_SECONDS", "reference/settings"), ("kbignore", "sync")])
def test_a_word_is_found_and_its_page_opens(browser, address, word, page):  # noqa: F811 - fixtures
    browser.get(address)
    field = find(browser, "main input[name=q]")[0]
    field.send_keys(word)
    field.submit()
    results = {urlsplit(each.get_attribute("href")).path: each for each in find(browser, ".results h2 a")}
    assert f"/help/{page}" in results
    click(browser, results[f"/help/{page}"])
    assert word.lower() in find(browser, "article")[0].text.lower()


def test_each_block_of_code_can_be_copied(browser, address):  # noqa: F811 - fixtures
    browser.get(f"{address}start")
    blocks, buttons = find(browser, ".text pre"), find(browser, ".text [data-copy]")
    assert len(blocks) == len(buttons) > 3
    click(browser, buttons[0])
    assert find(browser, "#status", "Copied")
