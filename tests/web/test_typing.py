"""What keys and pasted texts do in the editor, and nothing that an input method composes."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.support.eventually import eventually
from tests.web.conftest import find, places_asked, told
from tests.web.shots import width

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]

PASTE = """const field = document.querySelector("#text"), data = new DataTransfer();
data.setData("text/html", arguments[0]); data.setData("text/plain", "as it reads");
field.focus(); field.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));"""


@pytest.fixture
def text(browser, site):
    browser.expected = ("beforeunload",)
    browser.get(f"{site.url}/new")
    browser.execute_script("localStorage.clear()")
    yield find(browser, "#text")[0]
    browser.execute_script("localStorage.clear(); window.onbeforeunload = null")
    browser.get("about:blank")


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (("- ropes", Keys.ENTER, "flares", Keys.ENTER, Keys.ENTER, "Then"), "- ropes\n- flares\nThen"),
        (("9. nine", Keys.ENTER, "ten"), "9. nine\n10. ten"),
        (("- [x] done", Keys.ENTER, "next"), "- [x] done\n- [ ] next"),
        (("> said", Keys.ENTER, "more"), "> said\n> more"),
        (("Words", Keys.ENTER, "more"), "Words\nmore"),
    ],
)
def test_enter_continues_a_list_and_ends_it_in_an_empty_entry(text, typed, value):
    text.send_keys(*typed)
    assert text.get_property("value") == value


BACK = (Keys.SHIFT, Keys.TAB, Keys.SHIFT)


@pytest.mark.parametrize(
    ("typed", "value", "stays"),
    [
        (("- one", Keys.ENTER, "two", Keys.TAB, "!"), "- one\n  - two!", True),
        (("1. one", Keys.ENTER, "two", Keys.TAB), "1. one\n   2. two", True),
        (("- one", Keys.ENTER, "two", Keys.TAB, Keys.TAB), "- one\n  - two", False),
        (("- one", Keys.ENTER, "two", Keys.TAB, *BACK), "- one\n- two", True),
        (("- one", Keys.TAB), "- one", False),
        (("- one", Keys.ENTER, Keys.ENTER, "Words", Keys.TAB), "- one\nWords", False),
        (("- one", *BACK), "- one", False),
    ],
)
def test_tab_moves_an_entry_below_the_one_above_it_and_otherwise_leaves_the_field(browser, text, typed, value, stays):
    text.send_keys(*typed)
    assert text.get_property("value") == value
    assert (browser.switch_to.active_element == text) is stays


def test_ctrl_enter_saves(browser, site, text):
    text.send_keys("Saved with both keys", Keys.CONTROL, Keys.ENTER)
    eventually("it is saved", lambda: "/d/" in browser.current_url)


@pytest.mark.parametrize(
    ("html", "value"),
    [
        ("<h2>Tides</h2><p>High <b>water</b> at <i>noon</i>.</p>", "## Tides\n\nHigh **water** at *noon*."),
        ("<ul><li>one<ul><li>two</li></ul></li><li>three</li></ul>", "- one\n    - two\n- three"),
        ("<ol start=3><li>one</li><li>two</li></ol>", "3. one\n4. two"),
        ('<p><a href="https://e.org/a b(c)">a_b</a></p>', "[a\\_b](https://e.org/a%20b%28c%29)"),
        ("<table><tr><th>a</th><th>b|c</th></tr><tr><td>1</td></tr></table>", "| a | b\\|c |\n| --- | --- |\n| 1 |  |"),
        (
            "<p style='mso-list:l0 level1 lfo1'><span style='mso-list:Ignore'>·</span>one</p>"
            "<p style='mso-list:l0 level2 lfo1'><span style='mso-list:Ignore'>1.</span>two</p>",
            "- one\n    1. two",
        ),
        ("<script>alert(1)</script><style>x</style><p><b>safe</b></p>", "**safe**"),
        ("<b style='font-weight:normal'>plain <span style='font-weight:700'>strong</span></b>", "plain **strong**"),
        ("<span>no form</span>", "as it reads"),
    ],
)
def test_what_is_pasted_from_word_or_a_page_becomes_markdown(browser, text, html, value):
    browser.execute_script(PASTE, html)
    eventually("it is pasted", lambda: text.get_property("value"))
    assert text.get_property("value") == value


def compose(browser, *texts):
    for each in texts:
        composition = {"text": each, "selectionStart": len(each), "selectionEnd": len(each)}
        browser.execute_cdp_cmd("Input.imeSetComposition", composition)


def enter_as_safari(browser):
    """The Enter that ends a composition there comes after its end."""
    browser.execute_script(
        """document.activeElement.dispatchEvent(new KeyboardEvent("keydown",
        {key: "Enter", keyCode: 229, bubbles: true, cancelable: true}))"""
    )


def test_a_search_waits_for_the_end_of_a_composition(browser, site):
    browser.get(site.url)
    find(browser, "#q")[0].click()
    told(browser, "Network.requestWillBeSent")
    compose(browser, "に", "にほ", "にほんg")
    enter_as_safari(browser)
    browser.execute_async_script("setTimeout(arguments[0], 300)")
    assert "q=" not in browser.current_url
    assert "にほ" not in browser.execute_script("return JSON.stringify(localStorage)")
    browser.execute_cdp_cmd("Input.insertText", {"text": "日本語"})
    eventually("the search is made", lambda: "q=" in browser.current_url)
    assert places_asked(browser, site.url) >= {"/"}


@pytest.mark.parametrize("field", ["[name=title]", "#tags", "#text"])
def test_enter_that_ends_a_syllable_neither_sends_nor_leaves(browser, text, field):
    where = find(browser, field)[0]
    where.click()
    compose(browser, "にほんg")
    enter_as_safari(browser)
    assert browser.execute_script("return document.activeElement === arguments[0]", where)
    assert browser.current_url.endswith("/new")


@pytest.mark.parametrize(("pixels", "height"), [(1280, 640), (1280, 757), (1440, 900), (2560, 1300), (844, 390)])
def test_no_field_is_under_the_bar_with_save(browser, text, pixels, height):
    width(browser, pixels, height)
    for field in ("[name=title]", "#text", "#tags"):
        where = find(browser, field)[0]
        is_whole = browser.execute_script("return arguments[0].getBoundingClientRect().bottom <= innerHeight", where)
        assert is_whole or height < 640, field
        where.click()
        assert browser.execute_script("return document.activeElement === arguments[0]", where)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_composition_in_the_palette_opens_nothing(browser, site):
    browser.get(f"{site.url}/documents")
    find(browser, ".find")[0].click()
    find(browser, "#palette input")[0].click()
    compose(browser, "にほんg")
    enter_as_safari(browser)
    assert find(browser, "#palette input")
    assert browser.current_url.endswith("/documents")
