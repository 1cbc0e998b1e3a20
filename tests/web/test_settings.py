"""Settings and keys in the browser."""

from __future__ import annotations

import json
import re

import httpx2
import pytest

from kb.embed.models.install import install
from kb_web.pages import STATIC
from tests.conftest import KEY
from tests.support.eventually import eventually
from tests.support.small_models import write_small_model
from tests.web.conftest import find
from tests.web.test_pages import PAGE

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]


@pytest.fixture
def opened(start_server, tmp_path):
    """A server of this test's own, with nothing set."""
    with start_server(tmp_path / "data", KB_APPS="api,web") as server:
        yield server


def signed_in(reading, server, key, place):
    reader = reading(f"{server.url}/sign-in")
    reader.submit("sign-in", key=key)
    reader.open(f"{server.url}/{place}")
    return reader


def saved(tmp_path):
    return json.loads((tmp_path / "data/settings.json").read_text())


def test_settings_are_changed_one_section_at_a_time(reading, opened, tmp_path):
    reader = reading(f"{opened.url}/settings")
    assert "only this machine can connect" in reader.text
    reader.submit("settings$", inbox_dir=str(tmp_path / "absent"))
    assert reader.answer.status_code == 422
    assert reader.page.xpath("//*[@role='alert']")[0].text_content().startswith("Folder: ")
    assert "does not exist" in reader.page.xpath("//*[@role='alert']")[0].text_content()
    [field] = reader.page.xpath("//input[@name='inbox_dir']")
    assert field.value == str(tmp_path / "absent"), "it can be corrected"
    (tmp_path / "inbox").mkdir()
    reader.submit("settings$", inbox_dir=str(tmp_path / "inbox"))
    assert "Saved." in reader.text
    assert saved(tmp_path) == {"inbox_dir": str(tmp_path / "inbox")}
    reader.submit("settings$", backup_dir=f" {tmp_path}/backups ", backup_hours="1.5", backup_keep="")
    assert saved(tmp_path) == {
        "inbox_dir": str(tmp_path / "inbox"),
        "backup_dir": f"{tmp_path}/backups",
        "backup_hours": "1.5",
    }
    reader.submit("settings$", inbox_dir="")
    assert "inbox_dir" not in saved(tmp_path)


@pytest.mark.parametrize(("name", "text"), [("backup_hours", "soon"), ("backup_hours", "nan"), ("backup_keep", "2.5")])
def test_what_is_not_a_number_is_refused_where_it_was_typed(reading, opened, name, text):
    reader = reading(f"{opened.url}/settings")
    reader.submit("settings$", **{name: text})
    assert reader.answer.status_code == 422
    label = {"backup_hours": "Hours between backups", "backup_keep": "Backups to keep"}[name]
    assert f"{label}: it must be a" in reader.text
    assert reader.page.xpath(f"//input[@name='{name}']")[0].value == text


def test_what_the_environment_sets_is_shown_and_not_offered(reading, start_server, tmp_path):
    folder = tmp_path / "inbox"
    folder.mkdir()
    with start_server(tmp_path / "data", KB_APPS="api,web", KB_OCR="0", KB_INBOX_DIR=str(folder)) as server:
        reader = reading(f"{server.url}/settings")
        assert "KB_OCR is set in kb's environment." in reader.text
        assert all(field.get("disabled") is not None for field in reader.page.xpath("//input[@name='inbox_dir']"))
        assert reader.page.xpath("//input[@name='backup_dir'][not(@disabled)]")


@pytest.mark.parametrize("form", [{}, {"section": "data_dir", "data_dir": "/"}, {"section": ""}])
def test_a_form_of_no_section_changes_nothing(reading, opened, form, tmp_path):
    reader = reading(f"{opened.url}/settings")
    token = reader.page.xpath("//input[@name='token']")[0].value
    answer = reader.http.post(f"{opened.url}/settings", data={"token": token, **form})
    assert answer.status_code == 422
    assert not (tmp_path / "data/settings.json").exists()


def test_a_page_of_another_site_changes_neither_settings_nor_keys(opened, tmp_path):
    for place, form in [
        ("settings", {"section": "inbox", "inbox_dir": str(tmp_path)}),
        ("settings/theme", {"theme": "dark"}),
        ("keys", {"act": "first"}),
    ]:
        for token in ({}, {"token": "x" * 64}):
            answer = httpx2.post(f"{opened.url}/{place}", data={**token, **form}, headers=PAGE)
            assert answer.status_code == 403, place
    assert not (tmp_path / "data/settings.json").exists()
    assert not (tmp_path / "data/api.key").exists()


def test_a_key_with_few_rights_chooses_only_its_theme(reading, guarded):
    headers = {"Authorization": f"Bearer {KEY}"}
    name = {"name": "only-theme", "right": "write"}
    made = httpx2.post(f"{guarded.url}/api/v1/keys", headers=headers, json=name).json()["key"]
    reader = signed_in(reading, guarded, made, "settings")
    assert "a key with all rights" in reader.text
    assert "KB_DATA_DIR" not in reader.text
    reader.submit("theme$")
    token = reader.page.xpath("//input[@name='token']")[0].value
    changed = reader.http.post(f"{guarded.url}/settings", data={"token": token, "section": "ocr"})
    assert changed.status_code == 403 or "a key with all rights" in changed.text
    httpx2.delete(f"{guarded.url}/api/v1/keys/only-theme", headers=headers)


def test_keys_are_made_rotated_and_revoked(reading, guarded):
    reader = signed_in(reading, guarded, KEY, "keys")
    reader.submit("keys$", name="Not a name", tags="")
    assert reader.answer.status_code == 422
    assert reader.page.xpath("//input[@name='name'][@required]")[0].value == "Not a name"
    token = reader.page.xpath("//input[@name='token']")[0].value

    def send(**form):
        reader._take(reader.http.post(f"{guarded.url}/keys", data={"token": token, **form}))
        return "".join(reader.page.xpath("//*[@id='made']/../pre//text()"))

    def status(key):
        return httpx2.get(f"{guarded.url}/api/v1/status", headers={"Authorization": f"Bearer {key}"}).status_code

    first = send(act="make", name="handset", right="read", tags="work, taxes", path="")
    assert status(first) == 200
    assert "kb won’t show it again" in reader.text
    reader.open(f"{guarded.url}/keys")
    assert first not in reader.answer.text
    assert reader.page.xpath("//li[span='handset']//span[@class='tag']/text()") == ["work", "taxes"]
    folders = httpx2.get(f"{guarded.url}/api/v1/paths", headers={"Authorization": f"Bearer {KEY}"}).json()["folders"]
    assert reader.page.xpath("//input[@name='path']/@placeholder")[0] in {
        "papers/",
        *(each["prefix"] for each in folders),
    }
    assert "all: also delete documents for good, change settings and make keys" in reader.text
    [rotate] = reader.page.xpath("//button[.='Rotate'][@aria-label='Rotate: handset']")
    assert "the same name, rights and limits" in rotate.get("title")
    second = send(act="rotate", name="handset")
    assert (status(first), status(second)) == (401, 200)
    assert not send(act="make", name="handset", right="read")
    assert "already exists" in reader.text
    send(act="revoke", name="handset")
    assert "Revoked the key “handset”" in reader.text
    assert status(second) == 401
    for form in ({"act": "revoke", "name": "handset"}, {"act": "revoke", "name": "../status"}, {"act": "burn"}, {}):
        send(**form)
        assert reader.answer.status_code in (404, 422), form
    send(act="make", name="scribe", right="write", tags="work", reads_all="on")
    assert "read all, write only within the limit" in reader.page.text_content()
    send(act="revoke", name="scribe")
    send(act="make", name="boss", right="admin", tags="work")
    assert reader.answer.status_code == 422


def test_who_rotates_the_own_key_sees_the_new_one_and_stays_signed_in(reading, guarded):
    headers = {"Authorization": f"Bearer {KEY}"}
    body = {"name": "own-admin", "right": "admin"}
    made = httpx2.post(f"{guarded.url}/api/v1/keys", headers=headers, json=body).json()["key"]
    reader = signed_in(reading, guarded, made, "keys")
    token = reader.page.xpath("//input[@name='token']")[0].value
    form = {"token": token, "act": "rotate", "name": "own-admin"}
    reader._take(reader.http.post(f"{guarded.url}/keys", data=form))
    rotated = "".join(reader.page.xpath("//*[@id='made']/../pre//text()"))
    assert rotated.startswith("kb_")
    assert rotated != made
    reader.open(f"{guarded.url}/keys")
    assert reader.answer.status_code == 200
    reader._take(reader.http.post(f"{guarded.url}/keys", data=form | {"act": "revoke"}))
    assert "Sign in" in reader.text
    assert reader.page.xpath("//input[@name='key']")


def test_without_a_key_kb_warns_only_if_others_can_connect(reading, start_server, opened, tmp_path):
    settings = {"KB_APPS": "api,web", "KB_HOST": "0.0.0.0", "KB_ALLOW_OPEN": "1"}
    with start_server(tmp_path / "exposed", **settings) as server:
        for place in ("settings", "keys"):
            reader = reading(f"{server.url}/{place}")
            assert "Other machines can connect" in reader.text
            reader = reading(f"{opened.url}/{place}")
            assert "Other machines can connect" not in reader.text
        reader = reading(f"{server.url}/settings")
        assert reader.page.xpath("//main//a[contains(@href, 'keys')][.='Make the first key']")


def test_the_first_key_works_at_once_and_signs_in_the_browser_that_made_it(reading, start_server, tmp_path):
    with start_server(tmp_path / "data", KB_APPS="api,web") as server:
        reader, other = reading(f"{server.url}/keys"), reading(f"{server.url}/documents")
        assert "agents can't connect until" in reader.text, "the page says so before the click"
        assert "restart" not in reader.text
        form = {"token": reader.page.xpath("//main//input[@name='token']")[0].value, "act": "first"}
        reader._take(reader.http.post(f"{server.url}/keys", data=form))
        key = "".join(reader.page.xpath("//*[@id='made']/../pre//text()"))
        assert key in (tmp_path / "data/api.key").read_text()
        assert "signed in with this one" in reader.text
        form = {"token": reader.page.xpath("//main//input[@name='token']")[0].value, "act": "make"}
        reader._take(reader.http.post(f"{server.url}/keys", data=form | {"name": "agent", "right": "read"}))
        assert "The new key “agent”" in reader.text
        agent = "".join(reader.page.xpath("//*[@id='made']/../pre//text()"))
        assert (
            httpx2.get(f"{server.url}/api/v1/status", headers={"Authorization": f"Bearer {agent}"}).status_code == 200
        )
        token = other.page.xpath("//body/@data-token")[0]
        again = other.http.post(f"{server.url}/keys", data={"token": token, "act": "first"})
        assert 'name="key"' in again.text, "it must sign in"
        assert key in (tmp_path / "data/api.key").read_text()
        other.open(f"{server.url}/documents")
        assert other.page.xpath("//input[@name='key']"), "it must sign in"
        other.submit("sign-in$", key=key)
        assert not other.page.xpath("//input[@name='key']")
        assert "Replace KEY with the agent's own key" in reading_again(reader, f"{server.url}/connect")


def reading_again(reader, url):
    reader.open(url)
    return reader.text


def test_a_kb_without_keys_says_what_a_key_with_fewer_rights_needs(reading, opened):
    reader = reading(f"{opened.url}/keys")
    assert "for example one that can only read, first make a key with all rights." in reader.text
    reader = reading(f"{opened.url}/connect")
    assert "kb doesn't ask for a key, so an agent can do anything." in reader.text
    assert reader.page.xpath("//main//a[contains(@href, 'keys')]")


def test_the_page_for_agents_says_where_their_keys_come_from(reading, guarded):
    reader = signed_in(reading, guarded, KEY, "connect")
    assert "Replace KEY with the agent's own key, which you can make on the Keys page" in reader.text


def test_the_theme_is_chosen_and_stays(browser, opened):
    browser.get(f"{opened.url}/settings")
    look = "return [getComputedStyle(document.body).backgroundColor, document.documentElement.dataset.theme || '']"
    before = browser.execute_script(look)
    find(browser, "[name=theme][value=dark]")[0].click()
    assert find(browser, "[name=theme][value=dark][aria-pressed=true]")
    dark = browser.execute_script(look)
    assert dark[1] == "dark"
    assert dark[0] != before[0]
    browser.get(f"{opened.url}/overview")
    assert browser.execute_script(look) == dark
    browser.get(f"{opened.url}/settings")
    find(browser, "[name=theme][value='']")[0].click()
    assert find(browser, "[name=theme][value=''][aria-pressed=true]")
    assert browser.execute_script(look) == before


def test_the_chosen_dark_theme_is_the_one_of_the_system():
    style = (STATIC / "tokens.css").read_text()
    of_system = re.search(r"data-theme=light\]\) \{(.*?)\}", style, re.DOTALL).group(1).split()
    chosen = re.search(r"data-theme=dark\] \{(.*?)\}", style, re.DOTALL).group(1).split()
    assert chosen == ["color-scheme:", "dark;", *of_system]


def test_another_model_is_used_and_given_back_in_the_browser(reading, start_server, tmp_path):
    install(str(write_small_model(tmp_path / "small")), tmp_path / "data")
    with start_server(tmp_path / "data", KB_APPS="api,web") as server:
        reader = reading(f"{server.url}/model")

        def in_use():
            reader.open(f"{server.url}/model")
            return [each.text_content().partition("Apache")[0] for each in reader.page.xpath("//tr[td='in use']/th")]

        def offered(model):
            reader.open(f"{server.url}/model")
            return [each for each in reader.page.forms if each.fields.get("model") == model]

        assert in_use() == ["all-MiniLM-L6-v2"]
        assert "about 100" in reader.text
        for model, expected in (("small", "small"), ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2")):
            [form] = eventually("it can be chosen", lambda named=model: offered(named))
            reader.http.post(form.action, data=dict(form.form_values()))
            eventually("it is in use", in_use, lambda now, wanted=expected: now == [wanted])
