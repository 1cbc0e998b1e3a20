"""What a person writes is saved, or stays on the screen, whatever happens to kb meanwhile."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import ExitStack

import httpx2
import pytest

from tests.conftest import KEY, free_port
from tests.support.eventually import eventually
from tests.web.conftest import find
from tests.web.test_pages import Reader

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
SAVES = int(os.environ.get("KB_SAVES", "12"))
OWNER = {"Authorization": f"Bearer {KEY}"}
EXPECTED = ("40", "41", "50", "ERR_")
FILL = """try { for (let size = 1 << 20; size > 16; size /= 2) for (let at = 0; at < 12; at++)
  try { localStorage.setItem(`fill-${size}-${at}`, "x".repeat(size)); } catch { break; } } catch {}"""


class Stage:
    """A server that things happen to."""

    def __init__(self, start_server, folder, browser):
        self.browser, self.folder, self.port, self.start_server = browser, folder, free_port(), start_server
        self.running = ExitStack()
        self.start()

    def start(self):
        self.server = self.running.enter_context(
            self.start_server(self.folder, KB_API_KEY=KEY, KB_APPS="api,web", port=self.port)
        )
        self.url = self.server.url

    def sign_in(self):
        """Sign in as another tab of the browser does."""
        reader = Reader(f"{self.url}/sign-in")
        reader.submit("/sign-in$", key=KEY)
        cookie = {"name": "kb_session", "value": reader.http.cookies["kb_session"], "url": self.url, "httpOnly": True}
        self.browser.execute_cdp_cmd("Network.setCookie", cookie)
        reader.http.close()

    def killed(self):
        self.server.process.kill()
        self.server.process.wait()
        time.sleep(random.random())
        self.start()

    def frozen(self):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(1 + random.random())
        self.server.process.send_signal(signal.SIGCONT)

    def offline(self):
        off = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.browser.execute_cdp_cmd("Network.emulateNetworkConditions", off)
        time.sleep(1)
        self.browser.execute_cdp_cmd("Network.emulateNetworkConditions", off | {"offline": False})

    def signed_out(self):
        self.browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
        time.sleep(random.random())
        self.sign_in()

    def crowded(self):
        self.browser.execute_script(FILL)


@pytest.fixture
def stage(start_server, tmp_path, browser):
    browser.expected = EXPECTED
    stage = Stage(start_server, tmp_path, browser)
    browser.get(f"{stage.url}/sign-in")
    browser.execute_script("localStorage.clear()")
    stage.sign_in()
    with stage.running:
        yield stage


def write(browser, text):
    field = find(browser, "#text")[0]
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        field,
        text,
    )


@pytest.mark.slow
def test_no_word_is_lost_when_something_happens_at_any_moment_of_a_save(stage, browser):
    """Each text is saved in the end, by itself, as it was written."""
    chance = random.Random(5)
    faults = [stage.killed, stage.frozen, stage.offline, stage.signed_out, stage.crowded]
    written = {}
    for number in range(SAVES):
        eventually("kb is there", lambda: httpx2.get(f"{stage.url}/sign-in").is_success)
        browser.get(f"{stage.url}/new")
        browser.execute_script("localStorage.clear()")
        text = f"Save {number}\n\n" + "\n".join(f"word{number}x{each} stays here" for each in range(40))
        write(browser, text)
        fault = faults[number % len(faults)]
        is_first = chance.random() < 0.5
        save = "document.querySelector('.editor').requestSubmit()"
        if is_first:
            browser.execute_script(f"setTimeout(() => {save}, {chance.randrange(900)})")
            fault()
        else:
            browser.execute_script(save)
            time.sleep(chance.random() / 4)
            if "/d/" not in browser.current_url:
                fault()

        def is_saved():
            if find_link := browser.execute_script("return document.querySelector('[data-said] a')?.href"):
                assert find_link.endswith("/sign-in")
                browser.execute_script("window.dispatchEvent(new Event('focus'))")
            return "/d/" in browser.current_url

        eventually(f"{fault.__name__}: save {number} ends", is_saved)
        written[int(browser.current_url.partition("/d/")[2].partition("?")[0])] = text
    assert len(written) == SAVES
    for document, text in written.items():
        shown = httpx2.get(f"{stage.url}/api/v1/documents/{document}", headers=OWNER).json()
        assert "".join(chunk["text"] for chunk in shown["chunks"]) == text


def test_a_save_says_what_happened_and_tries_again(stage, browser):
    browser.get(f"{stage.url}/new")
    write(browser, "Written while kb was away.")
    stage.server.process.kill()
    stage.server.process.wait()
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "[data-said].bad", "kb does not respond. Your text stays here, and kb will try again.")
    assert find(browser, "#text")[0].get_property("value") == "Written while kb was away."
    stage.start()
    assert find(browser, "article", "Written while kb was away.")


def test_an_ended_session_keeps_the_page_and_saves_after_the_sign_in(stage, browser):
    browser.get(f"{stage.url}/new")
    write(browser, "Written without a session.")
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "[data-said] a", "sign in")
    stage.sign_in()
    browser.execute_script("window.dispatchEvent(new Event('focus'))")
    assert find(browser, "article", "Written without a session.")


def test_two_changes_of_different_lines_are_combined_and_the_history_says_so(stage, browser):
    note = {"title": "Both", "text": "One.\n\nTwo.\n\nThree.\n"}
    with httpx2.Client(base_url=f"{stage.url}/api/v1", headers=OWNER) as engine:
        document = engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
        browser.get(f"{stage.url}/d/{document}/edit")
        engine.patch(f"notes/{document}", json={"text": "One of an agent.\n\nTwo.\n\nThree.\n"}).raise_for_status()
        write(browser, "One.\n\nTwo.\n\nThree of mine.\n")
        find(browser, ".primary", "Save")[0].click()
        find(browser, ".notice", "kb combined both changes.")
        shown = engine.get(f"documents/{document}").json()
    assert "".join(chunk["text"] for chunk in shown["chunks"]) == "One of an agent.\n\nTwo.\n\nThree of mine.\n"


def test_the_sign_out_takes_what_was_typed_from_the_browser_and_asks_first(stage, browser):
    browser.get(f"{stage.url}/new")
    write(browser, "A draft.")
    saved = """[{"query": "hedges", "place": "?q=hedges"}]"""
    browser.execute_script("localStorage.setItem('kb-saved', arguments[0]); window.onbeforeunload = null", saved)
    browser.get(f"{stage.url}/documents")
    leave = "return Object.keys(localStorage).filter((name) => name.startsWith('kb-')).length"
    eventually("the draft is kept", lambda: browser.execute_script(leave) == 2)
    find(browser, ".out button")[0].click()
    assert "a draft that isn’t saved and a saved search" in browser.switch_to.alert.text
    browser.switch_to.alert.dismiss()
    assert browser.execute_script(leave) == 2
    find(browser, ".out button")[0].click()
    browser.switch_to.alert.accept()
    find(browser, "[name=key]")
    assert browser.execute_script(leave) == 0
