"""The site of the docs in a browser: what `make docs` makes, as `kb serve` shows it, without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from threading import Thread
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.applications import Starlette

from kb.web import guide
from tests.conftest import ROOT, free_port, without_settings
from tests.support.eventually import eventually

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("default")]  # warnings are the browser driver's own
WAIT = 15
LINKS = ".sidebar-tree a.reference.internal"


@contextmanager
def served(folder):
    """The address of the guide while it is served on this machine, with all that it may not do."""
    patch = pytest.MonkeyPatch()
    patch.setattr(guide, "SITE", folder)
    app, port = Starlette(routes=guide.routes()), free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = Thread(target=server.run)
    thread.start()
    try:
        eventually("it serves", lambda: server.started, bool)
        yield f"http://127.0.0.1:{port}/help"
    finally:
        server.should_exit = True
        thread.join()
        patch.undo()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "docs", str(folder)]
    subprocess.run(build, cwd=ROOT, env=without_settings(), check=True)
    return folder


@pytest.fixture(scope="module")
def address(site):
    with served(site) as address:
        yield address


@pytest.fixture
def browser():
    from selenium import webdriver

    program = shutil.which("chromedriver")
    assert program, "there is no chromedriver here; tests/docs/browser.sh brings it"  # selenium would download one
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(program))
    yield driver
    driver.quit()


def asked(browser):
    """The hosts of all requests since the last call, and how many there were."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    return {urlsplit(url).hostname for url in sent if urlsplit(url).scheme != "data"}, len(sent)


def find(browser, selector):
    """What a person sees there, once it is there."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, WAIT).until(
        lambda _: [each for each in browser.find_elements(By.CSS_SELECTOR, selector) if each.is_displayed()]
    )


def click(browser, element):
    """Click what may lie outside the window, as a person who scrolls there first."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def test_every_page_can_be_reached_by_clicking_and_asks_this_machine_alone(browser, address, site):
    browser.get(f"{address}/README.html")
    pages = [each.get_attribute("href") for each in find(browser, LINKS)]
    assert len(pages) >= 14
    for page in pages:
        click(browser, next(each for each in find(browser, LINKS) if each.get_attribute("href") == page))
        assert browser.current_url.rstrip("#") == page
        assert find(browser, "article h1")[0].text.strip("¶")
    hosts, count = asked(browser)
    assert hosts == {"127.0.0.1"}
    assert count > len(pages)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    shown = {urlsplit(page).path.removeprefix("/help/") for page in pages}
    top = {str(each.relative_to(site)) for each in (*site.glob("*.html"), *site.glob("reference/*.html"))}
    assert top - shown == {"README.html", "genindex.html", "search.html"}


@pytest.mark.parametrize(("word", "page"), [("KB_PARSE_SECONDS", "reference/settings.html"), ("kbignore", "sync.html")])
def test_a_word_is_found_and_its_page_opens(browser, address, word, page):
    browser.get(f"{address}/README.html")
    field = find(browser, "input.sidebar-search")[0]
    field.send_keys(word)
    field.submit()
    results = {urlsplit(each.get_attribute("href")).path: each for each in find(browser, "ul.search li a")}
    assert f"/help/{page}" in results
    click(browser, results[f"/help/{page}"])
    assert word.lower() in find(browser, "article")[0].text.lower()
    assert asked(browser)[0] == {"127.0.0.1"}


def test_each_block_of_code_can_be_copied(browser, address):
    browser.get(f"{address}/start.html")
    blocks, buttons = find(browser, "div.highlight"), browser.find_elements("css selector", "div.highlight button.copy")
    assert len(blocks) == len(buttons) > 3
    click(browser, buttons[0])
    assert find(browser, "div.highlight button.copy")[0].text == "Copied"
