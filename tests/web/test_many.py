"""Many rows at once: selected with the mouse and the keys, changed in one operation, and taken back."""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO
from zipfile import ZipFile

import httpx2
import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from kb_web.export_zip import free_name
from tests.support.eventually import eventually
from tests.web.conftest import find, read
from tests.web.test_flows import press
from tests.web.test_pages import Reader
from tests.web.test_results import KEY, add

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]


@pytest.fixture
def batch(site, request):
    """Five files with a tag of their own; returns the tag and their ids."""
    tag = f"batch-{abs(hash(request.node.name)) % 10**8}"
    paths = [f"{tag}/old/file {number}.md" for number in range(5)]
    ids = [add(site, path, f"# {tag} {number}\n\nText {number} of {tag}.", tag) for number, path in enumerate(paths)]
    yield tag, ids
    for each in ids:
        site.engine.delete(f"documents/{each}")


def tagged(site, tag):
    return {each["id"] for each in site.engine.get("documents", params={"tag": tag}).json()["documents"]}


def reader_at(site, place):
    return Reader(f"{site.url}/{place}")


def send(reader, **values):
    """Send the form of the selected rows with these fields, as a browser without script."""
    [form] = [each for each in reader.page.forms if each.get("id") == "many"]
    fields = [(name, value) for name, value in form.form_values() if name not in values]
    fields += [
        (name, each) for name, value in values.items() for each in (value if isinstance(value, list) else [value])
    ]
    data = {}
    for name, value in fields:
        data.setdefault(name, []).append(value)
    reader._take(reader.http.post(form.action, data=data))


def fail(site, name):
    """Add a file that cannot be read; return its job."""
    file = {"file": (f"{name}.pdf", f"%PDF-1.4 none {name}".encode())}
    return site.engine.post("jobs", params={"wait": 30}, files=file).json()["job_id"]


def test_rows_are_selected_with_shift_tagged_together_and_the_tags_taken_back(browser, site, batch):
    tag, ids = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    boxes = find(browser, ".rows .pick")
    assert not browser.find_element(By.ID, "many").is_displayed()
    boxes[0].click()
    ActionChains(browser).key_down(Keys.SHIFT).click(boxes[3]).key_up(Keys.SHIFT).perform()
    assert find(browser, "#many", "4 selected")
    find(browser, ".menu.up summary", "Tags")[0].click()
    find(browser, ".menu.up [name=add]")[0].send_keys("together, twice")
    find(browser, "button", "Change tags")[0].click()
    find(browser, ".notice", "Tags changed in 4 documents.")
    assert len(tagged(site, "together") & set(ids)) == 4
    assert browser.current_url.endswith(f"documents?tag={tag}")
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, ".notice", "Undone")
    assert not tagged(site, "together")
    browser.refresh()
    assert browser.find_elements(By.CSS_SELECTOR, ".notice") == [], "a notice is shown once"


def test_rows_are_selected_with_keys_alone_and_deleted_and_restored(browser, site, batch):
    tag, ids = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    title = find(browser, ".rows a.title")[0]
    browser.execute_script("arguments[0].focus()", title)
    title.send_keys("x", Keys.ARROW_DOWN)
    browser.switch_to.active_element.send_keys("x")
    assert find(browser, "#many", "2 selected")
    find(browser, "#many .danger", "Delete")[0].send_keys(Keys.ENTER)
    find(browser, ".notice", "Deleted 2 documents.")
    assert len(tagged(site, tag)) == 3
    browser.find_element(By.TAG_NAME, "body").send_keys("u")
    find(browser, ".notice", "Undone")
    assert tagged(site, tag) == set(ids)


def test_enter_on_a_check_box_selects_its_row_and_escape_selects_none(browser, site, batch):
    tag, _ = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    browser.execute_script("document.querySelector('.rows .pick').focus()")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert find(browser, "#many", "1 selected")
    browser.switch_to.active_element.send_keys("*")
    assert find(browser, "#many", "5 selected")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.ID, "many").is_displayed()
    assert browser.current_url.endswith(f"documents?tag={tag}")


def test_enter_on_a_check_box_without_script_leaves_the_list_as_it_is(site, batch):
    tag, ids = batch
    for chosen in ([], [str(ids[0])]):
        reader = reader_at(site, f"documents?tag={tag}")
        send(reader, id=chosen)
        assert reader.answer.status_code == 200
        assert str(reader.answer.url).endswith(f"documents?tag={tag}")
    assert tagged(site, tag) == set(ids)


def test_rows_are_reached_with_the_arrows_selected_with_shift_and_a_change_is_undone_with_ctrl_z(browser, site, batch):
    tag, _ = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    find(browser, ".rows a.title")
    press(browser, Keys.ARROW_DOWN)
    assert browser.switch_to.active_element.text == read(browser, ".rows a.title")[0]
    chain = ActionChains(browser).key_down(Keys.SHIFT)
    for _ in range(4):
        chain.send_keys(Keys.ARROW_DOWN)
    chain.key_up(Keys.SHIFT).perform()
    assert find(browser, "#many", "5 selected")
    press(browser, "t")
    eventually("the field has the focus", lambda: browser.switch_to.active_element.get_attribute("name") == "add")
    press(browser, "batch-")
    suggested = "return [...document.querySelectorAll('#known-tags option')].map((each) => each.value)"
    eventually("tags are suggested", lambda: tag in browser.execute_script(suggested))
    press(browser, "of-keys", Keys.ENTER)
    find(browser, ".notice", "Tags changed in 5 documents.")
    assert len(tagged(site, "batch-of-keys")) == 5
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    find(browser, ".notice", "Undone")
    assert not tagged(site, "batch-of-keys")


def test_ctrl_z_is_the_letter_of_the_readers_keyboard(browser, site, batch):
    tag, ids = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    find(browser, ".rows .pick")[0].click()
    find(browser, ".menu.up summary", "Tags")[0].click()
    find(browser, ".menu.up [name=add]")[0].send_keys(f"{tag}-z", Keys.ENTER)
    find(browser, ".notice", "Tags changed in 1 document.")
    browser.execute_script(KEY, {"key": "y", "code": "KeyZ", "ctrlKey": True}, "body")
    assert len(tagged(site, f"{tag}-z") & set(ids)) == 1
    assert find(browser, ".notice", "Tags changed in 1 document.")
    browser.execute_script(KEY, {"key": "z", "code": "KeyY", "ctrlKey": True}, "body")
    find(browser, ".notice", "Undone")
    assert not tagged(site, f"{tag}-z")


def test_all_that_match_are_changed_in_one_operation(browser, site, batch):
    tag, ids = batch
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, act="retag", add="whole", all="1", total="5")
    assert "Tags changed in 5 documents." in reader.text
    assert tagged(site, "whole") == set(ids)
    reader.submit(r"/changes/\d+$")
    assert not tagged(site, "whole")
    assert tagged(site, tag) == set(ids), "only the documents that matched were touched"


def test_documents_are_moved_to_a_folder_and_back(site, batch):
    tag, ids = batch
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, id=[str(each) for each in ids[:2]], folder=f"{tag}/new/")
    assert "Moved 2 documents." in reader.text
    assert site.engine.get(f"documents/{ids[0]}").json()["source_path"] == f"{tag}/new/file 0.md"
    reader.submit(r"/changes/\d+$")
    assert site.engine.get(f"documents/{ids[0]}").json()["source_path"] == f"{tag}/old/file 0.md"


def test_a_document_that_cannot_be_moved_is_counted_with_the_reason(site, batch):
    tag, ids = batch
    add(site, f"{tag}/new/file 0.md", "# In the way", "")
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, id=[str(ids[0]), str(ids[1]), "999999999"], act="move", folder=f"{tag}/new")
    assert "Moved 1 document. 2 documents not changed: " in reader.text
    assert "file 0.md" in reader.text


def test_a_note_that_has_no_file_gets_the_name_of_its_title_in_the_folder(site, batch):
    tag, _ = batch
    content = {"text": "Fired at dawn.", "title": "Kiln: a/b", "tags": [tag]}
    note = site.engine.post("jobs", params={"wait": 30}, json=content).json()
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, id=[str(note["document_id"])], act="move", folder=f"{tag}/filed")
    assert "Moved 1 document." in reader.text
    moved = site.engine.get(f"documents/{note['document_id']}").json()
    assert (moved["source_path"], moved["title"]) == (f"{tag}/filed/Kiln- a-b.md", "Kiln: a/b")
    site.engine.delete(f"documents/{note['document_id']}").raise_for_status()


def test_deleted_documents_are_restored_together(site, batch):
    tag, ids = batch
    for each in ids:
        site.engine.delete(f"documents/{each}").raise_for_status()
    reader = reader_at(site, "bin")
    send(reader, id=[str(each) for each in ids], act="restore")
    assert "Restored 5 documents." in reader.text
    assert tagged(site, tag) == set(ids)
    reader.submit(r"/changes/\d+$")
    assert not tagged(site, tag)


def first_changes(site, number):
    """The texts of the newest operations in the list of changes."""
    rows = reader_at(site, "changes").page.xpath("//ul[contains(@class, 'rows')]/li")
    return [" ".join(row.text_content().split()) for row in rows[:number]]


def test_the_list_of_changes_names_documents_and_tags_and_offers_only_what_can_be_undone(site, batch):
    tag, ids = batch
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, id=[str(each) for each in ids], act="retag", add="ledger")
    [retagged] = first_changes(site, 1)
    assert retagged.startswith("added tag ledger in 5 documents")
    assert "and 2 more" in retagged
    assert retagged.endswith("Undo")
    reader.submit(r"/changes/\d+$")
    undo, retagged = first_changes(site, 2)
    assert undo.startswith("removed tag ledger in 5 documents")
    assert retagged.startswith("added tag ledger in 5 documents")
    assert retagged.endswith("nothing is left to undo")


def test_the_list_of_changes_names_authors_only_where_they_differ_and_offers_what_is_still_to_undo(site, batch):
    tag, _ = batch
    for word in ("lasting", "passing"):
        reader = reader_at(site, f"documents?tag={tag}")
        ids = reader.page.xpath("//input[@name='id']/@value")
        send(reader, id=ids, act="retag", add=word)
    number = site.engine.get("operations", params={"limit": 1}).json()["operations"][0]["number"]
    site.engine.post("undo", json={"operation": number}).raise_for_status()
    _, passing, lasting = first_changes(site, 3)
    assert passing.startswith("added tag passing")
    assert passing.endswith("nothing is left to undo")
    assert lasting.endswith("Undo"), "the documents are as it left them"
    names = {each["by"] for each in site.engine.get("operations", params={"limit": 30}).json()["operations"]}
    assert len(names) > 1 or not any(name in lasting for name in names if name)


def test_the_list_of_changes_does_not_say_of_all_documents_what_one_of_them_got(site, batch):
    _, ids = batch
    for each, tags in ((ids[0], ["jib"]), (ids[1], ["boom", "mast"])):
        headers = {"KB-Operation": f"mixed-{ids[0]}"}
        site.engine.patch(f"documents/{each}/tags", json={"add": tags}, headers=headers).raise_for_status()
    assert first_changes(site, 1)[0].startswith("changed tags in 2 documents")


def test_the_list_of_changes_tells_restored_documents_from_added_ones(site, batch):
    _, ids = batch
    site.engine.delete(f"documents/{ids[0]}").raise_for_status()
    assert first_changes(site, 1)[0].startswith("1 deleted")
    send(reader_at(site, "bin"), id=[str(ids[0])], act="restore")
    assert first_changes(site, 1)[0].startswith("1 restored")


def test_the_history_of_a_document_says_what_each_version_changed(site, batch):
    _, ids = batch
    site.engine.patch(f"documents/{ids[0]}/tags", json={"add": ["new", "blue"]}).raise_for_status()
    site.engine.delete(f"documents/{ids[0]}").raise_for_status()
    site.engine.post(f"documents/{ids[0]}/restore").raise_for_status()
    rows = reader_at(site, f"d/{ids[0]}/history").page.xpath("//ol/li")
    said = [" ".join(row.text_content().split()) for row in rows]
    assert "restored from the bin" in said[0]
    assert "added tags blue, new" in said[-2]
    assert "version 1added" in said[-1]


def added(site, text):
    return site.engine.post("jobs", params={"wait": 30}, json={"text": text}).json()["document_id"]


def test_the_newest_version_is_compared_with_the_one_before(site):
    sentence = "The kiln needs new elements before winter. "
    changed = added(site, f"{sentence * 20}Cones are ordered.")
    site.engine.patch(f"notes/{changed}", json={"text": f"{sentence * 20}Cones have come."}).raise_for_status()
    page = reader_at(site, f"d/{changed}/history/2").page
    [changes] = page.find_class("diff")
    assert [[each.text for each in changes.iter(sign)] for sign in ("del", "ins")] == [
        ["are", "ordered"],
        ["have", "come"],
    ]
    assert len(changes.find_class("gap")) == 1
    page = reader_at(site, f"d/{added(site, sentence * 12)}/history/1").page
    assert "current version, and the first" in page.text_content()
    assert not page.find_class("gap")


def test_failed_files_are_dismissed_one_by_one_and_all_at_once(site):
    for number in range(3):
        fail(site, f"broken-{number}")
    failed = [each["id"] for each in site.engine.get("jobs", params={"status": "failed"}).json()["jobs"]]
    reader = reader_at(site, "jobs?status=failed")
    send(reader, id=[str(failed[0])], act="dismiss")
    assert "Dismissed 1 failed job." in reader.text
    reader.open(f"{site.url}/jobs?status=failed")
    [form] = [each for each in reader.page.forms if each.fields.get("all") == "1" and each.get("id") != "many"]
    reader._take(reader.http.post(form.action, data=dict(form.form_values()) | {"act": "dismiss"}))
    assert site.engine.get("jobs", params={"status": "failed"}).json()["jobs"] == []


def test_a_deletion_of_files_in_a_synced_folder_says_first_that_a_sync_adds_them_again(site, batch):
    tag, ids = batch
    claim = {"prefix": f"{tag}/", "machine": tag, "host": "desk", "path": f"/home/ada/{tag}", "mounts": "1"}
    site.engine.put("folders", json=claim).raise_for_status()
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, act="delete", all="1", total="5")
    assert "Delete 5 documents?" in reader.text
    assert f"5 files in /home/ada/{tag} on desk" in reader.text
    assert tagged(site, tag) == set(ids), "nothing is deleted yet"
    reader.submit("/many$")
    assert "Deleted 5 documents." in reader.text
    assert not tagged(site, tag)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"act": "retag", "add": "x"}, "select at least one row"),
        ({"act": "retag", "id": ["1"]}, "name the tags"),
        ({"act": "move", "id": ["1"], "folder": " "}, "name the folder"),
        ({"act": "format", "id": ["1"]}, "choose an action"),
        ({"act": "delete", "id": ["x", "", "9" * 30]}, "select at least one row"),
    ],
)
def test_an_incomplete_form_changes_nothing_and_says_what_is_missing(site, batch, fields, said):
    tag, ids = batch
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, **fields)
    assert reader.answer.status_code == 422
    assert said in reader.text
    assert tagged(site, tag) == set(ids)


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example/", "javascript:alert(1)", "x\r\nSet-Cookie: a=b"]
)
def test_the_way_back_leads_to_a_page_of_kb_only(site, batch, back):
    tag, ids = batch
    reader = reader_at(site, f"documents?tag={tag}")
    send(reader, id=[str(ids[0])], act="retag", add="y", back=back)
    assert str(reader.answer.url).startswith(site.url)


def test_a_notice_is_shown_to_nobody_else(site, batch):
    tag, ids = batch
    reader, other = reader_at(site, f"documents?tag={tag}"), reader_at(site, f"documents?tag={tag}")
    [form] = [each for each in reader.page.forms if each.get("id") == "many"]
    data = dict(form.form_values()) | {"id": str(ids[0]), "act": "retag", "add": "z"}
    reader.http.post(form.action, data=data, follow_redirects=False)
    other.open(f"{site.url}/documents")
    assert "Tags changed" not in other.text
    reader.open(f"{site.url}/documents")
    assert "Tags changed in 1 document." in reader.text


def test_an_operation_is_found_by_the_key_of_its_requests(site, batch):
    _, ids = batch
    for each in ids[:2]:
        change = {"json": {"add": ["found"]}, "headers": {"KB-Operation": "one-key-only"}}
        site.engine.patch(f"documents/{each}/tags", **change).raise_for_status()
    [found] = site.engine.get("operations", params={"key": "one-key-only"}).json()["operations"]
    assert found["changed"] == 2
    assert site.engine.get("operations", params={"key": "another"}).json()["operations"] == []
    assert site.engine.get("operations", params={"key": "no spaces"}).status_code == 422


def test_a_single_deletion_returns_to_the_list_and_can_be_undone(browser, site, batch):
    tag, ids = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    find(browser, ".rows a.title")[0].click()
    find(browser, ".more summary")[0].click()
    find(browser, ".danger", "Delete")[0].click()
    find(browser, ".notice", "Deleted “")
    assert browser.current_url.endswith(f"documents?tag={tag}")
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, ".notice", "Undone")
    assert tagged(site, tag) == set(ids)


@pytest.mark.parametrize("fields", [{"act": "retag", "add": "late"}, {"act": "move", "folder": "late"}])
def test_all_that_match_are_tagged_or_moved_only_while_the_list_is_the_one_on_the_page(site, batch, fields):
    tag, ids = batch
    reader = reader_at(site, f"documents?tag={tag}")
    late = add(site, f"{tag}/old/late.md", f"# Late\n\nA late file of {tag}.", tag)
    site.engine.delete(f"documents/{ids[0]}").raise_for_status()
    send(reader, **fields, all="1", total="5")
    assert reader.answer.status_code == 422
    assert "the list has changed" in reader.text
    assert not tagged(site, "late")
    assert site.engine.get(f"documents/{late}").json()["source_path"] == f"{tag}/old/late.md"
    site.engine.delete(f"documents/{late}").raise_for_status()


def test_the_whole_bin_is_restored_only_while_it_is_the_one_on_the_page(site, batch):
    tag, ids = batch
    mail = site.ids["boat/moorings.eml"]  # its attachment goes with it, and comes back with it
    for each in (ids[0], mail):
        site.engine.delete(f"documents/{each}").raise_for_status()
    reader = reader_at(site, "bin")
    total = str(site.engine.get("status").json()["history"]["bin"])
    site.engine.delete(f"documents/{ids[1]}").raise_for_status()
    send(reader, act="restore", all="1", total=total)
    assert reader.answer.status_code == 422
    assert "the list has" in reader.text
    assert tagged(site, tag) == set(ids[2:])
    send(reader_at(site, "bin"), act="restore", all="1", total=str(int(total) + 1))
    assert tagged(site, tag) == set(ids)
    assert site.engine.get(f"documents/{mail}").status_code == 200
    site.engine.delete(f"documents/{site.ids['binned']}").raise_for_status()


def test_all_documents_that_a_search_found_are_changed_also_those_on_no_page(browser, site, batch):
    tag, ids = batch
    many = [
        add(site, f"{tag}/more/{number}.md", f"# {tag} more {number}\n\nFound {number}.", tag) for number in range(20)
    ]
    browser.get(f"{site.url}/?q={tag}&mode=words&tag={tag}")
    find(browser, ".results .pick")[0].click()
    find(browser, "[data-do=pick-all]")[0].click()
    assert find(browser, "#many", "20 selected")
    find(browser, "#many .match", "all 25 documents found")[0].click()
    assert find(browser, "#many [role=status]", "all 25 documents found")
    find(browser, ".menu.up summary", "Tags")[0].click()
    find(browser, ".menu.up [name=add]")[0].send_keys("found-all", Keys.ENTER)
    find(browser, ".notice", "Tags changed in 25 documents.")
    assert tagged(site, "found-all") == {*ids, *many}
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, ".notice", "Undone")
    assert not tagged(site, "found-all")
    for each in many:
        site.engine.delete(f"documents/{each}").raise_for_status()


def test_a_file_that_failed_after_the_page_was_made_is_not_dismissed_with_all(site):
    fail(site, "early")
    reader = reader_at(site, "jobs?status=failed")
    late = fail(site, "late")
    [form] = [each for each in reader.page.forms if each.fields.get("all") == "1" and each.get("id") != "many"]
    reader._take(reader.http.post(form.action, data=dict(form.form_values()) | {"act": "dismiss"}))
    assert [each["id"] for each in site.engine.get("jobs", params={"status": "failed"}).json()["jobs"]] == [late]
    site.engine.delete(f"jobs/{late}").raise_for_status()


def test_jobs_are_dismissed_after_a_question_that_says_what_cannot_be_undone(browser, site):
    job = fail(site, "asked")
    browser.get(f"{site.url}/jobs?status=failed")
    find(browser, ".rows .pick")[0].click()
    find(browser, "#many button", "Dismiss")[0].click()
    assert "You cannot undo this" in browser.switch_to.alert.text
    browser.switch_to.alert.dismiss()
    assert site.engine.get(f"jobs/{job}").status_code == 200
    find(browser, "#many button", "Dismiss")[0].click()
    browser.switch_to.alert.accept()
    find(browser, ".notice", "Dismissed 1 failed job.")


def test_a_form_that_escape_stopped_can_be_sent_again(browser, site, batch):
    tag, _ = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    find(browser, ".rows .pick")[0].click()
    browser.execute_script("document.querySelector('#many').dataset.sent = '1'")  # a slow answer
    find(browser, "#many .danger")[0].click()
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert len(tagged(site, tag)) == 5
    find(browser, "#many .danger")[0].click()
    find(browser, ".notice", "Deleted 1 document.")


def test_all_that_match_are_deleted_only_while_they_are_as_many_as_the_page_said(site, batch):
    tag, ids = batch
    reader = reader_at(site, f"documents?tag={tag}")
    late = add(site, f"{tag}/old/late.md", f"# Late\n\nA late file of {tag}.", tag)
    send(reader, act="delete", all="1", total="5")
    assert reader.answer.status_code == 422
    assert "the list has 6 documents now" in reader.text
    assert tagged(site, tag) == {*ids, late}
    send(reader_at(site, f"documents?tag={tag}"), act="delete", all="1", total="6")
    assert not tagged(site, tag)


@pytest.mark.parametrize("way", ["added", "restored", "tagged"])
def test_a_document_that_took_the_place_of_another_is_not_deleted_with_all_that_match(site, batch, way):
    tag, ids = batch
    late = add(site, f"{tag}/old/late.md", f"# Late\n\nA late file of {tag}.", tag) if way == "restored" else 0
    if way == "restored":
        site.engine.delete(f"documents/{late}").raise_for_status()
    if way == "tagged":
        late = add(site, f"{tag}/old/late.md", f"# Late\n\nA late file of {tag}.", "")
    reader = reader_at(site, f"documents?tag={tag}")
    site.engine.delete(f"documents/{ids[0]}").raise_for_status()
    if way == "added":
        late = add(site, f"{tag}/old/late.md", f"# Late\n\nA late file of {tag}.", tag)
    elif way == "restored":
        site.engine.post(f"documents/{late}/restore").raise_for_status()
    else:
        site.engine.patch(f"documents/{late}/tags", json={"add": [tag]}).raise_for_status()
    send(reader, act="delete", all="1", total="5")
    assert reader.answer.status_code == 422
    assert "the list has changed" in reader.text
    assert tagged(site, tag) == {*ids[1:], late}
    site.engine.delete(f"documents/{late}").raise_for_status()


def test_a_document_whose_path_is_taken_is_not_restored_and_the_page_leads_to_the_present_one(site, batch):
    tag, ids = batch
    path = f"{tag}/old/file 0.md"
    site.engine.delete(f"documents/{ids[0]}").raise_for_status()
    present = ids[1]
    site.engine.patch(f"documents/{present}", json={"source_path": path}).raise_for_status()
    reader = reader_at(site, f"d/{ids[0]}")
    reader.submit(f"/bin/{ids[0]}/restore$")
    assert reader.answer.status_code == 409
    assert "The document cannot be restored" in reader.text
    reader.click("Open the current document")
    assert str(reader.answer.url) == f"{site.url}/d/{present}"


def test_a_form_that_is_sent_twice_keeps_its_undo(browser, site, batch):
    tag, ids = batch
    browser.get(f"{site.url}/documents?tag={tag}")
    find(browser, ".rows .pick")[0].click()
    ActionChains(browser).double_click(find(browser, "#many .danger")[0]).perform()
    find(browser, ".notice", "Deleted 1 document.")
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, ".notice", "Undone")
    assert tagged(site, tag) == set(ids)


def test_tags_that_were_already_so_are_not_said_to_have_changed(reading, site, batch):
    tag, ids = batch
    reader = reading(f"{site.url}/documents?tag={tag}")
    send(reader, act="retag", id=[str(ids[0])], add=tag)
    assert "The tags were already like that, so kb changed nothing." in reader.text
    assert "Tags changed" not in reader.text


def test_selected_documents_of_the_bin_are_deleted_for_good(site, batch):
    _, ids = batch
    for each in ids[:2]:
        site.engine.delete(f"documents/{each}").raise_for_status()
    reader = reader_at(site, "bin")
    site.engine.post(f"documents/{ids[1]}/restore").raise_for_status()
    send(reader, id=[str(ids[0]), str(ids[1])], act="purge")
    assert "Deleted for good: 1 document." in reader.text
    assert site.engine.get(f"documents/{ids[1]}").status_code == 200, "it was restored elsewhere"
    assert site.engine.get(f"documents/{ids[0]}/history").status_code == 404
    assert site.engine.get(f"documents/{ids[1]}/history").status_code == 200


def test_the_bin_is_emptied_only_as_the_page_showed_it(reading, start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="api,web") as server, httpx2.Client(base_url=f"{server.url}/api/v1") as engine:
        ids = [
            engine.post("jobs", params={"wait": 30}, json={"text": f"Log {n}."}).json()["document_id"] for n in range(3)
        ]
        for each in ids[:2]:
            engine.delete(f"documents/{each}").raise_for_status()
        reader = reading(f"{server.url}/bin")
        [form] = [each for each in reader.page.forms if each.get("class") == "empty-bin"]
        assert "2 documents permanently" in form.get("data-confirm")
        engine.delete(f"documents/{ids[2]}").raise_for_status()
        fields = dict(form.form_values()) | {"act": "purge"}
        reader._take(reader.http.post(form.action, data=fields))
        assert reader.answer.status_code == 422
        reader.open(f"{server.url}/bin")
        [form] = [each for each in reader.page.forms if each.get("class") == "empty-bin"]
        reader._take(reader.http.post(form.action, data=dict(form.form_values()) | {"act": "purge"}))
        assert "Deleted for good: 3 documents." in reader.text
        assert engine.get("bin").json()["documents"] == []


def test_selected_documents_are_exported_as_a_zip_of_their_files_and_of_notes_as_markdown(site, batch):
    tag, ids = batch
    note = {"title": "Shed", "text": "The shed leaks.", "tags": [tag]}
    ids.append(site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"])
    reader = reader_at(site, f"documents?tag={tag}")
    [form] = [each for each in reader.page.forms if each.get("id") == "many"]
    data = dict(form.form_values()) | {"act": "export", "id": [str(ids[0]), str(ids[-1])]}
    answer = reader.http.post(form.action, data=data)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="kb-export.zip"'
    with ZipFile(BytesIO(answer.content)) as archive:
        assert sorted(archive.namelist()) == ["Shed.md", f"{tag}/old/file 0.md"]
        assert archive.read(f"{tag}/old/file 0.md") == f"# {tag} 0\n\nText 0 of {tag}.".encode()
        assert archive.read("Shed.md").endswith(b"---\n\nThe shed leaks.")


def test_files_of_an_export_never_have_the_same_name_even_where_case_does_not_count():
    taken = set()
    names = [free_name(name, taken) for name in ("x/A (2).md", "x/a.md", "x/A.md", "x/a.md")]
    assert names == ["x/A (2).md", "x/a.md", "x/A (3).md", "x/a (4).md"]


def test_kb_add_reads_an_export_back_with_the_texts_and_the_tags_of_notes(site, batch, tmp_path):
    tag, ids = batch
    note = {"title": "Shed", "text": "The shed leaks.", "tags": [tag, "roof"], "source_path": f"{tag}/notes/shed.md"}
    ids.append(site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"])
    reader = reader_at(site, f"documents?tag={tag}")
    [form] = [each for each in reader.page.forms if each.get("id") == "many"]
    data = dict(form.form_values()) | {"act": "export", "id": [str(ids[0]), str(ids[-1])]}
    (tmp_path / "kb-export.zip").write_bytes(reader.http.post(form.action, data=data).content)
    own = {"KB_ENGINE_URL": site.url, "HOME": str(tmp_path)}
    words = [sys.executable, "-m", "kb_cli", "add", "kb-export.zip", "--wait"]
    added = subprocess.run(words, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=False)
    assert (added.returncode, added.stdout) == (0, "2 files: 2 added\n"), added.stderr
    below = {"source_prefix": f"{tmp_path}/kb-export.zip/"}
    rows = site.engine.get("documents", params=below).json()["documents"]
    ids += [each["id"] for each in rows]
    read = {each["title"]: site.engine.get(f"documents/{each['id']}").json() for each in rows}
    texts = {title: "".join(chunk["text"] for chunk in each["chunks"]) for title, each in read.items()}
    assert read["Shed"]["tags"] == sorted([tag, "roof"])
    assert texts["Shed"].endswith("The shed leaks.")
    assert texts[f"{tag} 0"].endswith(f"Text 0 of {tag}.")
