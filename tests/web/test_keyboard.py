"""Tasks of a day with the keyboard alone: nothing in these tests points or clicks."""

from __future__ import annotations

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.conftest import KEY
from tests.support.eventually import eventually
from tests.web.conftest import find, read
from tests.web.test_flows import press
from tests.web.test_many import fail, tagged
from tests.web.test_results import add

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
MOST_STEPS = 60


def together(browser, key, letter):
    ActionChains(browser).key_down(key).send_keys(letter).key_up(key).perform()


def tab_to(browser, words):
    """Press Tab until the focus is on an element with these words, and shows where it is."""
    for _ in range(MOST_STEPS):
        press(browser, Keys.TAB)
        focused = browser.switch_to.active_element
        if focused.tag_name not in ("a", "button", "input", "summary"):
            continue
        if words in (focused.get_attribute("aria-label") or "") or words in focused.text:
            assert browser.execute_script("return arguments[0].matches(':focus-visible')", focused)
            return focused
    raise AssertionError(f"{MOST_STEPS} tabs reach nothing with the words {words!r}")


def go_to(browser, page):
    """Open a page with the dialog for searches and commands."""
    together(browser, Keys.CONTROL, "k")
    find(browser, "#palette input")
    press(browser, page)
    find(browser, "#palette li", page)
    for _ in range(MOST_STEPS):
        if read(browser, "#palette [aria-selected=true] span") == [page]:
            return press(browser, Keys.ENTER)
        press(browser, Keys.ARROW_DOWN)
    raise AssertionError(f"the dialog has no page {page!r}")


@pytest.fixture
def capstans(browser, site):
    """Four files about capstans in two folders, and a browser on the start page."""
    ids = [
        add(
            site,
            f"keys/{place}/capstan {number}.md",
            f"# Capstan {number}\n\nThe capstan of berth {number}.",
            "capstan",
        )
        for number, place in enumerate(("bow", "bow", "stern", "stern"))
    ]
    browser.get(site.url)
    find(browser, "#q")
    yield ids
    for each in ids:
        site.engine.delete(f"documents/{each}")


def test_a_document_is_found_narrowed_opened_and_returned_from(browser, site, capstans):
    press(browser, "capstan berth")
    find(browser, ".results h2", "Capstan")
    tab_to(browser, "capstan")
    press(browser, Keys.ENTER)
    find(browser, "#facets .set", "capstan")
    assert "tag=capstan" in browser.current_url
    press(browser, "/", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    title = browser.switch_to.active_element.text
    press(browser, Keys.ENTER)
    find(browser, "article h1", title)
    press(browser, Keys.ESCAPE)
    find(browser, ".results")
    assert browser.switch_to.active_element.text == title
    assert "tag=capstan" in browser.current_url


def test_escape_leaves_the_empty_search_field_so_that_letters_are_shortcuts(browser, site, capstans):
    press(browser, Keys.ESCAPE, "d")
    assert find(browser, "h1", "Documents")


def test_results_that_come_after_a_row_was_selected_leave_it_selected_and_focused(browser, site, capstans):
    press(browser, "capstan 1")
    find(browser, ".results h2", "Capstan 1")
    eventually("the last letter is answered", lambda: browser.current_url.endswith("?q=capstan+1"))
    press(browser, Keys.ARROW_DOWN, "x")
    find(browser, "#many", "1 selected")
    chosen = browser.switch_to.active_element.get_attribute("pathname")
    browser.execute_script(
        "const field = document.querySelector('#q'); field.value = 'capstan';"
        " field.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    eventually("the other words are answered", lambda: browser.current_url.endswith("?q=capstan"))
    assert browser.switch_to.active_element.get_attribute("pathname") == chosen
    assert find(browser, "#many", "1 selected")
    press(browser, "x")
    assert not browser.execute_script("return document.querySelector('.pick:checked')")


def test_several_documents_are_tagged_and_the_change_is_undone(browser, site, capstans):
    press(browser, "capstan berth")
    find(browser, ".results h2", "Capstan")
    press(browser, Keys.ARROW_DOWN, "x", Keys.ARROW_DOWN, "x")
    find(browser, "#many", "2 selected")
    press(browser, "t")
    eventually("the field has the focus", lambda: browser.switch_to.active_element.get_attribute("name") == "add")
    press(browser, "greased", Keys.ENTER)
    find(browser, ".notice", "Tags changed in 2 documents.")
    assert len(tagged(site, "greased")) == 2
    browser.execute_script("document.activeElement.blur()")
    press(browser, "u")
    find(browser, ".notice", "Undone")
    assert not tagged(site, "greased")


def test_a_note_is_written_with_a_link_and_a_tag_and_saved(browser, site, capstans):
    press(browser, Keys.ESCAPE)
    browser.execute_script("document.activeElement.blur()")
    press(browser, "n")
    find(browser, "h1", "New note")
    press(browser, "Grease the [[capstan 2")
    find(browser, "[role=option]", "capstan 2")
    press(browser, Keys.ENTER, " today")
    together(browser, Keys.SHIFT, Keys.TAB)
    press(browser, Keys.END, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert browser.switch_to.active_element.get_attribute("aria-label") == "Link"
    while browser.switch_to.active_element.get_attribute("name") != "tags":
        press(browser, Keys.TAB)
    press(browser, "capst")
    find(browser, "[role=option]", "capstan")
    press(browser, Keys.ARROW_DOWN, Keys.ENTER)
    together(browser, Keys.CONTROL, "s")
    find(browser, "#status", "Saved")
    assert "capstan 2" in find(browser, "article", "Grease the")[0].text
    assert find(browser, ".about summary", "#capstan")
    number = int(browser.current_url.rpartition("/")[2])
    site.engine.delete(f"documents/{number}").raise_for_status()


def test_a_deleted_document_is_restored(browser, site, capstans):
    site.engine.delete(f"documents/{capstans[3]}").raise_for_status()
    go_to(browser, "Bin")
    find(browser, "h1", "Bin")
    tab_to(browser, "Restore: Capstan 3")
    press(browser, Keys.ENTER)
    assert find(browser, "article h1", "Capstan 3")
    assert find(browser, ".notice", "Restored “Capstan 3”.")


def test_a_document_is_deleted_and_the_operation_undone_from_the_list_of_changes(browser, site, capstans):
    press(browser, "capstan berth 0")
    find(browser, ".results h2", "Capstan 0")
    press(browser, Keys.ARROW_DOWN, Keys.ENTER)
    find(browser, "article h1")
    tab_to(browser, "More actions")
    press(browser, Keys.ENTER)
    tab_to(browser, "Delete")
    press(browser, Keys.ENTER)
    find(browser, ".notice", "Deleted")
    assert len(tagged(site, "capstan")) == 3
    go_to(browser, "Changes and undo")
    find(browser, "h1", "Changes")
    tab_to(browser, "Undo operation")
    press(browser, Keys.ENTER)
    find(browser, "h1", "Undo")
    tab_to(browser, "Undo")
    press(browser, Keys.ENTER)
    find(browser, ".notice", "Undone")
    assert len(tagged(site, "capstan")) == 4


def test_duplicates_are_found_and_only_one_is_kept(browser, site, capstans):
    copies = [
        add(site, f"keys/{place}/copy.md", "# A copied winch\n\nThe winch of berth 9.", "copied") for place in "ab"
    ]
    go_to(browser, "Duplicates")
    find(browser, ".pair", "A copied winch")
    tab_to(browser, "Keep only this: keys/a/copy.md")
    press(browser, Keys.ENTER)
    find(browser, ".notice", "Deleted 1 document.")
    assert tagged(site, "copied") == {copies[0]}
    browser.execute_script("document.activeElement.blur()")
    press(browser, "u")
    find(browser, ".notice", "Undone")
    assert tagged(site, "copied") == set(copies)
    for each in copies:
        site.engine.delete(f"documents/{each}")


def test_a_key_is_made(browser, guarded):
    browser.expected = ("401",)
    browser.get(guarded.url)
    find(browser, "[name=key]")
    press(browser, KEY, Keys.ENTER)
    find(browser, "#q")
    go_to(browser, "Keys")
    find(browser, "h1", "Keys")
    while browser.switch_to.active_element.get_attribute("name") != "name":
        press(browser, Keys.TAB)
    press(browser, "by-keyboard", Keys.ENTER)
    assert find(browser, ".good pre")
    assert find(browser, ".rows li", "by-keyboard")


def test_a_failed_file_is_dismissed_after_its_reason_was_read(browser, site, capstans):
    job = fail(site, "by keys")
    go_to(browser, "Failed jobs")
    find(browser, ".reason")
    tab_to(browser, "Dismiss: by keys.pdf")
    press(browser, Keys.ENTER)
    find(browser, "h1", "Recently added")
    assert job not in [each["id"] for each in site.engine.get("jobs").json()["jobs"]]


def test_a_ticked_task_stays_where_it_is_on_the_screen(browser, site):
    text = "\n\n".join([*("A line about the mooring.",) * 30, "- [ ] grease it\n- [ ] paint it", *("And more.",) * 30])
    note = site.engine.post("jobs", params={"wait": 30}, json={"text": text}).json()["document_id"]
    browser.get(f"{site.url}/d/{note}")
    where = "const task = document.querySelector(\"[aria-label^='{}']\"); {} return task.getBoundingClientRect().top"
    before = browser.execute_script(where.format("grease", "task.scrollIntoView({ block: 'center' }); task.focus();"))
    press(browser, Keys.SPACE)
    find(browser, ".notice", "grease it")
    eventually(
        "it is ticked", lambda: browser.find_elements("css selector", "[aria-label^='grease'][aria-checked=true]")
    )
    after = eventually(
        "it stays", lambda: browser.execute_script(where.format("grease", "")), lambda at: abs(at - before) < 2
    )
    assert abs(after - before) < 2
    site.engine.delete(f"documents/{note}").raise_for_status()
