"""The results of a search: by document, narrowed in one line, and found again on the way back."""

from __future__ import annotations

import re

import httpx2
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from kb_web.pages import broken, own_date
from kb_web.search import shown
from kb_web.search_filters import folder_chips, folder_of
from kb_web.search_form import SearchForm
from tests.support.eventually import eventually
from tests.web.conftest import find, read
from tests.web.shots import width
from tests.web.test_flows import press

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
WORDS = ("fog harbour pilot lantern", "island reef star midnight", "ice whale north captain", "palm trade rum customs")


def log(words):
    """A text of several passages."""
    return "\n\n".join(f"## Part {part}\n\n" + f"The brass sextant, drawer {part}: {words}. " * 40 for part in range(6))


def add(site, path, text, tags=""):
    form = {"files": {"file": (path.rpartition("/")[2], text.encode())}, "data": {"source_path": path, "tags": tags}}
    return site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]


@pytest.fixture(scope="module")
def sextants(site):
    """Documents about sextants in two folders, of several years, with tags and copies."""
    for number, year in enumerate((2019, 2021, 2023, 2023)):
        text = f"---\ndate: {year}-02-27\n---\n# Sextant {number}\n\n{log(WORDS[number])}"
        add(site, f"/home/ada/sea/room {number % 2}/sextant-{number}.md", text, f"sea,sea/tools,owner/{number}")
    for number in range(4):
        add(site, f"/home/ada/attic/box {number}/almanac.md", "# Almanac\n\nThe sextant almanac of 1961.", "attic")
    add(site, f"http://example.org/{'very-long-folder_' * 12}/page.md", "# A sextant page\n\nOn the web, a sextant.")


def test_no_result_has_a_longer_bar_than_one_above_it(site, sextants):
    for query in ("sextant almanac", "brass sextant drawer", "fog harbour pilot", "Almanac"):
        page = httpx2.get(f"{site.url}/", params={"q": query}).text
        bars = [int(bar) for bar in re.findall(r'value="(\d+)" title="Relevance', page)]
        assert bars == sorted(bars, reverse=True)
    [first, second] = shown(SearchForm("x"), [row(0.2, 1), row(0.9, 2)], [row(0.2, 1), row(0.9, 2)])
    assert first["bars"]["score"] >= second["bars"]["score"]


def row(score, number):
    """A result that another ground than its score puts where it is."""
    document = {
        "title": f"Note {number}",
        "source_path": None,
        "updated_at": None,
        "created_at": "2026-01-01T00:00:00Z",
    }
    passage = {"text": "x", "highlights": [], "place": {"heading": [], "page": None, "line_start": 1}, "index": 0}
    scores = {"score": score, "fts_score": None, "vec_score": None}
    return document | passage | scores | {"document_id": number, "doc_type": "note", "more": []}


def test_the_columns_of_a_list_are_its_orders(browser, site, sextants):
    width(browser, 1280)
    browser.get(f"{site.url}/documents")
    for column, sort in [
        ("Title", "title"),
        ("Folder", "path"),
        ("Dated", "date"),
        ("Changed", "recent"),
        ("Changed", "oldest"),
    ]:
        find(browser, ".heads a", column)[0].click()
        assert browser.current_url.endswith(f"sort={sort}")
    browser.get(f"{site.url}/documents?sort=title")
    titles = [each.casefold() for each in read(browser, ".rows a.title")]
    assert titles == sorted(titles)


def test_results_are_documents_and_their_other_passages_open_in_place(browser, site, sextants):
    browser.get(f"{site.url}/?q=brass sextant drawer")
    documents = [each.get_attribute("href").partition("#")[0] for each in find(browser, ".results .hit-link")]
    assert len(documents) == len(set(documents))
    assert read(browser, ".tally")[0].endswith("documents")
    more = find(browser, ".copies summary", "more passage")[0]
    assert not browser.find_element(By.CSS_SELECTOR, ".also a").is_displayed()
    more.click()
    assert "Part" in find(browser, ".also a")[0].text
    assert browser.current_url.endswith("drawer"), "the page is the same"


def test_the_choice_of_passages_is_kept_for_the_next_search(browser, site, sextants):
    browser.get(f"{site.url}/")
    find(browser, ".filter summary")[0].click()
    find(browser, ".modes label", "Passages")[0].click()
    browser.get(f"{site.url}/")
    press(browser, "sextant")
    eventually("the address says so", lambda: "by=passage" in browser.current_url)
    eventually("passages are shown", lambda: read(browser, ".tally")[0].endswith("passages"))
    browser.execute_script("localStorage.clear()")


def test_copies_are_one_result_that_names_their_places(browser, site, sextants):
    browser.get(f"{site.url}/?q=sextant almanac 1961")
    find(browser, ".copies summary", "and in 3 other places")[0].click()
    assert len(find(browser, ".results li .also li", "almanac.md")) == 3
    assert [each.text for each in find(browser, ".results h2")].count("Almanac") == 1


def test_one_line_narrows_the_results_and_the_filter_has_the_rest(browser, site, sextants):
    browser.get(f"{site.url}/?q=sextant&mode=words")
    chips = find(browser, "#facets .chip")
    assert len({each.location["y"] for each in chips}) == 1
    find(browser, "#facets .chip", "in /home/ada/")[0].click()
    find(browser, "#facets .chip", "in sea/")[0].click()
    paths = [each.get_attribute("title") for each in find(browser, ".results .path")]
    assert {each.startswith("/home/ada/sea/") for each in paths} == {True}
    assert find(browser, "#facets .set", "in /home/ada/sea/")
    find(browser, ".filter summary")[0].click()
    for name in ("Search by", "Show", "Order", "From", "Before", "Path begins with", "File name"):
        assert find(browser, ".panel", name)
    find(browser, "#groups .chip", "2019")[0].click()
    assert {each.text for each in find(browser, ".results time")} == {"27 Feb 2019"}
    assert find(browser, "#facets .set", "2019")


def test_tags_are_a_tree_whose_branches_narrow_too(browser, site, sextants):
    browser.get(f"{site.url}/?q=sextant&mode=words")
    find(browser, ".filter summary")[0].click()
    assert find(browser, "#groups [aria-label=owner] .chip", "owner")[0].text.split() == ["#", "owner", "4"]
    assert "sea" not in [each.split()[0] for each in read(browser, "#groups [aria-label=sea] .chip")], "all are tools"
    find(browser, "#groups [aria-label=owner] .chip", "owner")[0].click()
    assert find(browser, "#facets .set", "owner")
    assert len(find(browser, ".results > li")) == 4


def test_the_date_of_a_result_is_the_date_that_the_filter_counts(browser, site, sextants):
    browser.get(f"{site.url}/?q=sextant&after=2023-01-01&before=2024-01-01")
    assert {each.text for each in find(browser, ".results time")} == {"27 Feb 2023"}


def test_on_a_phone_the_first_result_begins_in_the_upper_third(browser, site, sextants):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    browser.get(f"{site.url}/?q=sextant")
    top = browser.execute_script("return document.querySelector('.results > li').getBoundingClientRect().top")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert top < 844 / 3


CLIPPED = """return [...document.querySelectorAll('.path, .also a, .title, .results h2 a')].filter((each) =>
  each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflow !== 'visible' ||
  [...each.getClientRects()].some((box) => box.left < each.closest('li, p, aside, main').getBoundingClientRect().left - 1))
  .map((each) => each.textContent)"""


@pytest.mark.parametrize("place", ["?q=sextant", "documents", "", "jobs"])
def test_no_path_is_clipped_however_long_it_is(browser, site, sextants, place):
    width(browser, 360)
    browser.get(f"{site.url}/{place}")
    find(browser, "main")
    clipped = browser.execute_script(CLIPPED)
    paths = browser.execute_script("return getComputedStyle(document.querySelector('.meta')).clipPath")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert (clipped, paths) == ([], "none")


def focused(browser):
    return browser.switch_to.active_element.text


def test_escape_and_back_return_to_the_opened_result_and_the_arrows_go_on_from_there(browser, site, sextants):
    browser.get(f"{site.url}/?q=sextant&mode=words&type=markdown")
    titles = [each.text for each in find(browser, ".hit-link")]
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    find(browser, "article h1", titles[1])
    press(browser, Keys.ESCAPE)
    find(browser, ".results")
    assert focused(browser) == titles[1]
    assert browser.current_url.endswith("type=markdown"), "the filters are still there"
    press(browser, Keys.ARROW_DOWN, Keys.ENTER)
    find(browser, "article h1", titles[2])
    browser.back()
    find(browser, ".results")
    eventually("the opened result has the focus", lambda: focused(browser) == titles[2])
    press(browser, Keys.ARROW_UP)
    assert focused(browser) == titles[1]
    browser.get(f"{site.url}/?q=sextant&mode=words&type=markdown")
    assert focused(browser) not in titles, "a search that is opened anew begins at its beginning"


def test_a_list_of_documents_is_returned_to_in_the_same_way(browser, site, sextants):
    browser.get(f"{site.url}/documents?name=sextant*")
    second = find(browser, ".rows .title")[1]
    title = second.text
    second.click()
    find(browser, "article h1", title)
    press(browser, Keys.ESCAPE)
    find(browser, "h1", "Documents")
    assert focused(browser) == title
    press(browser, Keys.ARROW_DOWN)
    assert focused(browser) == find(browser, ".rows .title")[2].text


def open_dialog(browser):
    browser.switch_to.active_element.send_keys(Keys.CONTROL, "k")
    find(browser, "#palette input")


CHOOSE = (
    "[...document.querySelectorAll('#palette li')].find((each) => each.textContent.startsWith(arguments[0])).click()"
)


def test_a_dialog_for_searches_and_commands_opens_on_every_page(browser, site, sextants):
    browser.get(f"{site.url}/overview")
    open_dialog(browser)
    field = find(browser, "#palette input")[0]
    assert browser.switch_to.active_element == field
    press(browser, "chang")
    assert find(browser, "#palette [aria-selected=true]", "Search for “chang”")
    find(browser, "#palette li", "Changes and undo")
    browser.execute_script(CHOOSE, "Changes and undo")  # at one moment: what is found replaces the rows
    find(browser, "h1", "Changes")
    open_dialog(browser)
    press(browser, "sextant page")
    assert find(browser, "#palette li", "A sextant page")
    press(browser, Keys.ENTER)
    assert find(browser, ".results", "A sextant page")
    open_dialog(browser)
    press(browser, Keys.ESCAPE)
    assert not browser.find_element(By.ID, "palette").is_displayed()


def test_the_dialog_lists_pages_before_documents_and_tells_documents_with_one_title_apart(browser, site):
    for folder in ("brass", "steel"):
        add(
            site, f"{folder}/duplicates/log.md", f"# Duplicates\n\nThe {folder} duplicates of the log.", "duplicate-log"
        )
    browser.get(f"{site.url}/overview")
    open_dialog(browser)
    press(browser, "duplicates")
    find(browser, "#palette li small", "steel/duplicates/log.md")
    rows = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#palette li small")]
    assert rows[:2] == ["Search", "Go to"]
    assert {"brass/duplicates/log.md", "steel/duplicates/log.md"} <= set(rows[2:])
    press(browser, Keys.ARROW_DOWN, Keys.ENTER)
    assert find(browser, "h1", "Duplicates")
    assert browser.current_url == f"{site.url}/duplicates"
    for folder in ("brass", "steel"):
        [found] = site.engine.get("documents", params={"source_prefix": f"{folder}/duplicates/"}).json()["documents"]
        site.engine.delete(f"documents/{found['id']}").raise_for_status()


def test_the_dialog_opens_the_document_with_exactly_the_title_that_was_typed(browser, site):
    added = add(site, "brass/binnacle.md", "# Binnacle\n\nThe compass stands in it.", "binnacle")
    lamp = add(site, "brass/binnacle lamp.md", "# Binnacle lamp\n\nThe binnacle has a lamp.", "binnacle")
    browser.get(f"{site.url}/overview")
    open_dialog(browser)
    press(browser, "binnacle")
    find(browser, "#palette li small", "brass/binnacle.md")
    rows = browser.find_elements(By.CSS_SELECTOR, "#palette li span")
    assert [each.text for each in rows[:2]] == ["Binnacle", "Search for “binnacle”"]
    press(browser, Keys.ENTER)
    assert find(browser, "article h1", "Binnacle")
    assert browser.current_url.partition("?")[0] == f"{site.url}/d/{added}"
    for each in (added, lamp):
        site.engine.delete(f"documents/{each}").raise_for_status()


def test_searches_are_kept_when_a_result_was_opened_or_when_they_are_saved(browser, site, sextants):
    browser.get(f"{site.url}/?q=sextant&tag=sea")
    browser.execute_script("localStorage.clear()")
    find(browser, "[data-do=save-search]", "Save search")[0].click()
    assert find(browser, "[data-do=save-search][aria-pressed=true]", "Saved")
    browser.get(f"{site.url}/?q=almanac <b>1961</b>")
    find(browser, ".hit-link")[0].click()
    browser.get(site.url)
    kept = find(browser, "#searches a")
    assert [each.text for each in kept] == ["★ sextant", "almanac <b>1961</b>"]
    kept[0].click()
    assert find(browser, "#facets .set", "sea")
    find(browser, "[data-do=save-search]", "Saved")[0].click()
    browser.get(site.url)
    assert [each.text for each in find(browser, "#searches a")] == ["almanac <b>1961</b>"]
    browser.execute_script("localStorage.clear()")


KEY = """const target = document.querySelector(arguments[1]);
target.dispatchEvent(new KeyboardEvent("keydown", {bubbles: true, cancelable: true, ...arguments[0]}));"""


def test_the_dialog_opens_in_every_layout_of_keys_and_not_instead_of_the_browsers_own(browser, site):
    browser.get(site.url)
    find(browser, "#q")
    browser.execute_script(KEY, {"key": "K", "code": "KeyK", "ctrlKey": True, "shiftKey": True}, "#q")
    assert browser.find_elements(By.ID, "palette") == []
    browser.execute_script(KEY, {"key": "\u043b", "code": "KeyK", "ctrlKey": True}, "#q")
    assert find(browser, "#palette input")


def test_enter_that_ends_a_composition_opens_nothing(browser, site, sextants):
    browser.get(f"{site.url}/?q=sextant")
    find(browser, ".hit-link")
    browser.execute_script(KEY, {"key": "Enter", "isComposing": True}, "#q")
    open_dialog(browser)
    browser.execute_script(KEY, {"key": "Enter", "isComposing": True}, "#palette input")
    assert find(browser, "#palette input")
    assert browser.current_url.endswith("/?q=sextant")


@pytest.mark.parametrize(
    "kept", ["not json", "[null, 1, {}]", '{"a": 1}', '[{"query": "x", "place": "javascript:alert(1)"}]']
)
def test_a_broken_memory_of_searches_breaks_no_page(browser, site, kept):
    browser.get(site.url)
    browser.execute_script(
        "for (const each of ['kb-saved', 'kb-recent']) localStorage.setItem(each, arguments[0])", kept
    )
    browser.get(site.url)
    open_dialog(browser)
    assert find(browser, "#palette li", "Documents")
    assert "javascript" not in read(browser, "#palette")[0]
    browser.execute_script("localStorage.clear()")


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("/home/ada/note.md", ["/home/", "ada/"]),
        ("vault/Areas/note.md", ["vault/", "Areas/"]),
        ("http://example.org/a/page", ["http://example.org/", "a/"]),
        ("a://b", []),
        ("note.md", []),
        ("", []),
        ("//server/share/x", ["//", "server/", "share/"]),
    ],
)
def test_the_folders_of_a_path_are_named_in_full(path, folders):
    assert folder_of(path) == folders


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ("2023-02-27", "27 Feb 2023"),
        ("2023-02-27T10:00:00Z", "27 Feb 2023"),
        ("2023-02", "Feb 2023"),
        ("2023", "2023"),
        ("2023-02-31", "2023-02-31"),
        ("0000", "0000"),
        ("spring", "spring"),
    ],
)
def test_a_date_is_shown_as_precisely_as_it_is_known(date, words):
    assert own_date(date) == words


def test_a_path_breaks_after_its_slashes_and_is_escaped():
    assert broken("a_b/<c>") == "a_<wbr>b/<wbr>&lt;c&gt;"


def test_one_result_elsewhere_does_not_hide_the_folders_of_the_others():
    paths = [f"/home/ada/vault/{folder}/{number}.md" for folder in ("Recipes", "Garden") for number in range(12)]
    rows = [{"source_path": path} for path in [*paths, "attachments/plan.png"]]
    chips = list(folder_chips(SearchForm("peas"), rows))
    assert [(chip["label"], chip["count"]) for chip in chips] == [
        ("in Recipes/", 12),
        ("in Garden/", 12),
        ("in attachments/", 1),
    ]
    same = [{"source_path": f"/home/ada/vault/{number}.md"} for number in range(24)]
    assert [chip["count"] for chip in folder_chips(SearchForm("peas"), [*same, {"source_path": "b/a.md"}])] == [24, 1]
