"""Notes are written in a browser: formatted, with suggestions, pictures and drafts, and nothing that was typed is lost."""

from __future__ import annotations

import base64
from hashlib import sha256

import httpx2
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from kb_web.attachments import picture_type, unique_name
from kb_web.suggestions import link_to
from tests import conftest
from tests.support.eventually import eventually
from tests.web.conftest import find, read, told
from tests.web.test_flows import press
from tests.web.test_results import KEY, add

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def editor(browser, site):
    """The form of a new note; afterwards the browser has no drafts."""
    browser.get(f"{site.url}/new")
    yield find(browser, "textarea")[0]
    browser.execute_script("localStorage.clear()")
    browser.get("about:blank")


def choose(browser, start, end):
    browser.execute_script("document.querySelector('#text').setSelectionRange(...arguments)", start, end)


def value(browser, selector="#text"):
    return browser.find_element(By.CSS_SELECTOR, selector).get_property("value")


def fill(browser, text):
    browser.execute_script("const t = document.querySelector('#text'); t.value = arguments[0]; t.focus()", text)


def note(site, title, text="A note.", **fields):
    body = {"title": title, "text": text, **fields}
    return site.engine.post("jobs", params={"wait": 30}, json=body).json()["document_id"]


def drafts(browser):
    return [each for each in browser.execute_script("return Object.keys(localStorage)") if "draft" in each]


@pytest.mark.parametrize(
    ("name", "text", "start", "end", "after"),
    [
        ("bold", "a word b", 2, 6, "a **word** b"),
        ("bold", "a word b", 1, 7, "a **word** b"),
        ("bold", "a **word** b", 4, 8, "a word b"),
        ("bold", "a **word** b", 2, 10, "a word b"),
        ("bold", "- one\n- two", 0, 11, "- **one**\n- **two**"),
        ("italic", "a **word** b", 4, 8, "a ***word*** b"),
        ("italic", "a ***word*** b", 5, 9, "a **word** b"),
        ("italic", "", 0, 0, "**"),
        ("heading", "Title", 3, 3, "## Title"),
        ("heading", "# Title", 3, 3, "Title"),
        ("heading", "- item", 3, 3, "## item"),
        ("list", "one\n\ntwo", 0, 8, "- one\n\n- two"),
        ("list", "- one\n- two\n", 0, 12, "one\ntwo\n"),
        ("list", "  1. one", 5, 5, "  - one"),
        ("task", "- one", 2, 2, "- [ ] one"),
        ("task", "- [x] one", 6, 6, "one"),
        ("link", "see kb here", 4, 6, "see [kb](https://) here"),
        ("link", "https://example.org/a", 0, 21, "[](https://example.org/a)"),
        ("code", "a word b", 2, 6, "a `word` b"),
        ("code", "a `word` b", 3, 7, "a word b"),
        ("code", "one\n```\ntwo", 0, 11, "````\none\n```\ntwo\n````"),
    ],
)
def test_a_button_adds_its_markdown_and_takes_it_away_again(browser, editor, name, text, start, end, after):
    fill(browser, text)
    choose(browser, start, end)
    find(browser, f"[data-format={name}]")[0].click()
    assert value(browser) == after
    assert browser.switch_to.active_element == editor, "you can go on writing"
    if after != text:
        browser.execute_script("document.execCommand('undo')")
        assert value(browser) == text, "the browser's undo takes it back"


def test_the_buttons_are_one_stop_of_the_tab_key_and_the_arrows_go_through_them(browser, editor):
    editor.send_keys("word")
    choose(browser, 0, 4)
    editor.send_keys(Keys.SHIFT, Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("data-format") == "bold"
    press(browser, Keys.ARROW_LEFT)
    assert browser.switch_to.active_element.get_attribute("data-format") == "files"
    press(browser, Keys.HOME, Keys.ARROW_RIGHT, Keys.ENTER)
    assert value(browser) == "*word*"
    editor.send_keys(Keys.CONTROL, "b")
    assert value(browser) == "***word***"


def test_typing_in_a_note_begins_below_its_fields(browser, site):
    text = "---\ntags: [later]\n---\n\nThe lamp."
    note = site.engine.post("jobs", params={"wait": 30}, json={"text": text}).json()["document_id"]
    browser.get(f"{site.url}/d/{note}/edit")
    browser.switch_to.active_element.send_keys("Checked. ")
    field = browser.find_element(By.ID, "text")
    assert field.get_attribute("value") == text.replace("The lamp.", "Checked. The lamp.")
    site.engine.delete(f"documents/{note}").raise_for_status()


def test_enter_leads_from_the_title_to_the_text(browser, site, editor):
    find(browser, "[name=title]")[0].send_keys("A title", Keys.ENTER)
    assert browser.switch_to.active_element == editor
    assert browser.current_url.endswith("/new"), "Enter has not sent the form"


def test_names_of_documents_are_suggested_in_a_link(browser, site, editor):
    note(site, "Zephyr plan")
    add(site, "sea/zephyr log.md", "# Log\n\nOf the zephyr.")
    editor.send_keys("See [[zeph")
    options = find(browser, "[role=option]")
    assert {each.text.split("\n")[0] for each in options} == {"Zephyr plan", "zephyr log"}
    assert editor.get_attribute("aria-activedescendant") == options[0].get_attribute("id")
    assert read(browser, "[data-found][role=status]") == ["2 suggestions"]
    label = options[1].text.split("\n")[0]
    editor.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert value(browser) == f"See [[{label}]]"
    editor.send_keys(" and [[zephyr l")
    find(browser, "[role=option]", "zephyr log")[0].click()
    assert value(browser) == f"See [[{label}]] and [[zephyr log]]"


def test_enter_in_a_list_first_takes_the_suggestion_and_then_continues_the_list(browser, site, editor):
    note(site, "Binnacle lamp")
    editor.send_keys("- See [[Binnacle l")
    find(browser, "[role=option]", "Binnacle lamp")
    editor.send_keys(Keys.ENTER)
    assert value(browser) == "- See [[Binnacle lamp]]"
    editor.send_keys(Keys.ENTER)
    assert value(browser) == "- See [[Binnacle lamp]]\n- "


def test_notes_are_suggested_before_files_and_names_that_begin_with_the_query_first(site):
    for name in ("gorse.png", "gorse map.txt"):
        add(site, f"pictures/{name}", "Of gorse.")
    note(site, "The gorse garden", "Of the garden with gorse.")
    add(site, "garden/gorse log.md", "# Log")
    note(site, "Gorse project", "Of the project with gorse.")
    for number in range(8):
        add(site, f"pictures/gorse {number}.txt", f"Picture {number}.")
    query = {"kind": "link", "q": "gors"}
    rows = httpx2.get(f"{site.url}/suggest", params=query, headers={"Accept": "application/json"}).json()
    assert {row["label"] for row in rows[:2]} == {"Gorse project", "gorse log"}
    assert rows[2]["label"] == "The gorse garden"
    assert all(row["label"].startswith("gorse") for row in rows[3:])
    assert len(rows) == 8


def test_the_link_button_opens_the_suggestions_and_escape_closes_only_them(browser, site, editor):
    find(browser, "[data-format=link]")[0].click()
    assert find(browser, "[role=option]")
    press(browser, Keys.ESCAPE)
    assert browser.find_elements(By.CSS_SELECTOR, "[role=option]") == []
    assert browser.switch_to.active_element == editor
    assert value(browser) == "[[]]"


def test_tags_are_suggested_in_the_text_and_in_their_field_and_enter_takes_none_unasked(browser, site, editor):
    note(site, "Tagged", tags=["zenith/high", "zenith/low peak", "azenith"])
    editor.send_keys("About #zen")
    assert {each.text.split("\n")[0] for each in find(browser, "[role=option]")} == {"zenith", "zenith/high"}
    editor.send_keys(Keys.ENTER)
    assert value(browser) == "About #zen\n"
    editor.send_keys("#high")
    find(browser, "[role=option]", "zenith/high")
    editor.send_keys(Keys.ARROW_DOWN, Keys.TAB)
    assert value(browser) == "About #zen\n#zenith/high"
    field = find(browser, "[name=tags]")[0]
    field.send_keys("boat, zen")
    find(browser, "[role=option]", "zenith/low peak")
    press(browser, Keys.ARROW_UP, Keys.ENTER)
    assert value(browser, "[name=tags]") in ("boat, zenith/low peak", "boat, zenith/high")
    assert find(browser, "h1", "New note"), "Enter has not sent the form"


def test_a_heading_or_a_number_sign_in_a_word_suggests_nothing(browser, site, editor):
    note(site, "Tagged so", tags=["boat"])
    for text in ("# bo", "C#bo", "## bo", "[[a|bo", "[x](#bo"):
        fill(browser, text[:-1])
        browser.execute_script(
            "const t = document.querySelector('#text'); t.setSelectionRange(t.value.length, t.value.length)"
        )
        editor.send_keys(text[-1])
        browser.execute_async_script("setTimeout(arguments[0], 300)")
        assert (text, read(browser, "[role=option]")) in [(text, []), ("[x](#bo", read(browser, "[role=option]"))]


def test_the_preview_shows_pictures_and_links_as_the_saved_note_does(browser, site, editor):
    boat = note(site, "Preview target", "Its text.")
    form = {"files": {"file": ("p.png", PNG)}, "data": {"source_path": "attachments/previewed.png"}}
    site.engine.post("jobs", params={"wait": 30}, **form)
    editor.send_keys("See [[Preview target]], [[Nowhere at all]] and ![[attachments/previewed.png]].")
    assert find(browser, "#preview a", "Preview target")[0].get_attribute("href").endswith(f"/d/{boat}")
    image = browser.find_element(By.CSS_SELECTOR, "#preview img")
    eventually("it is drawn", lambda: browser.execute_script("return arguments[0].naturalWidth", image) == 1)
    assert read(browser, "#preview .missing") == ["Nowhere at all"]
    find(browser, ".primary", "Save")[0].click()
    find(browser, "article a", "Preview target")
    find(browser, ".acts a", "Edit")[0].click()
    assert find(browser, "#preview a", "Preview target")[0].get_attribute("href").endswith(f"/d/{boat}")
    image = browser.find_element(By.CSS_SELECTOR, "#preview img")
    eventually("it is drawn", lambda: browser.execute_script("return arguments[0].naturalWidth", image) == 1)


def test_an_offered_draft_covers_no_button_on_a_phone(browser, site, editor):
    draft = "A draft with a rather long first line that wraps on a phone. " * 3
    editor.send_keys(draft)
    eventually("the draft is kept", lambda: drafts(browser))
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.execute_script("onbeforeunload = null; document.querySelector('.editor').reset()")
        browser.get("about:blank")
        browser.get(f"{site.url}/new")
        find(browser, ".draft", "unsaved draft")
        browser.execute_script("scrollTo(0, document.body.scrollHeight)")
        at_save = """const button = document.querySelector(".primary"), box = button.getBoundingClientRect();
        return button.contains(document.elementFromPoint(box.left + box.width / 2, box.bottom - 2))"""
        assert browser.execute_script(at_save)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def transfer(browser, event, files, text=""):
    """Paste or drop files into the text."""
    browser.execute_script(
        """const [kind, files, words] = arguments, data = new DataTransfer();
        for (const [name, type, content] of files) data.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name, {type}));
        if (words) data.setData("text/plain", words);
        const made = kind === "paste" ? new ClipboardEvent(kind, {clipboardData: data, bubbles: true, cancelable: true})
          : new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true});
        document.querySelector("#text").dispatchEvent(made);""",
        event,
        [(name, kind, base64.b64encode(content).decode()) for name, kind, content in files],
        text,
    )


def test_a_pasted_picture_is_kept_as_a_document_that_the_note_shows(browser, site, editor):
    editor.send_keys("Before  after")
    choose(browser, 7, 7)
    transfer(browser, "paste", [("image.png", "image/png", PNG)])
    eventually("its link is there", lambda: "]] after" in value(browser))
    text = value(browser)
    assert text.startswith("Before ![[attachments/Pasted picture 20")
    path = text[len("Before ![[") : -len("]] after")]
    [kept] = site.engine.get("documents", params={"source_path": path}).json()["documents"]
    assert site.engine.get(f"documents/{kept['id']}/file").content == PNG
    assert find(browser, "[data-said]", "Added Pasted picture")
    find(browser, ".primary", "Save")[0].click()
    image = find(browser, "article img")[0]
    eventually("the note shows it", lambda: browser.execute_script("return arguments[0].naturalWidth", image) == 1)
    answer = httpx2.get(f"{site.url}/d/{kept['id']}/picture", headers={"Accept": "*/*"})
    assert (answer.headers["content-type"], answer.content) == ("image/png", PNG)
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "text", ["# Not a picture", "![a](data:image/png;base64,!!)", "![a](https://example.org/a.png)\n"]
)
def test_other_markdown_with_the_name_of_a_picture_is_not_shown_as_one(site, text):
    form = {"files": {"file": ("a.md", text.encode())}, "data": {"source_path": "attachments/other.png"}}
    document = site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]
    assert httpx2.get(f"{site.url}/d/{document}/picture", headers={"Accept": "*/*"}).status_code == 404
    site.engine.delete(f"documents/{document}").raise_for_status()


def test_dropped_files_are_added_and_linked_and_the_page_stays(browser, site, editor):
    editor.send_keys("Files: ")
    files = [("tide table.csv", "text/csv", b"hour,height\n1,2.1\n"), ("broken.pdf", "application/pdf", b"%PDF-1.4 x")]
    transfer(browser, "drop", files)
    assert find(browser, "[data-said].bad", "broken.pdf")
    text = value(browser)
    assert text.startswith("Files: [[attachments/tide table-")
    assert "broken" not in text
    assert browser.current_url.endswith("/new")
    assert not browser.find_element(By.ID, "drop").is_displayed()


def test_chosen_files_are_added_as_dropped_ones_are(browser, site, editor, tmp_path):
    (tmp_path / "door.png").write_bytes(PNG + b"chosen")
    editor.send_keys("The door.")
    assert find(browser, ".toolbar button", "File")[0].get_attribute("aria-label") == "File or picture"
    browser.find_element(By.CSS_SELECTOR, "input[type=file][multiple]:not([name])").send_keys(
        str(tmp_path / "door.png")
    )
    eventually("its link is there", lambda: "png]]" in value(browser))
    assert value(browser).startswith("The door.\n\n![[attachments/door-")


def test_a_dropped_picture_gets_a_line_of_its_own_and_is_made_only_once(browser, site, editor):
    picture = PNG + b"dropped"
    editor.send_keys("The plan of the shed.\nThe next line.")
    choose(browser, 3, 3)
    transfer(browser, "drop", [("plan.png", "image/png", picture)])
    eventually("its link is there", lambda: "png]]" in value(browser))
    before, _, link, _, after = value(browser).split("\n")
    assert (before, after) == ("The plan of the shed.", "The next line.")
    assert link.startswith("![[attachments/plan-")
    choose(browser, 0, 0)
    transfer(browser, "paste", [("image.png", "image/png", picture)])
    eventually("the same link is there", lambda: value(browser).startswith(link))
    page = site.engine.get("documents", params={"source_prefix": "attachments/", "limit": 100}).json()["documents"]
    assert len([each for each in page if each["source_path"] == link[3:-2]]) == 1
    assert len([each for each in page if each["content_hash"] == sha256(picture).hexdigest()]) == 1


def test_files_of_the_same_name_replace_each_other_only_if_they_are_the_same(site):
    def attach(content):
        with httpx2.Client(base_url=site.url) as page:
            token = page.get("/new", headers={"Accept": "text/html"}).text.split('data-token="')[1][:64]
            answer = page.post("/attach", headers={"X-KB-Token": token}, files={"file": ("plan.txt", content)})
        return answer.raise_for_status().json()["text"]

    first, second, third = attach(b"One plan."), attach(b"Another plan."), attach(b"One plan.")
    assert first == third != second
    for link in (first, second):
        found = site.engine.get("documents", params={"source_path": link[2:-2]}).json()["documents"]
        assert len(found) == 1


def test_text_with_a_picture_of_it_is_pasted_as_text(browser, editor):
    transfer(browser, "paste", [("image.png", "image/png", PNG)], "words")
    assert "Adding" not in value(browser)


def test_a_note_is_not_saved_while_a_file_is_still_being_added(browser, site, editor):
    editor.send_keys("Text ")
    slow = {"offline": False, "latency": 2000, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    transfer(browser, "drop", [("late.txt", "text/plain", b"Late.")])
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "[data-said]", "still being added")
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", slow | {"latency": 0})
    eventually("its link is there", lambda: "[[attachments/late-" in value(browser))


def test_a_note_can_be_saved_after_an_answer_about_a_file_that_broke_off(browser, site, editor):
    editor.send_keys("Text ")
    browser.execute_script(
        """const real = window.fetch;
        window.fetch = (to, ...rest) => String(to).endsWith("attach") ? Promise.resolve(new Response('{"te')) : real(to, ...rest);"""
    )
    transfer(browser, "drop", [("cut.txt", "text/plain", b"Cut.")])
    assert find(browser, "[data-said].bad", "cut.txt: ")
    assert value(browser) == "Text "
    find(browser, ".primary", "Save")[0].click()
    eventually("the note is saved", lambda: "/d/" in browser.current_url)


def test_the_preview_says_that_the_session_has_ended(browser, guarded):
    browser.expected = ("401",)
    browser.get(f"{guarded.url}/new")
    find(browser, "[name=key]")[0].send_keys(conftest.KEY, Keys.ENTER)
    assert find(browser, "#text")
    browser.delete_all_cookies()
    find(browser, "#text")[0].send_keys("Written without a session.")
    assert find(browser, "#preview", "Your session has ended")
    assert browser.find_elements(By.CSS_SELECTOR, "#preview input") == []


def test_a_draft_is_offered_with_its_name_and_never_in_another_note(browser, site):
    one, other = note(site, "Drafted one", "First."), note(site, "Drafted other", "Second.")
    browser.get(f"{site.url}/d/{one}/edit")
    find(browser, "textarea")[0].send_keys("Mine. ")
    browser.get(f"{site.url}/d/{other}/edit")
    assert "Second." in value(browser)
    browser.execute_async_script("setTimeout(arguments[0], 300)")
    assert not browser.find_element(By.CSS_SELECTOR, ".draft").is_displayed()
    browser.get(f"{site.url}/d/{one}/edit")
    assert find(browser, ".draft", "Drafted one")
    find(browser, "[data-do=discard]")[0].click()
    assert drafts(browser) == []
    assert value(browser) == "First."


@pytest.mark.parametrize("of", ["a new note", "a note"])
def test_restoring_a_draft_keeps_the_text_that_is_there_as_a_draft_of_its_own(browser, site, of):
    place = "new" if of == "a new note" else f"d/{note(site, 'Kept', 'First.')}/edit"
    browser.get(f"{site.url}/{place}")
    fill(browser, "")
    find(browser, "#text")[0].send_keys("The earlier draft")
    browser.get(f"{site.url}/documents")
    browser.get(f"{site.url}/{place}")
    find(browser, ".draft", "unsaved draft")
    fill(browser, "")
    find(browser, "#text")[0].send_keys("other text")
    for there, back in (("The earlier draft", "other text"), ("other text", "The earlier draft")):
        find(browser, "[data-do=restore]")[0].click()
        assert value(browser) == there
        kept = browser.execute_script("return Object.values(localStorage)")
        assert any(back in each for each in kept)
    browser.get(f"{site.url}/documents")
    browser.get(f"{site.url}/{place}")
    find(browser, ".draft", "unsaved draft")
    kept = browser.execute_script("return Object.values(localStorage).map((each) => JSON.parse(each).text)")
    assert sorted(kept) == ["The earlier draft", "other text"]
    browser.execute_script("localStorage.clear()")


def test_a_draft_is_not_offered_where_the_address_names_another_note(browser, site):
    browser.get(f"{site.url}/new?title=First+named")
    find(browser, "#text")[0].send_keys("Of the first one")
    browser.get(f"{site.url}/new?title=Second+named")
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    assert not browser.find_element(By.CSS_SELECTOR, ".draft").is_displayed()
    for address in ("new?title=First+named", "new"):
        browser.get(f"{site.url}/{address}")
        assert find(browser, ".draft", "First named")
    browser.execute_script("localStorage.clear()")


@pytest.mark.parametrize("width", [390, 1280])
def test_an_offered_draft_covers_no_field(browser, site, editor, width):
    editor.send_keys("A draft with a rather long first line. " * 3)
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 400}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get("about:blank")
        browser.get(f"{site.url}/new")
        find(browser, ".draft", "unsaved draft")
        covered = """const offer = document.querySelector(".draft").getBoundingClientRect();
        return [...document.querySelectorAll(".editor :is(input:not([type=hidden]), textarea, button)")].filter((each) => {
          const box = each.getBoundingClientRect();
          return box.top < offer.bottom && offer.top < box.bottom && box.left < offer.right && offer.left < box.right;
        }).map((each) => each.name)"""
        assert browser.execute_script(covered) == []
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_new_notes_in_two_tabs_keep_a_draft_each(browser, site):
    first = browser.current_window_handle
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("In the first tab")
    browser.switch_to.new_window("tab")
    browser.get(f"{site.url}/new")
    browser.execute_async_script("setTimeout(arguments[0], 300)")
    assert not browser.find_element(By.CSS_SELECTOR, ".draft").is_displayed(), "the first tab is still open"
    find(browser, "textarea")[0].send_keys("In the second tab")
    assert len(drafts(browser)) == 2
    browser.close()
    browser.switch_to.window(first)
    browser.get("about:blank")
    browser.get(f"{site.url}/new")
    assert find(browser, ".draft", "In the second tab")
    find(browser, "[data-do=discard]")[0].click()
    assert find(browser, ".draft", "In the first tab")
    find(browser, "[data-do=restore]")[0].click()
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "#status", "Saved")
    assert drafts(browser) == []


def test_what_others_changed_meanwhile_keeps_ones_own_text_and_its_draft(browser, site):
    document = note(site, "Contested", "First.")
    browser.expected = ("412",)
    browser.get(f"{site.url}/d/{document}/edit")
    find(browser, "textarea")[0].send_keys("Mine. ")
    site.engine.patch(f"notes/{document}", json={"text": "Theirs."}).raise_for_status()
    find(browser, ".primary", "Save")[0].click()
    find(browser, "h1", "This note has changed in the meantime")
    browser.get(f"{site.url}/documents")  # left, or crashed
    browser.get(f"{site.url}/d/{document}/edit")
    find(browser, "[data-do=restore]")[0].click()
    assert value(browser) == "Mine. First."
    find(browser, ".primary", "Save")[0].click()
    find(browser, "h1", "This note has changed in the meantime")
    find(browser, ".primary", "Save your text")[0].click()
    assert find(browser, "article", "Mine. First.")
    assert drafts(browser) == []


def test_a_refused_note_keeps_its_text_and_its_draft_until_it_is_saved(browser, site):
    browser.expected = ("422",)
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("Kept words")
    find(browser, "[name=tags]")[0].send_keys("x" * 300)
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "[data-said].bad", "Not saved. tags")
    assert value(browser) == "Kept words"
    assert len(drafts(browser)) == 1
    find(browser, "[name=tags]")[0].clear()
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "article", "Kept words")
    assert drafts(browser) == []


def test_a_note_that_was_deleted_meanwhile_is_saved_as_a_new_one(browser, site):
    document = note(site, "Deleted soon", "First.")
    browser.expected = ("404",)
    browser.get(f"{site.url}/d/{document}/edit")
    find(browser, "textarea")[0].send_keys("Mine. ")
    site.engine.delete(f"documents/{document}").raise_for_status()
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "[role=alert]", "This note was deleted")
    assert value(browser) == "Mine. First."
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "article", "Mine. First.")
    browser.execute_script("localStorage.clear()")


def test_a_form_of_an_engine_that_started_anew_is_refused_and_its_text_offered_again(browser, site):
    browser.expected = ("403",)
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("Written before the restart")
    browser.execute_script("document.querySelector('[name=token]').value = 'x'")
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "main", "out of date")
    browser.get(f"{site.url}/new")
    find(browser, "[data-do=restore]")[0].click()
    assert value(browser) == "Written before the restart"
    browser.execute_script("localStorage.clear()")


def test_the_way_back_leads_to_the_unsaved_text(browser, site):
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("Not saved yet")
    find(browser, "nav a", "Documents")[0].click()
    find(browser, "h1", "Documents")
    browser.back()
    find(browser, "h1", "New note")
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    if value(browser) != "Not saved yet":
        find(browser, "[data-do=restore]")[0].click()
    assert value(browser) == "Not saved yet"
    browser.execute_script("localStorage.clear()")


def test_enter_that_ends_a_composition_takes_no_suggestion(browser, site, editor):
    note(site, "Zulu plan")
    editor.send_keys("[[zul")
    find(browser, "[role=option]", "Zulu plan")
    for ending in ({"isComposing": True}, {"keyCode": 229}):
        browser.execute_script(KEY, {"key": "Enter"} | ending, "#text")
    assert value(browser) == "[[zul"
    assert find(browser, "[role=option]", "Zulu plan")


@pytest.mark.parametrize(
    ("title", "typed"),
    [
        ("Émilie à Köln", "émil"),
        ("日本語のメモ", "日本"),
        ("50% of *all*?", "50% of *a"),
        ("under_score", "under_s"),
        ("back\\slash", "back\\s"),
        ("'; drop table", "'; dr"),
        ("<b>bold</b>", "<b>b"),
    ],
)
def test_a_title_is_suggested_whatever_its_letters(site, title, typed):
    document = note(site, title)
    query = {"kind": "link", "q": typed}
    rows = httpx2.get(f"{site.url}/suggest", params=query, headers={"Accept": "application/json"}).json()
    assert title in [each["label"] for each in rows]
    site.engine.delete(f"documents/{document}").raise_for_status()


@pytest.mark.parametrize(
    "query", ["kind=tag&q=", "kind=link&q=", "kind=nothing&q=x", "", "kind=tag&q=" + "x" * 5000, "q=%00"]
)
def test_any_question_for_suggestions_has_a_list_as_its_answer(site, query):
    answer = httpx2.get(f"{site.url}/suggest?{query}", headers={"Accept": "application/json"})
    assert isinstance(answer.json(), list), answer.text


def test_suggestions_and_files_need_a_key_where_the_pages_need_one(guarded):
    for ask in (httpx2.get(f"{guarded.url}/suggest?kind=link&q=a"), httpx2.post(f"{guarded.url}/attach")):
        assert ask.status_code in (401, 403)


def test_a_file_that_is_too_large_or_empty_is_refused_with_the_reason(browser, site, editor):
    editor.send_keys("Text ")
    transfer(browser, "drop", [("empty.txt", "text/plain", b"")])
    assert find(browser, "[data-said].bad", "empty.txt: ")
    eventually("its place is empty again", lambda: value(browser) == "Text ")


def questions(browser):
    """How often the browser has asked whether to leave a page; the driver always answers that it should."""
    return [each["type"] for each in told(browser, "Page.javascriptDialogOpening")].count("beforeunload")


def test_leaving_with_unsaved_changes_asks_and_saved_ones_do_not(browser, site):
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("Unsaved")
    find(browser, "nav a", "Documents")[0].click()
    find(browser, "h1", "Documents")
    assert questions(browser) == 1
    browser.get(f"{site.url}/new")
    find(browser, "[data-do=restore]")[0].click()
    find(browser, ".primary", "Save")[0].click()
    assert find(browser, "article", "Unsaved")
    press(browser, "e")
    find(browser, "textarea")[0].send_keys("x", Keys.BACKSPACE)
    find(browser, "nav a", "Documents")[0].click()
    find(browser, "h1", "Documents")
    assert questions(browser) == 1


def test_a_browser_that_keeps_nothing_says_so_and_the_note_can_be_written(browser, site):
    script = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    made = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("No drafts **here**")
    assert find(browser, "[data-kept]", "cannot keep a draft")
    assert find(browser, "#preview strong", "here")
    find(browser, "textarea")[0].send_keys(Keys.CONTROL, "s")
    assert find(browser, "article", "No drafts here")
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": made["identifier"]})


@pytest.mark.parametrize("kept", ["not json", "null", "[]", '{"text": 5}', "{}"])
def test_a_broken_draft_breaks_no_page(browser, site, kept):
    browser.get(site.url)
    browser.execute_script("localStorage.setItem('kb-draft-new-x', arguments[0])", kept)
    browser.get(f"{site.url}/new")
    find(browser, "textarea")[0].send_keys("Words")
    assert find(browser, "#preview", "Words")
    assert not browser.find_element(By.CSS_SELECTOR, ".draft").is_displayed()
    browser.execute_script("localStorage.clear()")
    browser.get("about:blank")


def test_saving_has_its_key_on_the_button_and_is_said(browser, site, editor):
    assert "Ctrl S" in find(browser, ".primary", "Save")[0].text
    editor.send_keys("Said", Keys.CONTROL, "s")
    assert find(browser, "#status[role=status]", "Saved")


@pytest.mark.parametrize(
    ("row", "link"),
    [
        ({"id": 1, "title": "Plan", "source_path": None}, "[[Plan]]"),
        ({"id": 1, "title": "Plan", "source_path": "a/b/log.md"}, "[[log]]"),
        ({"id": 1, "title": "Plan", "source_path": "a/b/memo.pdf"}, "[[memo.pdf]]"),
        ({"id": 7, "title": "C# [draft]", "source_path": None}, r"[C# \[draft\]](kb://documents/7)"),
        ({"id": 7, "title": "A page", "source_path": "https://example.org/"}, "[[example.org]]"),
        ({"id": 7, "title": "", "source_path": None}, "[Document 7](kb://documents/7)"),
    ],
)
def test_a_suggested_link_leads_to_its_document(row, link):
    assert link_to(row, by_path=False) == link


def test_documents_of_the_same_name_are_told_apart_by_their_path():
    assert link_to({"id": 1, "title": "x", "source_path": "a/index.md"}, by_path=True) == "[[a/index]]"
    assert link_to({"id": 1, "title": "x", "source_path": None}, by_path=True) == "[x](kb://documents/1)"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("plan.PNG", "plan-"),
        ("../../etc/passwd", "etc passwd-"),
        ("a[[b]]|c#d.png", "a b c d-"),
        ("\x00\n", "file-"),
        ("x" * 300 + ".png", "x" * 80 + "-"),
    ],
)
def test_the_name_of_an_added_file_can_be_a_path_and_a_link(tmp_path, name, kept):
    file = tmp_path / "f"
    file.write_bytes(b"content")
    with file.open("rb") as content:
        made = unique_name(name, content)
        assert made.startswith(kept)
        assert content.read() == b"content"
    assert not set(made) & set("[]|#^\\/\x00\n")


def test_pictures_are_recognized_by_their_beginning(tmp_path):
    for content, kind in (
        (PNG, "png"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"", None),
    ):
        tmp_path.joinpath("f").write_bytes(content)
        with tmp_path.joinpath("f").open("rb") as file:
            assert picture_type(file) == kind


def test_a_note_that_kb_could_not_read_comes_back_with_its_text_and_the_reason(start_server, reading, tmp_path):
    """A note with an embedded picture becomes a file, which is read in a job."""
    picture = f"![](data:image/png;base64,{base64.b64encode(PNG * 20).decode()})"
    text = f"# Sails\n\n{picture}\n\n{'> - The *jib* is torn. ' * 40_000}".rstrip()
    with start_server(tmp_path / "data", KB_APPS="api,web", KB_PARSE_SECONDS="0.0001") as server:
        reader = reading(f"{server.url}/new")
        reader.submit("new$", title="Sails", text=text, tags="boat, spring")
        assert reader.answer.status_code == 422
        [reason] = reader.page.xpath("//*[@role='alert']")
        assert reason.text_content().startswith("The note was not saved: ")
        assert "0.0001" in reason.text_content()
        [form] = [form for form in reader.page.forms if (form.action or "").endswith("/new")]
        assert (form.fields["title"], form.fields["tags"]) == ("Sails", "boat, spring")
        assert form.fields["text"].replace("\r\n", "\n").strip() == text
        assert "data-unsaved" in form.attrib, "the browser keeps the draft"
        assert httpx2.get(f"{server.url}/api/v1/documents").json()["documents"] == []


def test_hash_tags_that_somebody_writes_in_a_note_are_its_tags(read, site):
    reader = read(f"{site.url}/new")
    reader.submit("new$", title="Hashed", text="Peas in the #beds. `#code` and C# are none.", tags="spring")
    note = int(reader.answer.url.path.rpartition("/")[2])

    def tags():
        return sorted(site.engine.get(f"documents/{note}").json()["tags"])

    assert tags() == ["beds", "spring"]
    reader.open(f"{site.url}/d/{note}/edit")
    reader.submit("edit$", text="Peas in the #beds and #pots.", tags="spring")
    assert tags() == ["pots", "spring"], "the tag that the form removed is not added again"
    site.engine.delete(f"documents/{note}")
