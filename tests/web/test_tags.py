"""Tags in the browser: the tree, renamed, merged and deleted, each taken back."""

from __future__ import annotations

import httpx2
import pytest
from selenium.webdriver.common.keys import Keys

from tests.web.conftest import find
from tests.web.test_results import add

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]


@pytest.fixture
def tree(site, request):
    """Three documents with tags below one of their own; the tag."""
    top = f"tree-{abs(hash(request.node.name)) % 10**8}"
    tags = [f"{top}/kiln", f"{top}/kiln,{top}/boat", top]
    ids = [add(site, f"{top}/{number}.md", f"# {top} {number}", each) for number, each in enumerate(tags)]
    yield top
    for each in ids:
        site.engine.delete(f"documents/{each}")


def counts(site, word):
    tags = site.engine.get("tags").json()["tags"]
    return {each["tag"].replace(word, "t"): each["branch"] for each in tags if word in each["tag"]}


def rows(reader):
    """The texts of the rows."""
    found = reader.page.xpath("//ul[@class='tree']/li")
    return [" ".join(" ".join(child.text_content() for child in each).split()) for each in found]


def act(reader, **values):
    [form] = [each for each in reader.page.forms if "new" in each.fields]
    reader._take(reader.http.post(form.action, data=dict(form.form_values()) | values))


def test_the_tree_shows_each_tag_with_its_number_of_documents(reading, site, tree):
    reader = reading(f"{site.url}/tags?find={tree.upper()}")
    assert rows(reader) == [
        f"{tree} 3 documents, 1 directly Edit",
        f"{tree}/boat 1 document Edit",
        f"{tree}/kiln 2 documents Edit",
    ]
    reader.click(f"{tree}/boat")
    assert f"{tree} 1" in reader.text


def test_a_tag_is_renamed_with_the_tags_below_it_and_back(browser, site, tree):
    browser.get(f"{site.url}/tags?find={tree}")
    find(browser, ".tree a", "Edit")[0].click()
    assert "2 tags below it" in find(browser, ".tree form")[0].text
    field = find(browser, ".tree [name=new]")[0]
    assert field == browser.switch_to.active_element
    field.clear()
    field.send_keys(f"{tree}-new", Keys.ENTER)
    find(browser, ".notice", f"Renamed “{tree}” to “{tree}-new” in 3 documents.")
    assert counts(site, tree) == {"t-new": 3, "t-new/boat": 1, "t-new/kiln": 2}
    assert browser.current_url.endswith(f"tags?find={tree}")
    find(browser, ".notice button", "Undo")[0].click()
    find(browser, ".notice", "Undone")
    assert counts(site, tree) == {"t": 3, "t/boat": 1, "t/kiln": 2}


def test_two_tags_are_merged_and_parted_again(reading, site, tree):
    reader = reading(f"{site.url}/tags?edit={tree}/boat")
    act(reader, act="rename", new=f"{tree}/kiln")
    assert f"Merged “{tree}/boat” into “{tree}/kiln” in 1 document." in reader.text
    assert counts(site, tree) == {"t": 3, "t/kiln": 2}
    reader.submit(r"/changes/\d+$")
    assert counts(site, tree) == {"t": 3, "t/boat": 1, "t/kiln": 2}


def test_a_tag_is_deleted_from_all_documents_and_brought_back(reading, site, tree):
    reader = reading(f"{site.url}/tags?edit={tree}")
    assert "Delete from 3 documents" in reader.text
    act(reader, act="delete")
    assert f"Deleted the tag “{tree}” from 3 documents." in reader.text
    assert counts(site, tree) == {}
    reader.submit(r"/changes/\d+$")
    assert counts(site, tree) == {"t": 3, "t/boat": 1, "t/kiln": 2}


@pytest.mark.parametrize(
    ("values", "status", "words"),
    [
        ({"act": "rename", "new": ""}, 422, "enter one name"),
        ({"act": "rename", "new": "  "}, 422, "enter one name"),
        ({"act": "rename", "new": "{tree}"}, 422, "already has this name"),
        ({"act": "rename", "new": "{tree}/"}, 422, "already has this name"),
        ({"act": "rename", "new": "x" * 300}, 422, "new"),
        ({"act": "rename", "new": "x" * 198}, 422, "too long"),
        ({"act": "rename", "new": "a,b"}, 422, "without commas"),
        ({"act": "burn"}, 422, "rename or delete"),
        ({"tag": "no such tag", "act": "delete"}, 404, "No document has the tag"),
        ({"tag": "", "act": "delete"}, 422, "name"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_where_it_was_typed(reading, site, tree, values, status, words):
    before = counts(site, tree)
    reader = reading(f"{site.url}/tags?edit={tree}")
    act(reader, **{name: value.replace("{tree}", tree) for name, value in values.items()})
    assert reader.answer.status_code == status
    assert words in "".join(each.text_content() for each in reader.page.xpath("//*[@role='alert']"))
    assert counts(site, tree) == before


@pytest.mark.parametrize("tag", ["<b>&\"'", "größe/ß", "a b?c=d&e#f", "日本/東京", "%2f%00", "x/y/z/w/v/u"])
def test_any_tag_is_shown_edited_and_listed(reading, site, tag):
    document = add(site, "odd/tag.md", f"# Odd {tag}", "")
    site.engine.patch(f"documents/{document}/tags", json={"add": [tag], "remove": []}).raise_for_status()
    reader = reading(f"{site.url}/tags")
    [link] = [each for each in reader.page.xpath("//ul[@class='tree']/li/a[1]") if each.text_content() == tag]
    reader.open(link.get("href"))
    assert "1" in reader.page.xpath("//h1")[0].text_content()
    reader.open(str(reader.http.build_request("GET", f"{site.url}/tags", params={"edit": tag}).url))
    act(reader, act="rename", new="odd-no-more")
    assert site.engine.get(f"documents/{document}").json()["tags"] == ["odd-no-more"]
    site.engine.delete(f"documents/{document}")


def test_thousands_of_tags_are_paged_and_a_page_stays_small(start_server, reading, tmp_path):
    with start_server(tmp_path / "data", KB_APPS="api,web") as server:
        assert "No tags yet." in reading(f"{server.url}/tags").text
        with httpx2.Client(base_url=f"{server.url}/api/v1") as engine:
            for start in range(0, 1000, 100):
                tags = [f"area {number % 7}/tag {start + number:04}" for number in range(100)]
                note = {"text": f"Note {start}", "tags": tags}
                engine.post("jobs", params={"wait": 30}, json=note).raise_for_status()
        reader, seen = reading(f"{server.url}/tags"), []
        while True:
            seen += rows(reader)
            assert len(reader.answer.content) < 120_000
            if "Next page" not in reader.text:
                break
            reader.click("Next page")
        assert len(seen) == len(set(seen)) == 1007
        reader.open(f"{server.url}/tags?edit=area+6/tag+0006")
        assert any("tag 0006" in row and "Rename" in row for row in rows(reader))
        for place in ("tags?from=x", "tags?from=99999", "tags?edit=gone", "tags?find=%00"):
            reader.open(f"{server.url}/{place}")
            assert reader.answer.status_code == 200


def test_a_key_that_may_only_read_sees_the_tags_of_its_documents_and_changes_none(start_server, reading, tmp_path):
    key = "the-key-of-the-engine"
    with start_server(tmp_path / "data", KB_API_KEY=key, KB_APPS="api,web") as server:
        headers = {"Authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=f"{server.url}/api/v1", headers=headers) as engine:
            for tags in (["mine", "both"], ["other", "both"]):
                engine.post("jobs", params={"wait": 30}, json={"text": f"Note of {tags}", "tags": tags})
            made = engine.post("keys", json={"name": "reader", "tags": ["mine"]}).json()["key"]
        reader = reading(f"{server.url}/sign-in")
        reader.submit("sign-in", key=made)
        reader.open(f"{server.url}/tags?edit=both")
        assert "other" not in " ".join(rows(reader))
        assert "Edit" not in reader.text
        assert "Delete from" not in reader.text
        token = reader.page.xpath("//input[@name='token']")[0].value
        form = {"token": token, "tag": "both", "act": "delete"}
        reader._take(reader.http.post(f"{server.url}/tags", data=form))
        assert reader.answer.status_code == 403
        assert "may only read" in reader.text
