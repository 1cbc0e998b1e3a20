"""A wrong clock of the machine: nothing expires because of it, and the order of writes stays correct."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import clock
from kb.access.keyring import _later
from kb.api.errors import NotFound
from kb.backup.make import back_up
from kb.backup.schedule import BackupSchedule
from kb.backup.storage import age_of_newest, backup_folders
from kb.clock import ACCEPTED, EARLIEST, Clock, ClockReading, accept, describe
from kb.store.rows import NOBODY, AuditEvent, Filter, NamedKey, NewJob, Retention, now_iso
from kb_mcp.upload_store import UploadLimits, UploadStore
from tests.store.test_backup import Data
from tests.support.documents import content
from tests.support.workers import new_worker

DAY = 86_400.0
START = datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp()


class Machine:
    """A machine whose clock can be put elsewhere, that can sleep and boot."""

    def __init__(self):
        self.at, self.uptime, self.boots = START, 100.0, 1

    def read(self):
        return ClockReading(self.at, self.uptime, str(self.boots))

    def run(self, seconds):
        self.at += seconds
        self.uptime += seconds

    def jump(self, seconds):
        self.at += seconds

    def be_off(self, seconds):
        self.at += seconds
        self.uptime = 10.0
        self.boots += 1


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def started(machine, tmp_path):
    """`started()` is a clock as an engine has it that starts over the data folder."""

    def start():
        made = Clock(machine.read)
        made.keep_in(tmp_path)
        return made

    return start


def hours(seconds):
    return pytest.approx(seconds, abs=60)


def test_a_clock_that_runs_that_is_set_a_little_and_a_machine_that_sleeps_are_believed(machine, started):
    own = started()
    for act in (lambda: machine.run(9 * DAY), lambda: machine.jump(-600), lambda: machine.jump(900), lambda: machine.be_off(DAY)):  # fmt: skip
        act()
        assert own.look() is None
        assert started().look() is None
        assert own.now().timestamp() >= machine.at - 901


@pytest.mark.parametrize("days", [2, 40, 400, 10_000, -2, -400, -7000])
def test_after_a_jump_nothing_expires_until_the_clock_has_stayed_there_for_a_day(machine, started, days):
    own = started()
    machine.run(60)
    own.look()
    machine.jump(days * DAY)
    jump = own.look()
    assert jump.moved == pytest.approx(days * DAY)
    assert "nothing expires until" in describe(jump)
    for _ in range(23):
        machine.run(3600)
        assert own.look()
        own = started()
        assert own.look(), "a start does not make it believed"
    machine.run(2 * 3600)
    assert own.look() is None
    assert started().look() is None


def test_a_jump_is_seen_at_the_start_and_over_when_the_clock_is_back(machine, started):
    started().look()
    machine.run(60)
    machine.jump(400 * DAY)
    own = started()
    assert own.look().moved == pytest.approx(400 * DAY, abs=60)
    machine.jump(-400 * DAY)
    assert own.look() is None
    assert started().look() is None


def test_a_clock_that_jumps_again_and_again_is_not_believed(machine, started):
    own = started()
    machine.jump(100 * DAY)
    for _ in range(30):
        assert own.look()
        machine.run(DAY / 2)
        machine.jump(3 * DAY)
    assert own.look()


def test_a_machine_that_was_off_for_long_dates_by_its_clock_and_expires_a_day_later(machine, started):
    started().look()
    machine.be_off(60 * DAY)
    own = started()
    assert own.look()
    assert own.now().timestamp() == hours(machine.at)
    machine.run(DAY + 1)
    assert own.look() is None


def test_a_battery_that_is_empty_is_no_reason_to_expire_when_the_time_comes_from_the_network(machine, started):
    started().look()
    machine.be_off(60)
    machine.at = 0.0
    own = started()
    assert own.look()
    assert own.now().timestamp() == hours(START)
    machine.jump(START + 120)
    assert own.look() is None
    assert own.now().timestamp() == hours(machine.at)


@pytest.mark.parametrize("days", [400, -7000])
def test_what_is_written_during_a_jump_is_dated_where_kb_left_the_time(machine, started, days):
    own = started()
    before = own.now()
    machine.jump(days * DAY)
    amid = own.now()
    machine.run(600)
    own.forget()
    own = started()
    later = own.now()
    own.forget()
    machine.jump(-days * DAY)
    after = started().now()
    assert before < amid < later < after
    assert amid - before < timedelta(minutes=1)
    assert later - amid == pytest.approx(timedelta(minutes=10), abs=timedelta(minutes=1))


def test_a_person_can_say_that_the_clock_is_right_to_an_engine_that_runs_or_at_its_start(machine, started, tmp_path):
    own = started()
    machine.jump(400 * DAY)
    assert own.look()
    accept(tmp_path, machine.read())
    assert own.look() is None
    assert not (tmp_path / ACCEPTED).exists()
    assert own.now().timestamp() == hours(machine.at)
    machine.jump(-400 * DAY)
    accept(tmp_path, machine.read())
    assert started().look() is None


def test_that_the_clock_is_right_is_said_of_the_time_it_shows_and_not_of_later_jumps(machine, started, tmp_path):
    own = started()
    accept(tmp_path, machine.read())
    assert own.look() is None
    machine.run(600)
    machine.jump(400 * DAY)
    assert own.look(), "what was said then was not of this jump"
    assert started().look()
    machine.jump(-400 * DAY)
    assert own.look() is None
    assert not (tmp_path / ACCEPTED).exists(), "it is needed no more"
    (tmp_path / ACCEPTED).touch()
    machine.jump(400 * DAY)
    assert own.look(), "an empty file says nothing"


WRONG_FOR_A_WHILE = {
    "years ahead at a boot": lambda machine: (machine.be_off(60), machine.jump(5 * 365 * DAY)),
    "weeks ahead at a boot": lambda machine: (machine.be_off(60), machine.jump(25 * DAY)),
    "weeks ahead": lambda machine: machine.jump(25 * DAY),
    "years ahead": lambda machine: machine.jump(400 * DAY),
    "years back": lambda machine: machine.jump(-400 * DAY),
    "twice": lambda machine: (machine.jump(20 * DAY), machine.jump(20 * DAY)),
}


def wrong_for_a_while(machine, own, start, how):
    """Have the machine's clock wrong for ten seconds, in which everything asks for the time."""
    began = machine.at
    if "boot" in how:
        own.forget()
    WRONG_FOR_A_WHILE[how](machine)
    if "boot" in how:
        start()
    own.look()
    own.now()
    machine.run(10)
    own.now()
    machine.at = began + 70


@pytest.mark.parametrize("how", WRONG_FOR_A_WHILE)
def test_when_a_clock_is_back_kb_own_time_runs_on_from_there_at_once(machine, started, tmp_path, how):
    own = started()
    machine.run(60)
    own.now()
    wrong_for_a_while(machine, own, lambda: own.keep_in(tmp_path), how)
    first = own.now()
    assert first.timestamp() == hours(machine.at)
    machine.run(3600)
    assert own.now() - first == pytest.approx(timedelta(hours=1), abs=timedelta(seconds=1))
    assert own.expiry().timestamp() == hours(machine.at)
    assert own.look() is None


def test_a_person_can_end_that_kb_own_time_stands_still(machine, started, tmp_path):
    own = started()
    machine.run(60)
    machine.jump(3000)
    ahead = own.now()
    machine.jump(-3000)
    assert own.now() > ahead, "a small step is kept, so that the order holds"
    assert own.expiry().timestamp() == hours(machine.at)
    accept(tmp_path, machine.read())
    assert own.now().timestamp() == hours(machine.at)
    assert not (tmp_path / ACCEPTED).exists()


def test_a_note_that_cannot_be_read_is_as_none_and_an_earlier_kb_left_its_database(machine, tmp_path, started):
    started()
    mark = '{"at": %s, "uptime": 1.0, "boot": "1"}'
    odd = [
        f'{{"mark": {mark % value}, "jump": null, "last": 0.0}}'
        for value in ("NaN", "Infinity", "1e300", '"x"', "null")
    ]
    for damaged in (b"", b"{}", b"[1]", b'{"mark": 5}', b"\xff", b"[" * 9999, *map(str.encode, odd)):
        (tmp_path / "clock.json").write_bytes(damaged)
        assert started().look() is None
    (tmp_path / "clock.json").unlink()
    (tmp_path / "kb.db").touch()
    machine.at = (tmp_path / "kb.db").stat().st_mtime + 400 * DAY
    own = started()
    assert own.look()
    assert own.now().timestamp() == hours(machine.at)


def test_a_machine_without_a_clock_is_believed_once_a_time_server_has_answered(machine, started):
    machine.at, machine.uptime = 60.0, 20.0
    own = started()
    assert own.look() is None
    machine.run(30)
    machine.at = START
    assert own.look() is None
    assert own.now().timestamp() == hours(START)
    machine.uptime = 10_000.0
    own.look()
    machine.be_off(0)
    own = started()
    machine.run(90)
    machine.jump(10 * 3600)
    assert own.look() is None, "it knew only when it went off"
    machine.run(3600)
    own.look()
    machine.jump(10 * 3600)
    assert own.look(), "the time was known by then"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["run", "jump", "off", "crash", "start"]),
        st.sampled_from([1.0, 60.0, 4000.0, DAY, 3 * DAY, 40 * DAY, 400 * DAY, 8000 * DAY]),
        st.sampled_from([1, -1]),
    ),
    max_size=25,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_kb_own_time_never_falls_and_nothing_expires_right_after_a_jump(tmp_path_factory, steps):
    folder, machine = tmp_path_factory.mktemp("clock"), Machine()

    def start():
        own = Clock(machine.read)
        own.keep_in(folder)
        return own

    own, last, expired_at = start(), 0.0, START
    for step, seconds, sign in steps:
        before, jump = machine.at, own.look()
        if step == "run":
            for _ in range(24 if seconds <= 3 * DAY else 0):
                machine.run(seconds / 24)
                own.look()
        elif step == "jump":
            machine.jump(sign * seconds)
        elif step == "off":
            machine.be_off(seconds)
        if step == "start":
            own.forget()
        if step != "run" and step != "jump":
            own = start()
        if own.look() is None:
            is_near = abs(machine.at - expired_at) <= 2 * DAY or abs(machine.at - before) <= DAY
            assert step == "run" or is_near or expired_at < EARLIEST, "a machine without a clock says nothing"
            expired_at, last = machine.at, min(last, machine.at)
        if jump and jump.is_dated_by_machine:
            last = 0.0  # what only a wrong clock showed does not hold kb's own time up
        now = own.now().timestamp()
        assert step in ("off", "crash") or now >= last - 0.001, "but for what was given since the last note"
        last = now


def machine_of_today():
    machine = Machine()
    machine.at = datetime.now(UTC).timestamp()
    return machine


def at(monkeypatch, machine):
    """Have this process's own clock go by a machine of the test."""
    own = Clock(machine.read)
    monkeypatch.setattr(clock, "own", own)
    return own


@pytest.mark.parametrize("how", [*WRONG_FOR_A_WHILE, None], ids=str)
def test_bin_history_audit_and_jobs_outlive_a_clock_that_is_wrong_or_was_and_is_back(
    make_store, tmp_path, monkeypatch, embedder, how
):
    machine = machine_of_today()
    own = at(monkeypatch, machine)
    own.keep_in(tmp_path)
    with make_store(dimensions=8, retention=Retention(history_days=7, bin_days=7, audit_days=7)) as store:
        with store.write() as tx:
            kept = tx.documents.add(content("one"), "/kept", [])
            gone = tx.documents.add(content("gone"), "/gone", [])
            tx.jobs.finish(tx.jobs.add(NewJob("note", text="done")), kept)
            tx.audit.add([AuditEvent("add", kept)], NOBODY)
        with store.write() as tx:
            tx.documents.replace(kept, content("two"))
            tx.history.discard(gone, NOBODY)

        if how is None:
            machine.jump(400 * DAY)
        else:
            wrong_for_a_while(machine, own, lambda: own.keep_in(tmp_path), how)
        worker = new_worker(store, embedder, tmp_path, keep_jobs_days=1)
        worker._expire()
        with store.read() as tx:
            counts = tx.history.counts()
            done = [job.status for job in tx.jobs.page(status=None, limit=5, before=None)]
            lines = tx.audit.page(limit=5, before=None, document_id=None, by=None)
        assert (counts.versions > 0, counts.binned, done, len(lines)) == (True, 1, ["done"], 1)


def test_the_newest_come_first_through_jumps_both_ways(make_store, monkeypatch):
    machine = machine_of_today()
    at(monkeypatch, machine)
    written = []
    with make_store(dimensions=8) as store:
        for seconds in (0, 400 * DAY, -400 * DAY, -7000 * DAY, 7000 * DAY, 3000, -3000, 0):
            machine.run(5)
            machine.jump(seconds)
            with store.write() as tx:
                written.append(tx.documents.add(content(f"note {len(written)}"), None, []))
        with store.read() as tx:
            page = tx.documents.page(Filter(), sort="recent", limit=50, cursor=None)
        assert [each.id for each in page] == written[::-1]


def test_backups_are_not_rotated_by_a_clock_that_jumps(tmp_path, monkeypatch):
    machine = Machine()
    own = at(monkeypatch, machine)
    data = Data(tmp_path / "data")
    with data.open():
        pass
    own.keep_in(tmp_path)
    back_up(data.settings, tmp_path / "backups", keep=2)
    for days in (400, -400, 900, -7000):
        machine.run(60)
        machine.jump(days * DAY)
        assert 0 <= age_of_newest(tmp_path / "backups") < 3600
    back_up(data.settings, tmp_path / "backups", keep=2)
    names = [folder.name[:10] for folder in backup_folders(tmp_path / "backups")]
    assert names == ["2026-11-25", "2026-11-25"]


def test_a_clock_that_is_set_ends_no_upload_and_a_boot_does_some_time_later(tmp_path, monkeypatch):
    machine = machine_of_today()
    at(monkeypatch, machine)
    monkeypatch.setattr(clock, "boot_id", lambda: str(machine.boots))
    uploads = UploadStore(UploadLimits(1000, 10**7), tmp_path, clock=lambda: machine.uptime)
    begun = uploads.start("a.txt", 3, [])
    for seconds in (700, 3000, 40 * DAY, -80 * DAY):
        machine.run(10)
        machine.jump(seconds)
        uploads.expire()
        uploads.add_chunk(begun, 0, "YWJj")
    machine.jump(40 * DAY - 3700)
    machine.run(600)
    with pytest.raises(NotFound):
        uploads.get(begun)
    other = uploads.start("b.txt", 3, [])
    machine.be_off(7200)
    uploads.expire()
    with pytest.raises(NotFound):
        uploads.get(other)
    assert not (tmp_path / other).exists()


def test_backups_that_the_engine_makes_in_a_jump_are_as_often_as_else_and_none_goes(tmp_path, monkeypatch):
    machine = machine_of_today()
    own = at(monkeypatch, machine)
    data = Data(tmp_path / "data")
    with data.open():
        pass
    own.keep_in(tmp_path)
    target = tmp_path / "backups"
    back_up(data.settings, target, keep=2)
    machine.run(3600)
    machine.jump(20 * DAY)
    assert age_of_newest(target) == pytest.approx(3600, abs=5), "no backup is due only because the clock jumped"
    schedule = BackupSchedule(data.settings.model_copy(update={"backup_keep": 1}), target)
    assert schedule._back_up() == 0
    assert len(backup_folders(target)) == 2, "none goes while the clock is wrong"
    assert age_of_newest(target) < 60
    machine.jump(-20 * DAY)
    machine.run(60)
    assert age_of_newest(target) == float("inf"), "it says nothing of when it was made"
    schedule._back_up()
    assert len(backup_folders(target)) == 1
    machine.run(7200)
    assert age_of_newest(target) == pytest.approx(7200, abs=5), "backups are made again when they are due"


def test_the_old_text_of_a_key_is_good_for_as_long_as_was_said_whatever_the_clock_does(monkeypatch):
    machine = Machine()
    at(monkeypatch, machine)
    clock.own.look()
    key = NamedKey("reader", "read", (), None, "new", now_iso(), former_digest="old", former_until=_later(timedelta(hours=1)))  # fmt: skip
    machine.jump(20 * DAY)
    assert key.opens("old")
    during = NamedKey("other", "read", (), None, "new", now_iso(), former_digest="old", former_until=_later(timedelta(hours=1)))  # fmt: skip
    machine.jump(-20 * DAY)
    machine.run(3500)
    assert key.opens("old")
    machine.run(200)
    assert not key.opens("old")
    assert not during.opens("old")


def test_on_a_mac_the_time_counts_on_in_sleep(monkeypatch):
    monkeypatch.delattr(clock.time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(clock.sys, "platform", "darwin")
    monkeypatch.setattr(clock.time, "monotonic", lambda: -1.0)  # which stops there while the machine sleeps
    assert clock.read_machine().uptime > 0
