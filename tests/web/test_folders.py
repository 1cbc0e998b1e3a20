"""The page of synced and watched folders."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from selenium.webdriver.common.keys import Keys

from kb.folders.disk_view import place_of
from tests.conftest import KEY
from tests.support.eventually import eventually
from tests.web.conftest import find, watch
from tests.web.test_many import send
from tests.web.test_results import add
from tests.web.test_writing import PNG

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]


def section(reader, name):
    """The words of a folder's section; other tests may have made folders of the same name."""
    found = [each for each in reader.page.iter("section") if f">{name}<" in html_of(each)]
    return " ".join(" ".join(each.text_content().split()) for each in found)


def html_of(element):
    return "".join(f">{each.text}<" for each in element.iter() if each.text)


def watch_of(site, id_):
    folders = site.engine.get("folders").json()["folders"]
    return next((each["watch"] for each in folders if each["watch"] and each["watch"]["id"] == id_), None)


def test_the_page_says_how_each_folder_is(read, site):
    reader = read(f"{site.url}/overview")
    reader.click("Folders")
    assert "120 files, 2 added" in section(reader, "vault")
    assert "120 files, 2 added; 7 files and folders left out." in section(reader, "vault")
    assert "3: kb doesn't read .mp3 files: songs/a.mp3, songs/b.mp3 and 1 more" in section(reader, "vault")
    assert "4: skipped by .gitignore" in section(reader, "vault")
    scans = section(reader, "scans")
    assert "31 files, 1 failed" in scans
    assert "14 of 44 documents would be deleted" in scans
    assert "kb watch now scans --yes" in scans
    assert "1 failed file" in scans
    assert "The folder /media/ada/disk does not exist. First failed " in section(reader, "disk")
    assert "No program has watched this folder yet. On lamp, start kb serve" in section(reader, "laptop")


def test_the_command_to_copy_deletes_nothing_and_the_page_says_how_to(read, site):
    reader = read(f"{site.url}/folders")
    assert "kb watch add ~/vault --as vault" in reader.text
    assert all("--delete" not in command.text_content() for command in reader.page.iter("pre"))
    assert "If you delete a file, kb keeps its document." in reader.text


@pytest.fixture
def home(tmp_path):
    """A home folder with a vault of two notes."""
    vault = tmp_path / "home" / "vault"
    vault.mkdir(parents=True)
    (vault / "Kiln.md").write_text("# Kiln\n\nThe kiln needs a new door.\n")
    (vault / "Garden.md").write_text("# Garden\n\nTomatoes want lime.\n")
    return tmp_path / "home"


@pytest.fixture
def homely(start_server, home, tmp_path):
    """A server of a person with that home folder."""
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    with start_server(tmp_path / "data", KB_APPS="api,web", **own) as server:
        yield server


def test_a_folder_that_the_form_names_is_watched_from_then_on(read, homely, home):
    reader = read(f"{homely.url}/folders")
    assert "kb isn't watching any folders yet" in reader.text
    reader.submit("/folders$", path="~/vault", name="mine")
    assert "kb watches" in reader.text
    assert "as mine: 2 files." in reader.text
    assert "mine watching" in section(reader, "mine")
    with httpx2.Client(base_url=f"{homely.url}/api/v1") as engine:

        def titles():
            return sorted(each["title"] for each in engine.get("documents").json()["documents"])

        eventually("both notes are there", lambda: titles() == ["Garden", "Kiln"])
        (home / "vault" / "Roof.md").write_text("# Roof\n\nSlates.\n")
        eventually("the new note is there", lambda: titles() == ["Garden", "Kiln", "Roof"])


@pytest.mark.slow
def test_a_folder_of_the_form_can_be_edited_on_both_sides(read, homely, home):
    reader = read(f"{homely.url}/folders")
    reader.submit("/folders$", path="~/vault", name="mine", both="1")
    assert "kb keeps" in reader.text
    assert "edited on both sides" in section(reader, "mine")
    with httpx2.Client(base_url=f"{homely.url}/api/v1") as engine:
        page = eventually(
            "it is a note", lambda: engine.get("documents", params={"doc_type": "note"}).json()["documents"]
        )
        note = engine.get(f"documents/{page[0]['id']}").json()
        engine.patch(f"notes/{note['id']}", json={"append": "Written in kb."}).raise_for_status()
        outside = engine.patch(f"documents/{note['id']}", json={"source_path": "elsewhere/note.md"})
    assert (outside.status_code, "Choose a path that begins with mine/" in outside.json()["detail"]) == (422, True)
    file = home / "vault" / note["source_path"].removeprefix("mine/")
    eventually("the file has the words", lambda: "Written in kb." in file.read_text())
    for folder, told in (("/elsewhere", "Choose a path that begins with mine/"), ("Archive 2023", "Moved 1 document.")):
        reader = read(f"{homely.url}/documents")
        send(reader, id=[str(note["id"])], act="move", folder=folder)
        assert told in reader.text
    moved = home / "vault" / "Archive 2023" / file.name
    eventually("the file has moved in the vault", lambda: moved.exists() and not file.exists())


@pytest.mark.slow
def test_a_file_chosen_for_a_note_that_is_not_saved_yet_goes_where_the_note_will_go(homely, home):
    vault, machine = home / "vault", {"prefix": "mine/", "machine": "one"}
    with httpx2.Client(base_url=f"{homely.url}/api/v1") as engine:
        engine.put("folders", json=machine | {"host": "lamp", "path": str(vault)}).raise_for_status()
        kept = machine | {"both": True, "new_notes": "Inbox", "place": place_of(vault)}
        engine.put(f"folders/watches/{'a' * 32}", json=kept).raise_for_status()
        with httpx2.Client(base_url=homely.url) as page:
            token = page.get("/new", headers={"Accept": "text/html"}).text.split('data-token="')[1][:64]
            sent = {"headers": {"X-KB-Token": token}, "files": {"file": ("plan.png", PNG)}}
            link = page.post("/attach", **sent).raise_for_status().json()["text"]
        engine.post("jobs", json={"text": f"The plan.\n\n{link}", "title": "Shed"}).raise_for_status()
    path = link.removeprefix("![[").removesuffix("]]")
    assert path.startswith("attachments/plan-")
    eventually("the note is there", (vault / "Inbox" / "Shed.md").exists)
    eventually("its picture is there", (vault / path).exists)
    assert (vault / path).read_bytes() == PNG


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("~/nowhere", "nowhere"),
        ("vault", "Enter the whole path of the folder, such as"),
        ("~/vault/Kiln.md", "Kiln.md"),
        ("--help", "Enter the whole path"),
        ("", "Enter the whole path"),
    ],
)
def test_a_folder_that_cannot_be_watched_is_refused_with_the_reason_and_the_form_keeps_it(read, homely, path, reason):
    reader = read(f"{homely.url}/folders")
    reader.submit("/folders$", path=path, name="mine", delete="1")
    assert reader.answer.status_code == 422
    [alert] = reader.page.xpath("//*[@role='alert']")
    assert reason in alert.text_content()
    [form] = [each for each in reader.page.forms if (each.action or "").endswith("folders")]
    assert (form.fields["path"], form.fields["name"], form.fields["delete"]) == (path, "mine", "1")
    assert "kb isn't watching any folders yet" in reader.text


def test_nobody_watches_a_folder_while_other_machines_can_connect_without_a_key(read, start_server, home, tmp_path):
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    with start_server(tmp_path / "data", KB_APPS="api,web", KB_HOST="0.0.0.0", KB_ALLOW_OPEN="1", **own) as server:
        reader = read(f"{server.url}/folders")
        assert not [each for each in reader.page.forms if (each.action or "").endswith("folders")]
        form = {"token": reader.page.xpath("//body/@data-token")[0], "path": "~/vault"}
        refused = reader.http.post(f"{server.url}/folders", data=form, headers={"Accept": "text/html"})
        assert refused.status_code == 403
        assert "kb isn't watching any folders yet" in refused.text


def test_only_a_key_with_all_rights_watches_a_folder(read, guarded, tmp_path):
    with httpx2.Client(base_url=f"{guarded.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as engine:
        token = engine.post("keys", json={"name": "writes-folders", "right": "write"}).json()["key"]
    reader = read(f"{guarded.url}/folders")
    reader.submit("sign-in$", key=token)
    assert not [each for each in reader.page.forms if (each.action or "").endswith("folders")]
    form = {"token": reader.page.xpath("//input[@name='token']")[0].value, "path": str(tmp_path)}
    refused = reader.http.post(f"{guarded.url}/folders", data=form, headers={"Accept": "text/html"})
    assert refused.status_code == 403
    assert str(tmp_path) not in reader.http.get(f"{guarded.url}/folders").text


def test_sync_now_asks_and_stop_ends_and_keeps_the_documents(read, site):
    id_ = watch(site.engine, "asked", {"result": {"files": 1}})
    reader = read(f"{site.url}/folders")
    reader.submit(f"{id_}/sync$")
    assert watch_of(site, id_)["asked_at"]
    assert reader.page.xpath("//section[contains(., 'asked')]//progress")
    assert reader.page.xpath("//section[contains(., 'asked')]//button[@disabled]")
    site.engine.post(f"folders/watches/{id_}/report", json={"result": {"files": 1}})
    reader.submit(f"{id_}/stop$")
    assert "kb no longer watches /home/ada/asked, and its files stay there. Their documents stay in kb." in reader.text
    assert watch_of(site, id_) is None
    assert "Synced from the command line" in reader.text


def test_a_folder_that_is_no_longer_watched_leaves_its_documents_in_the_bin_if_asked_and_undo_brings_them_back(
    read, site
):
    id_ = watch(site.engine, "left", {"result": {"files": 1}})
    added = add(site, "left/a.md", "# Left behind")
    reader = read(f"{site.url}/folders")
    assert "you choose what happens to their 1 document in kb" in section(reader, "left")
    [form] = [each for each in reader.page.forms if (each.action or "").endswith(f"{id_}/stop")]
    reader._take(reader.http.post(form.action, data=dict(form.form_values()) | {"bin": "1"}))
    assert "kb no longer watches /home/ada/left, and its files stay there. 1 document moved to the bin." in reader.text
    assert site.engine.get(f"documents/{added}").status_code == 404
    reader.submit("/changes/[0-9]+$")
    assert site.engine.get(f"documents/{added}").status_code == 200
    site.engine.delete(f"documents/{added}")


def test_notes_and_documents_of_a_folder_inside_a_folder_that_is_no_longer_watched_stay(read, site):
    id_ = watch(site.engine, "outer")
    watch(site.engine, "outer/inner")
    kept, gone = add(site, "outer/inner/a.md", "# Kept"), add(site, "outer/b.md", "# Gone")
    note = {"text": "Written in kb.", "source_path": "outer/note.md"}
    own = site.engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    reader = read(f"{site.url}/folders")
    [form] = [each for each in reader.page.forms if (each.action or "").endswith(f"{id_}/stop")]
    reader._take(reader.http.post(form.action, data=dict(form.form_values()) | {"bin": "1"}, timeout=60))
    assert "1 document moved to the bin." in reader.text
    states = [site.engine.get(f"documents/{each}").status_code for each in (kept, own, gone)]
    assert states == [200, 200, 404]


def test_a_file_that_a_running_round_sends_after_the_stop_goes_to_the_bin_too(read, site):
    id_ = watch(site.engine, "late", {"result": {"files": 1}})
    add(site, "late/a.md", "# Sent before")
    reader = read(f"{site.url}/folders")
    [form] = [each for each in reader.page.forms if (each.action or "").endswith(f"{id_}/stop")]

    def end_round():
        eventually("the folder is no longer watched", lambda: watch_of(site, id_) is None)
        return add(site, "late/b.md", "# Sent after")

    with ThreadPoolExecutor() as pool:
        late = pool.submit(end_round)
        reader._take(reader.http.post(form.action, data=dict(form.form_values()) | {"bin": "1"}, timeout=60))
    assert "2 documents moved to the bin." in reader.text
    assert site.engine.get(f"documents/{late.result()}").status_code == 404


def test_a_form_without_its_token_asks_for_nothing(site):
    id_ = watch(site.engine, "untouched", {"result": {"files": 1}})
    for act in ("sync", "stop"):
        refused = httpx2.post(f"{site.url}/folders/{id_}/{act}", headers={"Accept": "text/html"})
        assert refused.status_code == 403
    assert watch_of(site, id_)["asked_at"] is None


def test_a_page_that_is_out_of_date_says_that_nothing_is_watched(read, site):
    id_ = watch(site.engine, "brief", {"result": {"files": 1}})
    reader = read(f"{site.url}/folders")
    site.engine.delete(f"folders/watches/{id_}")
    reader.submit(f"{id_}/sync$")
    assert (reader.answer.status_code, "No folder is watched under" in reader.text) == (404, True)


def test_names_of_others_are_shown_as_text(read, site):
    outcome = {"error": "<b>bold</b> \u202egnorw"}
    id_ = watch(site.engine, "a <i>name</i> 'and' more", outcome)
    reader = read(f"{site.url}/folders")
    assert "<b>bold</b>" in reader.text
    assert "\u202e" not in reader.text
    assert not reader.page.xpath("//section//i | //section//b")
    site.engine.delete(f"folders/watches/{id_}")


def test_who_may_only_read_sees_no_buttons(read, guarded):
    with httpx2.Client(base_url=f"{guarded.url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}) as engine:
        watch(engine, "vault", {"result": {"files": 3}})
        token = engine.post("keys", json={"name": "reads-folders", "right": "read"}).json()["key"]
    reader = read(f"{guarded.url}/folders")
    reader.submit("sign-in$", key=token)
    assert "3 files, all up to date" in reader.text
    assert not [each for each in reader.page.forms if "/folders/" in (each.action or "")]


def test_a_folder_is_synced_with_the_keyboard_and_the_page_follows(browser, site):
    id_ = watch(site.engine, "keyed", {"result": {"files": 1}})
    browser.get(f"{site.url}/folders")
    [button] = find(browser, "button[aria-label='Sync now: keyed']")
    button.send_keys(Keys.ENTER)
    find(browser, "progress[aria-label='Syncing keyed']")
    answers = watch_of(site, id_)["asked_at"]
    report = {"result": {"files": 9, "added": 8}, "answers": answers}
    site.engine.post(f"folders/watches/{id_}/report", json=report).raise_for_status()
    find(browser, "section", "9 files, 8 added")
    eventually("nothing is under way", lambda: not browser.find_elements("css selector", "progress"))
    site.engine.delete(f"folders/watches/{id_}")
