"""The engine takes in what is put into its inbox."""

import httpx2
import pytest

from tests.support.eventually import eventually


def documents(server):
    answer = httpx2.get(f"{server.url}/api/v1/documents").json()
    return {each["source_path"]: each for each in answer["documents"]}


def settled(server, path, what, wanted):
    return eventually(what, lambda: documents(server).get(path.as_posix()), lambda found: found and wanted(found))


@pytest.mark.slow
@pytest.mark.requirement("R-3")
def test_what_is_put_into_the_inbox_goes_in_once_and_stays(start_server, tmp_path):
    inbox = tmp_path / "inbox"
    (inbox / "scans").mkdir(parents=True)
    (inbox / ".hidden.txt").write_text("hidden")
    (inbox / "empty.txt").touch()
    (inbox / "link.txt").symlink_to("/etc/hostname")
    note = inbox / "scans" / "note.txt"
    note.write_text("The anchor is in the shed.")
    with start_server(tmp_path / "data", KB_APPS="api", KB_INBOX_DIR=str(inbox)) as server:
        first = settled(server, note, "it went in", lambda _: True)
        note.write_text("The anchor is in the cellar.")
        changed = settled(server, note, "it was replaced", lambda found: found["content_hash"] != first["content_hash"])
        assert changed["id"] == first["id"]
        assert list(documents(server)) == [note.as_posix()]
        httpx2.delete(f"{server.url}/api/v1/documents/{first['id']}").raise_for_status()
    late = inbox / "late.txt"
    late.write_text("Ropes are in the boat.")
    with start_server(tmp_path / "data", KB_APPS="api", KB_INBOX_DIR=str(inbox)) as server:
        settled(server, late, "what came meanwhile went in", lambda _: True)
        assert list(documents(server)) == [late.as_posix()]
    assert note.read_text() == "The anchor is in the cellar."


def test_an_inbox_that_is_not_there_stops_the_start(start_server, tmp_path):
    with pytest.raises(Exception, match="KB_INBOX_DIR: there is no folder"), start_server(tmp_path / "data", KB_APPS="api", KB_INBOX_DIR=str(tmp_path / "nowhere")):  # fmt: skip
        pass
