"""Tasks of people in the web interface, in a browser."""

from __future__ import annotations

import json
import time
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.conftest import KEY
from tests.support.eventually import eventually
from tests.support.pdf import pdf
from tests.web.conftest import find, follow, pages, places_asked, read
from tests.web.proxy import proxied

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]  # warnings are the browser driver's own


def press(browser, *keys):
    chain = ActionChains(browser)
    for key in keys:
        chain.send_keys(key)
    chain.perform()


def ask(browser, word):
    """Type a question and wait until it is the one that is answered."""
    press(browser, word)
    eventually("the address says what is shown", lambda: browser.current_url.endswith(f"?q={word}"))


def in_view(browser):
    """How many points the map shows."""
    find(browser, "#tally", "in view")
    return int(read(browser, "#tally")[0].split()[0].replace(",", ""))


def is_in_view(browser, element):
    return browser.execute_script(
        "const b = arguments[0].getBoundingClientRect(); return b.top >= 0 && b.top < innerHeight", element
    )


def test_a_question_is_answered_while_it_is_typed_and_stands_in_the_address(browser, site):
    browser.get(site.url)
    ask(browser, "carburettor")
    assert "Boat" in find(browser, ".results h2", "Boat")[0].text
    assert find(browser, ".results mark")[0].text == "carburettor"
    assert browser.title.startswith("carburettor")


def test_enter_in_the_search_field_shows_the_results_and_opens_none(browser, site):
    browser.get(f"{site.url}/")
    press(browser, "carburettor", Keys.ENTER)
    assert find(browser, ".hit-link", "Boat")
    press(browser, Keys.ENTER, Keys.ENTER)
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    assert browser.current_url.endswith("?q=carburettor")
    assert find(browser, ".results")
    press(browser, Keys.ARROW_DOWN, Keys.ENTER)
    assert find(browser, "article h1")
    browser.get(f"{site.url}/?q=zzzzqqq")
    press(browser, "/")
    press(browser, Keys.ENTER)
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    assert "?q=zzzzqqq" in browser.current_url


def test_results_are_reached_and_opened_with_keys_alone(browser, site):
    browser.get(f"{site.url}/?q=carburettor")
    press(browser, Keys.ARROW_DOWN)
    assert "Boat" in browser.switch_to.active_element.text
    press(browser, Keys.ESCAPE)
    assert browser.switch_to.active_element.get_attribute("id") == "q"
    press(browser, Keys.ARROW_DOWN, Keys.ENTER)
    assert find(browser, "article h1", "Boat")
    press(browser, "?")
    assert "Edit" in find(browser, "dialog")[0].text
    press(browser, Keys.ESCAPE)
    press(browser, Keys.ESCAPE)
    assert find(browser, ".results")


def test_a_link_to_a_passage_opens_with_it_marked_and_in_view(browser, site):
    long = "\n\n".join(f"Paragraph {number} says nothing of note. " * 12 for number in range(60))
    note = {"text": f"{long}\n\nThe anchor weighs sixteen kilograms.\n\n{long}", "title": "Long"}
    document = site.engine.post("jobs", params={"wait": 60}, json=note).json()["document_id"]
    found = site.engine.post("search", json={"query": "anchor kilograms", "document_id": document}).json()["results"][0]
    browser.get(f"{site.url}/d/{document}?chunk={found['index']}&q=anchor kilograms")
    hit = find(browser, ".hit")[0]
    assert is_in_view(browser, find(browser, ".hit mark")[0])
    assert "sixteen kilograms" in hit.text
    browser.get(f"{site.url}/d/{document}?chunk=99999")
    assert find(browser, ".hit"), "a link to a passage that is gone shows the last one"


def test_a_pdf_is_shown_as_it_looks_beside_its_text_with_the_passage_marked(browser, site):
    browser.get(f"{site.url}/d/{site.ids['boat/lease.pdf']}?chunk=1&q=deposit")
    image = find(browser, ".looks img")[0]
    assert image.get_attribute("src").endswith("/pages/2.png?chunk=1&word=deposit")
    eventually("it is drawn", lambda: browser.execute_script("return arguments[0].naturalWidth", image) == 1100)
    find(browser, ".looks a", "Page 1")[0].click()
    assert find(browser, ".looks figcaption a", "Page 2")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_passage_low_on_the_page_of_a_pdf_is_in_view_with_its_mark(browser, site, width):
    lines = [f"Line {number} tells at some length of ropes, knots and lamps on the quay." for number in range(44)]
    lines[-1] = "The bollard stands at the very end of the quay."
    content = pdf(") Tj 0 -15 Td (".join(lines))
    form = {"files": {"file": ("quay.pdf", content)}, "data": {"source_path": f"low/{width}/quay.pdf"}}
    document = site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]
    [found, *_] = site.engine.post("search", json={"query": "bollard", "document_id": document}).json()["results"]
    assert found["index"] > 0
    metrics = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": width == 390}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get(f"{site.url}/d/{document}?chunk={found['index']}&q=bollard")
        image = find(browser, ".looks img")[0]
        place = "const b = arguments[0].getBoundingClientRect(); return (innerHeight - b.top) / b.height"
        eventually("the end of the page is in view", lambda: browser.execute_script(place, image) > 0.9)
        eventually("the page has moved there", lambda: browser.execute_script("return scrollY") > 0)
        assert "bollard" in find(browser, ".outline [aria-current] .words")[0].text, "a match is named by its words"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        site.engine.delete(f"documents/{document}")


def test_a_deleted_document_is_not_shown_again_on_the_way_back(browser, site):
    note = {"title": "Sleep", "text": "Hypnagogia comes before sleep."}
    document = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    browser.get(f"{site.url}/?q=hypnagogia&mode=words")
    find(browser, ".hit-link", "Sleep")[0].click()
    find(browser, "article h1", "Sleep")
    find(browser, ".more summary")[0].click()
    find(browser, ".acts .danger", "Delete")[0].click()
    find(browser, ".notice", "Deleted")
    browser.expected = ("410",)
    browser.back()
    find(browser, "p", "This document is in the bin")
    browser.back()
    find(browser, ".blank, .results")
    eventually("the results are without it", lambda: "Sleep" not in read(browser, ".hit-link"))
    assert browser.current_url.endswith("mode=words")
    assert site.engine.get(f"documents/{document}").status_code == 404


def test_chips_narrow_what_was_found(browser, site):
    browser.get(f"{site.url}/?q=boat")
    find(browser, ".filter summary")[0].click()
    find(browser, "#groups .chip", "Mail")[0].click()
    assert "type=eml" in browser.current_url
    assert {each.text for each in find(browser, ".results .type")} == {"Mail"}
    find(browser, ".chip.set")[0].click()
    assert "type" not in browser.current_url


def test_a_note_is_written_with_a_preview_changed_compared_and_taken_back(browser, site):
    browser.get(f"{site.url}/new")
    find(browser, "[name=title]")[0].send_keys("Sails")
    find(browser, "textarea")[0].send_keys("The **genoa** is torn.")
    assert find(browser, "#preview strong", "genoa")
    browser.switch_to.active_element.send_keys(Keys.CONTROL, "s")
    assert find(browser, "article strong", "genoa")
    press(browser, "e")
    text = find(browser, "textarea")[0]
    text.send_keys(Keys.CONTROL, "a", Keys.NULL, "The **genoa** is mended.")
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "article", "is mended")
    press(browser, "h")
    find(browser, ".versions a")[1].click()
    assert find(browser, "del", "torn")
    assert find(browser, "ins", "mended")
    find(browser, ".primary", "Restore this version")[0].click()
    assert find(browser, "article", "is torn")


def test_a_note_that_someone_else_changed_meanwhile_is_shown_beside_ones_own(browser, site):
    note = {"text": "First.", "title": "Shared"}
    document = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    browser.expected = ("412",)
    browser.get(f"{site.url}/d/{document}/edit")
    find(browser, "textarea")[0].send_keys(" Mine.")
    site.engine.patch(f"notes/{document}", json={"text": "Theirs."}).raise_for_status()
    find(browser, ".primary")[0].click()
    find(browser, "h1", "This note has changed in the meantime")
    theirs, mine = find(browser, "textarea")
    assert "Theirs." in theirs.get_property("value")
    assert "Mine." in mine.get_property("value")
    mine.send_keys(" Both.")
    find(browser, ".primary")[0].click()
    assert find(browser, "article", "Both.")


def test_a_draft_survives_a_closed_page(browser, site):
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("Half a thought")
    browser.get(f"{site.url}/documents")
    browser.get(f"{site.url}/new")
    find(browser, "[data-do=restore]")[0].click()
    assert find(browser, "textarea")[0].get_property("value") == "Half a thought"
    browser.execute_script("localStorage.clear()")


@pytest.mark.parametrize("of_old", [False, True], ids=["with its hash", "kept without one"])
def test_a_draft_of_a_note_that_someone_else_changed_since_overwrites_nothing(browser, site, of_old):
    note = {"text": "First.", "title": "Drafted", "tags": ["mine"]}
    document = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    browser.expected = ("412",)
    browser.get(f"{site.url}/d/{document}/edit")
    find(browser, "textarea")[0].send_keys("Mine. ")
    if of_old:
        draft = json.dumps({"title": "Drafted", "text": "Mine. First.", "tags": "mine"})
        browser.execute_script(
            f"localStorage.clear(); localStorage.setItem('kb-draft-{document}', arguments[0])", draft
        )
    theirs = {"text": "Theirs.", "tags_add": ["theirs"]}
    site.engine.patch(f"notes/{document}", json=theirs).raise_for_status()
    browser.get(f"{site.url}/d/{document}/edit")
    find(browser, "[data-do=restore]")[0].click()
    find(browser, ".primary", "Save")[0].click()
    find(browser, "h1", "This note has changed in the meantime")
    theirs, mine = find(browser, "textarea")
    assert (theirs.get_property("value"), mine.get_property("value")) == ("Theirs.", "Mine. First.")
    find(browser, ".primary", "Save your text")[0].click()
    assert find(browser, "article", "Mine. First.")
    assert site.engine.get(f"documents/{document}").json()["tags"] == ["mine", "theirs"]


def test_a_draft_is_forgotten_when_it_was_saved_and_not_because_a_link_says_so(browser, site):
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("A whole thought")
    browser.get(f"{site.url}/documents?saved=new")
    browser.get(f"{site.url}/new")
    find(browser, "[data-do=restore]")[0].click()
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "article", "A whole thought")
    assert find(browser, "#status", "Saved")
    assert not [each for each in browser.execute_script("return Object.keys(localStorage)") if "draft" in each]


def test_files_are_added_with_their_progress_and_the_reason_of_a_failure(browser, site, tmp_path):
    good, bad = tmp_path / "winch.md", tmp_path / "broken.pdf"
    good.write_text("# Winch\n\nThe winch is greased in March.\n")
    bad.write_bytes(b"%PDF-1.4 this is none")
    browser.get(f"{site.url}/add")
    find(browser, "[name=tags]")[0].send_keys("deck")
    browser.find_element(By.CSS_SELECTOR, "input[name=file]").send_keys(f"{good}\n{bad}")
    assert find(browser, "#sent li.done", "winch.md")
    failed = find(browser, "#sent li.failed", "broken.pdf")[0]
    eventually("its reason is said", lambda: "PDF" in failed.find_element(By.CSS_SELECTOR, ".reason").text)
    assert not browser.find_elements(By.CSS_SELECTOR, "#sent li.failed button"), "another try fails in the same way"
    find(browser, "#sent a", "winch.md")[0].click()
    assert find(browser, ".about summary", "#deck")


def test_files_that_are_dropped_anywhere_are_added(browser, site):
    browser.get(site.url)
    find(browser, "#q")
    browser.execute_script(
        """const data = new DataTransfer();
        data.items.add(new File(["The bilge pump was serviced."], "bilge.txt", {type: "text/plain"}));
        dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));"""
    )
    assert find(browser, "#sent li.done", "bilge.txt")


def test_tags_are_changed_in_place(browser, site):
    browser.get(f"{site.url}/d/{site.ids['boat/engine.csv']}")
    press(browser, "t")
    find(browser, "[name=add]")[0].send_keys("engine room", Keys.ENTER)
    assert find(browser, ".tagging .tag", "engine room")
    find(browser, "[aria-label='Remove the tag engine room']")[0].click()
    eventually("it is gone", lambda: read(browser, ".tagging"), lambda texts: texts and "engine room" not in texts[0])


def test_what_is_deleted_waits_in_the_bin_and_its_links_say_so(browser, site):
    note = {"text": "To be thrown away.", "title": "Rubbish"}
    document = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    browser.expected = ("410",)
    browser.get(f"{site.url}/d/{document}")
    find(browser, ".more summary")[0].click()
    find(browser, ".danger", "Delete")[0].click()
    assert find(browser, ".rows a", "Rubbish")
    browser.get(f"{site.url}/d/{document}")
    find(browser, ".primary", "Restore")[0].click()
    assert find(browser, "article", "To be thrown away.")


def test_a_document_is_purged_from_the_bin_only_after_a_question(browser, site):
    note = {"text": "To be forgotten.", "title": "Ashes"}
    document = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    site.engine.delete(f"documents/{document}").raise_for_status()
    purge, restore = (f"[aria-label='{act}: Ashes']" for act in ("Purge", "Restore"))
    browser.get(f"{site.url}/bin")
    find(browser, purge)[0].click()
    assert "Purge “Ashes”?" in browser.switch_to.alert.text
    browser.switch_to.alert.dismiss()
    assert find(browser, restore)
    find(browser, purge)[0].click()
    browser.switch_to.alert.accept()
    eventually("it is purged", lambda: site.engine.get(f"documents/{document}").status_code == 404)


def test_pages_that_show_the_state_follow_it(browser, site):
    follow(browser, f"{site.url}/overview")
    before = read(browser, ".figures b")[0]
    site.engine.post("jobs", params={"wait": 30}, json={"text": f"Something new at {time.time()}."}).raise_for_status()
    eventually("the page has counted it", lambda: read(browser, ".figures b")[0] != before)


DRAWN = """const [x, y] = arguments, canvas = document.querySelector("#map"), r = devicePixelRatio;
return canvas.getContext("2d").getImageData(x * r - 2, y * r - 2, 4, 4).data.some((each) => each > 0)"""
SPOT = """const done = arguments[0], list = [...document.querySelectorAll("#in-view a")];
fetch("map.json").then((each) => each.json()).then((found) => {
  const [box, point] = [document.querySelector("#map").getBoundingClientRect(), found.documents[0]];
  done([28 + (point.x + 1) / 2 * (box.width - 56), 28 + (1 - point.y) / 2 * (box.height - 56), point.id, point.title]);
});"""


def test_the_map_is_drawn_pointed_at_and_opened(browser, site):
    browser.get(f"{site.url}/map")
    find(browser, ".map.drawn")
    x, y, document, title = browser.execute_async_script(SPOT)
    eventually("there is a point", lambda: browser.execute_script(DRAWN, x, y))
    canvas = find(browser, "#map")[0]
    middle = canvas.rect["width"] / 2, canvas.rect["height"] / 2
    place = ActionChains(browser).move_to_element_with_offset(canvas, round(x - middle[0]), round(y - middle[1]))
    place.perform()
    assert find(browser, "#tip strong", title)
    place.click().perform()
    eventually("it is open", lambda: browser.current_url.endswith(f"/d/{document}"))


def test_the_map_is_moved_with_keys_and_lists_what_is_in_view(browser, site):
    browser.get(f"{site.url}/map")
    find(browser, ".map.drawn")
    every = in_view(browser)
    assert every >= len(site.ids) - 1, "the scan has no text"
    press(browser, "+", "+", "+")
    eventually("fewer are in view", lambda: in_view(browser) < every)
    assert "z=" in browser.current_url
    find(browser, "#map")[0].send_keys(*[Keys.ARROW_RIGHT] * 4)
    eventually("it has moved to the right", lambda: float(parse_qs(urlsplit(browser.current_url).query)["x"][0]) > 0.05)
    browser.get(browser.current_url)
    find(browser, ".map.drawn")
    assert in_view(browser) < every, "the address holds it"
    press(browser, "0")
    find(browser, "#legend button")[0].click()
    eventually("documents of one kind alone are in view", lambda: len(set(read(browser, "#in-view .meta"))) == 1)
    find(browser, "#in-view a")[0].click()
    assert find(browser, "article h1")


@pytest.mark.sqlite
def test_a_backup_is_made_and_verified(browser, site):
    browser.get(f"{site.url}/backups")
    before = len(find(browser, "tbody tr"))
    find(browser, ".primary", "Back up now")[0].click()
    assert find(browser, ".good", "The backup is complete")
    assert len(find(browser, "tbody tr")) == before + 1
    find(browser, "button", "Verify all")[0].click()
    assert find(browser, ".good", "intact")


@pytest.mark.sqlite
def test_what_is_wrong_is_checked_shown_and_repaired_after_a_question(browser, site):
    site.data.joinpath("kb.db.new").touch()
    browser.get(f"{site.url}/doctor")
    find(browser, ".primary", "Check")[0].click()
    assert find(browser, ".found-wrong", "kb.db.new is left over")
    find(browser, "button", "Repair now")[0].click()
    browser.switch_to.alert.accept()
    assert find(browser, ".good", "No faults found")
    assert not site.data.joinpath("kb.db.new").exists()


def test_keys_are_listed_with_their_last_use(browser, guarded):
    made = httpx2.post(f"{guarded.url}/api/v1/keys", headers={"Authorization": f"Bearer {KEY}"}, json={"name": "phone"})
    browser.expected = ("401",)
    browser.get(f"{guarded.url}/keys")
    find(browser, "[name=key]")[0].send_keys(KEY, Keys.ENTER)
    assert "never used" in find(browser, ".rows li", "phone")[0].text
    httpx2.get(f"{guarded.url}/api/v1/tags", headers={"Authorization": f"Bearer {made.json()['key']}"})
    browser.get(f"{guarded.url}/keys")
    assert "last used just now" in find(browser, ".rows li", "phone")[0].text
    assert made.json()["key"] not in browser.page_source


def test_all_of_it_works_below_the_path_that_a_proxy_serves_the_pages_at(browser, site, tmp_path):
    with proxied(site.url, "/tools/kb") as top:
        browser.expected = ("404", "410")
        for place in pages(site.ids).values():
            browser.get(f"{top}/{place}")
            assert find(browser, "main")
        browser.get(f"{top}/")
        ask(browser, "carburettor")
        find(browser, ".results mark", "carburettor")
        press(browser, Keys.ARROW_DOWN, Keys.ENTER)
        assert find(browser, "article h1", "Boat")
        browser.get(f"{top}/map")
        assert find(browser, ".map.drawn")
        find(browser, "#in-view a")[0].click()
        assert find(browser, "article h1")
        browser.get(f"{top}/d/{site.ids['boat/lease.pdf']}?chunk=1&q=deposit")
        image = find(browser, ".looks img")[0]
        eventually(
            "the page is drawn", lambda: browser.execute_script("return arguments[0].naturalWidth", image) == 1100
        )
        file = tmp_path / "windlass.md"
        file.write_text("# Windlass\n\nThe windlass lifts the anchor.\n")
        browser.get(f"{top}/add")
        browser.find_element(By.CSS_SELECTOR, "input[name=file]").send_keys(str(file))
        find(browser, "#sent li.done a", "windlass.md")[0].click()
        assert find(browser, "article h1", "Windlass")
        follow(browser, f"{top}/overview")
        before = read(browser, ".figures b")[0]
        site.engine.post("jobs", params={"wait": 30}, json={"text": f"Below a path at {time.time()}."})
        eventually("the page has counted it", lambda: read(browser, ".figures b")[0] != before)
        browser.get("about:blank")
        assert {place for place in places_asked(browser, top) if not place.startswith("/tools/kb/")} == set()


def test_the_key_is_asked_for_once_and_never_shown(browser, guarded):
    browser.expected = ("401",)
    browser.get(f"{guarded.url}/documents?sort=oldest")
    field = find(browser, "[name=key]")[0]
    field.send_keys("wrong", Keys.ENTER)
    assert find(browser, ".wrong", "not valid")
    find(browser, "[name=key]")[0].send_keys(KEY, Keys.ENTER)
    assert find(browser, "h1")
    browser.get(f"{guarded.url}/documents?sort=oldest")
    assert find(browser, "h1", "Documents")
    [cookie] = [each for each in browser.get_cookies() if each["name"] != "kb_zone"]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert KEY not in browser.page_source
    assert KEY not in cookie["value"]
    find(browser, ".out button")[0].click()
    assert find(browser, "[name=key]")  # else the next page may be asked for before the form was sent
    browser.get(f"{guarded.url}/documents")
    assert find(browser, "[name=key]")


def test_a_link_of_another_site_opens_for_one_who_has_signed_in(browser, guarded):
    browser.expected = ("401",)
    browser.get(f"{guarded.url}/sign-in")
    find(browser, "[name=key]")[0].send_keys(KEY, Keys.ENTER)
    find(browser, "#q")
    elsewhere = guarded.url.replace("127.0.0.1", "localhost")
    browser.get(f"{elsewhere}/sign-in")  # another site to the browser
    browser.execute_script("location.href = arguments[0]", f"{guarded.url}/documents")
    assert find(browser, "h1", "Documents")
