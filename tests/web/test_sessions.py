"""Signing in, and what a person wrote when a session ends."""

from __future__ import annotations

import json

import httpx2

from kb_web.session_file import FILE, Session, SessionFile
from tests.conftest import KEY, free_port
from tests.web.test_pages import PAGE

OURS = {"Sec-Fetch-Site": "same-origin"}
YEAR = 4e9


def written(reader):
    """What a page has in its field for text."""
    return reader.page.xpath("//textarea[@name='text']/text() | //textarea[@name='kept:text']/text()")[0].lstrip("\n")


def test_a_sign_in_survives_a_restart_and_its_open_form_is_saved(start_server, tmp_path, read):
    port = free_port()
    with start_server(tmp_path, KB_API_KEY=KEY, KB_APPS="api,web", port=port) as server:
        reader = read(f"{server.url}/sign-in")
        reader.submit("/sign-in$", key=KEY)
        reader.open(f"{server.url}/new")
    with start_server(tmp_path, KB_API_KEY=KEY, KB_APPS="api,web", port=port):
        reader.submit("/new$", text="Written before the restart.")
        assert "Written before the restart." in reader.text
        assert reader.answer.status_code == 200
    kept = (tmp_path / FILE).read_text()
    assert KEY not in kept
    assert reader.http.cookies["kb_session"] not in kept
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_what_was_sent_without_a_session_waits_until_the_writer_has_signed_in(server, read):
    owner = {"Authorization": f"Bearer {KEY}"}
    pen = {"name": "pen", "right": "write"}
    made = httpx2.post(f"{server.url}/api/v1/keys", json=pen, headers=owner).raise_for_status().json()
    reader = read(f"{server.url}/sign-in")
    reader.submit("/sign-in$", key=made["key"])
    reader.open(f"{server.url}/new")
    httpx2.delete(f"{server.url}/api/v1/keys/pen", headers=owner).raise_for_status()
    text = "Two <b>words</b> & more\n\n  of a person.\n"
    reader.submit("/new$", title="Kept & whole", text=text, tags="kept, whole")
    assert reader.answer.status_code == 401
    assert written(reader).replace("\r\n", "\n") == text
    reader.submit("/sign-in$", key="wrong")
    assert written(reader).replace("\r\n", "\n") == text
    reader.submit("/sign-in$", key=KEY)
    assert written(reader).replace("\r\n", "\n") == text
    reader.submit("/new$")
    assert reader.page.xpath("//h1/text()") == ["Kept & whole"]
    assert "of a person." in reader.text


def test_a_form_of_a_session_that_another_tab_has_replaced_is_shown_again(server, read):
    reader = read(f"{server.url}/sign-in")
    reader.submit("/sign-in$", key=KEY)
    reader.open(f"{server.url}/new")
    page = reader.page
    reader.open(f"{server.url}/sign-in")
    reader.submit("/sign-in$", key=KEY)
    reader.page = page
    reader.http.headers.update(OURS)
    reader.submit("/new$", text="Of the first tab.")
    assert reader.answer.status_code == 403
    assert written(reader) == "Of the first tab."
    reader.submit("/new$")
    assert "Of the first tab." in reader.text
    assert reader.answer.status_code == 200


def test_a_form_of_another_site_is_not_shown_again(server):
    headers = {**PAGE, "Sec-Fetch-Site": "cross-site", "Cookie": "kb_session=" + "x" * 40}
    answer = httpx2.post(f"{server.url}/new", data={"text": "Of strangers."}, headers=headers)
    assert "Of strangers." not in answer.text


def test_all_other_browsers_can_be_signed_out(server, read):
    one, other = read(f"{server.url}/sign-in"), read(f"{server.url}/sign-in")
    for reader in (one, other):
        reader.submit("/sign-in$", key=KEY)
    one.open(f"{server.url}/settings")
    one.submit("/sign-out$", others="1")
    assert "Signed out" in one.text
    other.open(f"{server.url}/documents")
    assert other.answer.status_code == 401


def test_an_open_page_learns_the_token_of_a_new_session(server, read):
    reader = read(f"{server.url}/sign-in")
    assert (
        reader.http.get(f"{server.url}/sign-in", headers={"Accept": "application/json"}).json()["is_signed_in"] is False
    )
    assert "<form" in reader.http.get(f"{server.url}/sign-in", headers={"Accept": "*/*"}).text  # a plain program
    reader.submit("/sign-in$", key=KEY)
    told = reader.http.get(f"{server.url}/sign-in", headers={"Accept": "application/json"}).json()
    assert told == {"token": reader.page.xpath("//body/@data-token")[0], "is_signed_in": True}


def test_only_the_id_opens_a_session_and_damage_ends_it(tmp_path):
    path, session = tmp_path / FILE, Session(KEY, "admin", "seed", 1.0, YEAR)
    SessionFile(path).add("the id", session)
    assert SessionFile(path).session("the id") == session
    assert SessionFile(path).session("another id") is None
    first = path.read_text()
    SessionFile(path).add("the id", session)
    assert path.read_text() != first, "the same words never look the same"
    path.write_text(json.dumps({"x": {"y": 1}}))
    assert SessionFile(path).session("the id") is None
    path.write_text("[]{")
    kept = SessionFile(path)
    kept.add("the id", session)
    kept.end("the id")
    assert (kept.session("the id"), len(SessionFile(path))) == (None, 0)
