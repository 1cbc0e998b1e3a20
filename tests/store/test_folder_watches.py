"""What the database keeps of watched folders."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kb.api.errors import FolderTaken, NotFound
from kb.api.folder_models import SyncReport, WatchReport, WatchRequest
from kb.documents import watched_folders
from kb.exchange.export_lines import ROW_LINES
from kb.routes.folders import claim
from kb.store import rows
from kb.store.rows import SyncedFolder

ID = "a" * 32
OTHER = "b" * 32
RESULT = SyncReport(files=3, added=2, failed=1, failures=[{"path": "x.pdf", "error": "broken"}], kept=["1 stays"])


@pytest.fixture
def store(make_store):
    with make_store(dimensions=8) as opened:
        yield opened


@pytest.fixture
def pass_time(monkeypatch):
    """`pass_time(minutes=5)` is what it says."""
    real, passed = rows.now_iso, timedelta()

    def shift(**by):
        nonlocal passed
        passed += timedelta(**by)

    def now():
        later = datetime.fromisoformat(real()) + passed
        return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    monkeypatch.setattr(rows, "now_iso", now)
    return shift


def claimed(store, prefix="vault/", machine="one", path="/home/ada/vault", *, take_over=False):
    claim(store, SyncedFolder(prefix, machine, "lamp", path, "{}", "2026-01-01T00:00:00.000Z"), take_over=take_over)


def begun(store, watch_id=ID, prefix="vault/", machine="one", **options):
    with store.write() as tx:
        request = WatchRequest(prefix=prefix, machine=machine, **options)
        return watched_folders.shown(watched_folders.begin(tx, watch_id, request)).watch


def shown(store, prefix="vault/"):
    with store.read() as tx:
        return next(watched_folders.shown(each).watch for each in tx.folders.all() if each.prefix == prefix)


def act(store, what, *arguments, **options):
    with store.write() as tx:
        what(tx, ID, *arguments, **options)
    return shown(store)


def test_a_watch_is_new_then_watches_fails_and_stops(store, pass_time):
    claimed(store)
    assert begun(store, tags=["vault"], delete=True).state == "new"
    assert act(store, watched_folders.note, is_syncing=True).state == "syncing"
    done = act(store, watched_folders.report, WatchReport(result=RESULT))
    assert (done.state, done.result, done.error, done.tags, done.delete) == ("watching", RESULT, None, ["vault"], True)
    failed = act(store, watched_folders.report, WatchReport(error="away"))
    assert (failed.state, failed.result, failed.error) == ("failing", RESULT, "away")
    pass_time(seconds=100)
    again = act(store, watched_folders.report, WatchReport(error="still away"))
    assert (again.error, again.failing_since) == ("still away", failed.failing_since)
    pass_time(minutes=5)
    assert shown(store).state == "stopped"
    well = act(store, watched_folders.report, WatchReport(result=RESULT))
    assert (well.state, well.error, well.failing_since) == ("watching", None, None)


def test_a_request_to_sync_stays_until_a_round_answers_it(store, pass_time):
    claimed(store)
    begun(store)
    first = act(store, watched_folders.ask).asked_at
    assert first
    assert act(store, watched_folders.report, WatchReport(result=RESULT)).asked_at == first, "a round that began before"
    pass_time(seconds=1)
    second = act(store, watched_folders.ask).asked_at
    assert act(store, watched_folders.report, WatchReport(result=RESULT, answers=first)).asked_at == second
    assert act(store, watched_folders.report, WatchReport(error="away", answers=second)).asked_at is None


def test_that_a_program_runs_is_written_once_a_minute(store, pass_time):
    claimed(store)
    begun(store)
    record = act(store, watched_folders.note, is_syncing=False)
    assert watched_folders.is_noted(record, is_syncing=False)
    assert not watched_folders.is_noted(record, is_syncing=True)
    pass_time(seconds=61)
    assert not watched_folders.is_noted(record, is_syncing=False)


def test_a_round_keeps_the_watch_and_another_machine_ends_it(store):
    claimed(store)
    begun(store)
    claimed(store)
    assert shown(store).id == ID
    claimed(store, path="/home/ada/moved", take_over=True)
    assert shown(store).id == ID, "the folder has moved on its machine"
    claimed(store, path="/home/ada/vault", take_over=True)
    with pytest.raises(FolderTaken, match="/home/ada/vault on lamp"):
        begun(store, OTHER, machine="two")
    claimed(store, machine="two", take_over=True)
    assert shown(store) is None
    with pytest.raises(NotFound):
        act(store, watched_folders.report, WatchReport(result=RESULT))


def test_a_watch_has_one_folder_and_a_folder_one_watch(store):
    claimed(store)
    claimed(store, "other/", path="/home/ada/other")
    begun(store)
    begun(store, prefix="other/")
    assert (shown(store), shown(store, "other/").id) == (None, ID)
    begun(store, OTHER, prefix="other/")
    assert shown(store, "other/").id == OTHER
    with store.write() as tx:
        watched_folders.end(tx, OTHER)
    assert shown(store, "other/") is None
    with pytest.raises(NotFound, match="Register it first"):
        begun(store, prefix="nowhere/")


def test_options_change_and_what_was_reported_stays(store):
    claimed(store)
    begun(store, tags=["one"])
    act(store, watched_folders.report, WatchReport(result=RESULT))
    changed = begun(store, tags=["two"], delete=True)
    assert (changed.tags, changed.delete, changed.result) == (["two"], True, RESULT)


@pytest.mark.parametrize("text", ["", "{}", "[]", "not JSON", '{"id": 1}', '{"id": "x", "tags": [], "delete": true}'])
def test_what_no_version_of_kb_wrote_is_no_watch(store, text):
    claimed(store)
    with store.write() as tx:
        tx.folders.set_watch("vault/", text)
    assert shown(store) is None


def test_a_long_error_is_shortened():
    outcome = WatchReport(error="x" * 5000)
    assert (len(outcome.error), outcome.error[-1]) == (2000, "…")


def test_an_export_of_an_earlier_version_has_folders_without_a_watch():
    line = {"prefix": "vault/", "machine": "one", "host": "lamp", "path": "/vault", "mounts": "{}"}
    read = ROW_LINES["folders.jsonl"].model_validate(line | {"at": "2026-01-01T00:00:00.000Z"})
    assert read.model_dump()["watch"] is None


def test_the_engine_writes_to_no_other_place_than_the_one_that_it_was_shown(store):
    folder = SyncedFolder("vault/", "machine", "host", "/vault", "", rows.now_iso())
    with store.write() as tx:
        tx.folders.put(folder)
        watched_folders.begin(tx, ID, WatchRequest(prefix="vault/", machine="machine", both=True))
        tx.folders.put(folder)
        assert [(known.path, known.is_kept) for known in tx.folders.all()] == [("/vault", True)]
        for other in (replace(folder, path="/etc"), replace(folder, machine="another")):
            tx.folders.put(other)
            assert [(known.is_kept, known.watch) for known in tx.folders.all()] == [(False, None)]


def test_an_imported_record_makes_the_engine_write_nowhere(store):
    folder = SyncedFolder("vault/", "machine", "host", "/vault", "", rows.now_iso())
    with store.write() as tx:
        tx.folders.put(folder)
        tx.folders.set_watch("vault/", f'{{"id": "{ID}", "tags": [], "delete": true, "both": true}}')
        watched_folders.ask(tx, ID)
        watched_folders.note(tx, ID, is_syncing=True)
        assert not any(known.is_kept for known in tx.folders.all())
