"""Duplicates in the browser: found, compared, and all but one deleted."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By

from kb.wording import describe_shared
from tests.http.test_duplicates import EDITED, STORY
from tests.web.conftest import find
from tests.web.test_results import add

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]


@pytest.fixture
def twins(site, request):
    """Two files with the same content, and one with nearly the same; their name, and their ids."""
    name = f"twins-{abs(hash(request.node.name)) % 10**8}"
    texts = {"a": f"{name} {STORY}", "b": f"{name} {STORY}", "c": f"{name} {EDITED}"}
    ids = [add(site, f"{name}/{each}/story.md", text, name) for each, text in texts.items()]
    yield name, ids
    for each in ids:
        site.engine.delete(f"documents/{each}")


def present(site, ids):
    return [each for each in ids if site.engine.get(f"documents/{each}").status_code == 200]


def keep(reading, site, name, kept, **values):
    """Keep one of the documents, without script."""
    reader = reading(f"{site.url}/duplicates")
    [form] = [form for form in reader.page.forms if name in form.text_content()]
    fields = {"keep": str(kept), **values}
    data = {}
    for key, value in form.form_values():
        data.setdefault(key, []).append(value)
    reader._take(reader.http.post(form.action, data=data | fields))
    return reader


def test_one_is_kept_and_undo_brings_the_other_back(browser, site, twins):
    name, ids = twins
    browser.get(f"{site.url}/duplicates")
    [group] = find(browser, ".pair", name)
    assert "2 documents with the same content" in group.text
    group.find_elements(By.CSS_SELECTOR, "button")[1].click()
    find(browser, ".notice", "Deleted 1 document.")
    assert present(site, ids) == ids[1:]
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, ".notice", "Undone")
    assert present(site, ids) == ids


def test_near_duplicates_are_compared(browser, site, twins):
    name, ids = twins
    browser.get(f"{site.url}/duplicates?kind=near")
    [group] = find(browser, ".pair", name)
    assert "3 documents with similar texts, at least " in group.text
    assert "Compared" in find(browser, "[role=status]", "Compared")[0].text
    assert not [each for each in group.find_elements(By.TAG_NAME, "button") if "Keep" in each.text], "compare first"
    links = group.find_elements(By.LINK_TEXT, "Compare")
    assert len(links) == 2
    links[1].click()
    find(browser, "h1", "Compare")
    assert "blue" in " ".join(each.text for each in browser.find_elements(By.TAG_NAME, "del"))
    assert "green" in " ".join(each.text for each in browser.find_elements(By.TAG_NAME, "ins"))
    find(browser, "main p", "only in the first document, and ")
    find(browser, "button", "Keep only this")[1].click()
    question = browser.switch_to.alert
    assert "words that the other document doesn't have? You can undo this." in question.text
    question.accept()
    find(browser, ".notice", "Deleted 1 document.")
    assert present(site, ids) == ids[1:]
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, ".notice", "Undone")
    assert present(site, ids) == ids


def test_a_comparison_begins_with_text_and_shows_the_fields_that_differ(reading, site, request):
    name = f"fields-{abs(hash(request.node.name)) % 10**8}"
    ids = [
        add(
            site, f"{name}/{tag}.md", f"---\ntitle: Log\ndate: 2024-05-0{day}\ntags: [{tag}]\n---\n\n# {name}\n\n{text}"
        )
        for day, tag, text in ((6, "dawn", STORY), (7, "dusk", EDITED))
    ]
    reader = reading(f"{site.url}/d/{ids[0]}/compare/{ids[1]}")
    [shown] = reader.page.xpath("//div[contains(@class, 'diff')]")
    assert shown.text_content().startswith(f"# {name}")
    facts = [each.text_content() for each in reader.page.xpath("//dl//dd")]
    assert facts == ["2024-05-06 2024-05-07", "dawn dusk"]


@pytest.mark.parametrize(
    ("total", "shared", "words"),
    [
        (2, None, "the same content"),
        (2, 0.68, "similar texts, 68% in common"),
        (3, 0.68, "similar texts, at least 68% in common"),
        (2, 0.9999, "nearly the same text, 99% in common"),
    ],
)
def test_a_share_in_common_is_never_rounded_up(total, shared, words):
    assert describe_shared(total, shared) == words


def test_if_the_document_to_keep_is_gone_the_others_stay(reading, site, twins):
    name, ids = twins
    reader = reading(f"{site.url}/duplicates")
    [form] = [form for form in reader.page.forms if name in form.text_content()]
    fields = {}
    for key, value in form.form_values():
        fields.setdefault(key, []).append(value)
    site.engine.delete(f"documents/{ids[0]}").raise_for_status()
    reader._take(reader.http.post(form.action, data=fields | {"keep": str(ids[0])}))
    assert reader.answer.status_code == 404
    assert present(site, ids) == ids[1:]


@pytest.mark.parametrize("changed", [0, 1])
def test_if_one_has_changed_since_the_page_was_made_all_stay(reading, site, twins, changed):
    name, ids = twins
    reader = reading(f"{site.url}/duplicates")
    [form] = [form for form in reader.page.forms if name in form.text_content()]
    fields = {}
    for key, value in form.form_values():
        fields.setdefault(key, []).append(value)
    assert add(site, f"{name}/{'ab'[changed]}/story.md", f"{name} has another end.", name) == ids[changed]
    reader._take(reader.http.post(form.action, data=fields | {"keep": str(ids[0])}))
    assert reader.answer.status_code == 422
    assert "has changed. Go back, reload the page, and look at it again." in reader.text
    assert present(site, ids) == ids


def test_a_file_of_a_synced_folder_is_deleted_only_after_a_question(reading, site, twins):
    name, ids = twins
    claim = {"prefix": f"{name}/b/", "path": f"/{name}/b", "host": "laptop", "machine": name}
    site.engine.put("folders", json=claim).raise_for_status()
    reader = keep(reading, site, name, ids[0])
    assert "synced folders" in reader.text
    assert present(site, ids) == ids
    reader.submit("many$")
    assert present(site, ids) == [ids[0], ids[2]]


@pytest.fixture
def pictures(site, request):
    """Two files with the same content, and a note that shows both; their name, their ids, and the id of the note."""
    name = f"shown-{abs(hash(request.node.name)) % 10**8}"
    ids = []
    for each in "ab":
        form = {
            "files": {"file": (f"{each}.md", f"{name} {STORY}".encode())},
            "data": {"source_path": f"{name}/{each}.md"},
        }
        ids.append(site.engine.post("jobs", params={"wait": 30}, **form).json()["document_id"])
    text = f"First ![[{name}/a.md]], then ![[{name}/b.md]]."
    note = site.engine.post("jobs", params={"wait": 30}, json={"title": f"Shows {name}", "text": text})
    ids.append(note.json()["document_id"])
    yield name, ids
    for each in ids:
        site.engine.delete(f"documents/{each}")


def test_a_copy_that_a_note_shows_is_deleted_only_after_the_page_names_the_note(reading, site, pictures):
    name, ids = pictures
    reader = keep(reading, site, name, ids[0])
    assert "1 document links to it, or shows it as a picture." in reader.text
    assert f"Shows {name}" in reader.text
    assert present(site, ids) == ids
    reader.submit("many$")
    assert "Deleted 1 document. 1 document had links to them." in reader.text
    assert present(site, ids) == [ids[0], ids[2]]
    reader.submit(r"/changes/\d+$")
    assert present(site, ids) == ids


def test_a_note_with_more_links_to_it_than_kb_lists_is_not_said_to_have_only_those(reading, site):
    name = "Much linked note"
    note = {"title": name, "text": "Its text."}
    ids = [site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]]
    try:
        for number in range(201):
            text = {"title": f"Link {number}", "text": f"[[{name}]] {number}"}
            ids.append(site.engine.post("jobs", params={"wait": 30}, json=text).json()["document_id"])
        reader = reading(f"{site.url}/d/{ids[0]}")
        reader.submit("delete$")
        assert "At least 200 documents had links to it." in reader.text
    finally:
        for each in ids:
            site.engine.delete(f"documents/{each}")


def test_a_copy_is_not_deleted_after_the_question_if_it_has_changed_meanwhile(reading, site, pictures):
    name, ids = pictures
    reader = keep(reading, site, name, ids[0])
    add(site, f"{name}/b.md", f"{name} has another end.", name)
    reader.submit("many$")
    assert reader.answer.status_code == 422
    assert present(site, ids) == ids


def test_a_copy_whose_links_lead_to_the_kept_one_is_deleted_at_once(reading, site, twins):
    name, ids = twins
    text = {"title": f"Names {name}", "text": f"See [[story]] of {name}."}
    note = site.engine.post("jobs", params={"wait": 30}, json=text).json()["document_id"]
    reader = keep(reading, site, name, ids[1])
    assert "Deleted 1 document." in reader.text
    assert present(site, ids) == ids[1:]
    site.engine.delete(f"documents/{note}")


def test_without_duplicates_the_page_says_so(start_server, reading, tmp_path):
    with start_server(tmp_path / "data", KB_APPS="api,web") as server:
        assert "No two documents have the same content." in reading(f"{server.url}/duplicates").text
        assert "No two documents have nearly the same text." in reading(f"{server.url}/duplicates?kind=near").text
        for place in ("duplicates?kind=x", "duplicates?seen=x"):
            assert reading(f"{server.url}/{place}").answer.status_code == 200
        assert reading(f"{server.url}/duplicates?cursor=x").answer.status_code == 422
        assert reading(f"{server.url}/d/1/compare/2").answer.status_code == 404


def test_a_near_group_is_dismissed_and_shown_again(browser, site, twins):
    name, ids = twins
    browser.get(f"{site.url}/duplicates?kind=near")
    [group] = find(browser, ".pair", name)
    group.find_element(By.XPATH, ".//button[.='Not duplicates']").click()
    find(browser, ".notice", "kb leaves this group out until it changes.")
    assert not [each for each in browser.find_elements(By.CSS_SELECTOR, ".pair") if name in each.text]
    assert present(site, ids) == ids
    find(browser, ".notice a", "Dismissed groups")[0].click()
    [group] = find(browser, ".pair", name)
    group.find_element(By.XPATH, ".//button[.='Show again']").click()
    find(browser, ".notice", "kb shows this group again.")
    assert find(browser, ".pair", name)


def dismiss(reading, site, first, **values):
    """Dismiss the near group that begins with a document, without script."""
    reader = reading(f"{site.url}/duplicates?kind=near")
    forms = [form for form in reader.page.forms if (form.action or "").endswith("/dismissed")]
    [form] = [form for form in forms if first in form.xpath(".//input[@name='id']/@value")]
    data = {"act": "dismiss"}
    for key, value in form.form_values():
        data.setdefault(key, []).append(value)
    reader._take(reader.http.post(form.action, data=data | values))
    return reader.text


@pytest.mark.parametrize(("values", "reason"), [({"seen": "1.000"}, "has changed"), ({"token": "of another page"}, "")])
def test_a_group_is_dismissed_only_as_the_page_of_this_visitor_showed_it(reading, site, twins, values, reason):
    _, ids = twins
    assert reason in dismiss(reading, site, str(ids[0]), **values)
    page = site.engine.get("duplicates", params={"kind": "near", "dismissed": True}).json()
    assert not [group for group in page["groups"] if group["documents"][0]["id"] in ids]
