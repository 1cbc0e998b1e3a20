"""Settings that change while the engine runs: what is saved, what wins, and what is refused."""

from __future__ import annotations

import errno
import json
from contextlib import ExitStack, contextmanager

import pytest

from kb import filesystem
from kb.api.errors import Invalid, SettingError, SettingFixed
from kb.api.settings_models import SettingsChange
from kb.core import make_extractors
from kb.live_settings import (
    LiveSettings,
    Part,
    check_backup_folder,
    check_inbox_folder,
    is_reachable,
    shown_value,
)
from kb.settings import CHANGEABLE, SAVED, Settings


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    return data


@pytest.fixture
def live(folder):
    """Settings with parts that only say what they do; `live.log` has that."""
    with started(folder) as opened:
        yield opened


@contextmanager
def started(folder, **environment):
    live = LiveSettings({"KB_DATA_DIR": str(folder), **environment})
    live.skip_unusable("inbox_dir", check_inbox_folder)
    live.log = []

    @contextmanager
    def watching(settings):
        live.log.append(f"begin {settings.inbox_dir}")
        yield
        live.log.append(f"end {settings.inbox_dir}")

    with ExitStack() as stack:
        names = ("backup_dir", "backup_hours", "backup_keep")
        live.add(Part(names, check_backup_folder, lambda settings: live.log.append(settings.backup_dir)), stack)
        part = Part(
            ("inbox_dir",), check_inbox_folder, lambda settings: watching(settings) if settings.inbox_dir else None
        )
        live.add(part, stack)
        live.add(Part(("ocr",), make_extractors, lambda _: None), stack)
        yield live


def setting(live, name):
    [found] = [each for each in live.state().settings if each.name == name]
    return found


def test_a_change_is_used_at_once_and_after_a_restart(folder, live, tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    live.change(SettingsChange(inbox_dir=str(inbox), backup_hours=1.5))
    assert live.log[-1] == f"begin {inbox}"
    assert (folder / SAVED).stat().st_mode & 0o077 == 0, "only its owner can read the file"
    with started(folder) as again:
        assert again.settings.inbox_dir == inbox
        assert again.settings.backup_hours == 1.5
        assert setting(again, "inbox_dir").source == "saved"
        again.change(SettingsChange(inbox_dir=None))
        assert again.log[-1] == f"end {inbox}"
        assert setting(again, "inbox_dir").source == "default"
        assert again.settings.backup_hours == 1.5, "other settings stay"


def test_a_part_ends_before_it_begins_again(live, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    live.log.clear()
    live.change(SettingsChange(inbox_dir=str(one)))
    live.change(SettingsChange(inbox_dir=str(two)))
    assert live.log == [f"begin {one}", f"end {one}", f"begin {two}"]


def test_the_environment_overrides_saved_settings_and_is_not_changed(folder, tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (folder / SAVED).write_text(json.dumps({"backup_hours": "5", "backup_keep": "3"}))
    with started(folder, KB_BACKUP_HOURS="7", KB_INBOX_DIR="") as live:
        assert live.settings.backup_hours == 7
        assert live.settings.backup_keep == 3
        assert setting(live, "backup_hours").source == "environment"
        with pytest.raises(SettingFixed, match="KB_BACKUP_HOURS is set in the environment"):
            live.change(SettingsChange(inbox_dir=str(inbox), backup_hours=9))
        assert live.settings.inbox_dir is None, "nothing changed"
        live.change(SettingsChange(inbox_dir=str(inbox)))
        assert live.settings.inbox_dir == inbox, "an empty variable counts as unset"
        assert json.loads((folder / SAVED).read_text())["backup_hours"] == "5"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inbox_dir": "inbox"}, "full path"),
        ({"inbox_dir": "{tmp}/absent"}, "does not exist"),
        ({"inbox_dir": "{tmp}/file"}, "does not exist"),
        ({"inbox_dir": "{tmp}"}, "keeps its own files"),
        ({"inbox_dir": "{tmp}/a\0b"}, "printable"),
        ({"inbox_dir": "{tmp}/a\nb"}, "printable"),
        ({"inbox_dir": "~nobody-of-this-name/inbox"}, "full path"),
        ({"backup_dir": "backups"}, "full path"),
        ({"backup_dir": "{tmp}/file"}, "KB_BACKUP_DIR"),
        ({"backup_dir": "{tmp}/file/below"}, "KB_BACKUP_DIR"),
        ({"backup_dir": "{tmp}/full"}, "contains other files but no backups"),
        ({"backup_dir": "{tmp}/data"}, "contains other files but no backups"),
        ({"backup_dir": "/proc/kb"}, "cannot use|no permission to write"),
        ({"inbox_dir": "{tmp}/empty", "backup_dir": "{tmp}/empty/backups"}, "inbox"),
        ({"ocr": "eng; rm -rf ~"}, "languages as Tesseract names them"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_and_changes_nothing(folder, live, tmp_path, change, words):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/photo.jpg").write_text("")
    (folder / "kb.db").write_text("")
    before, log = live.settings, list(live.log)
    values = {name: value.replace("{tmp}", str(tmp_path)) for name, value in change.items()}
    with pytest.raises(Invalid, match=words):
        live.change(SettingsChange(**values))
    assert (live.settings, live.log) == (before, log)
    assert not (folder / SAVED).exists()


def test_a_change_that_the_disk_does_not_take_is_not_used(live, tmp_path, monkeypatch):
    inbox = tmp_path / "inbox"
    inbox.mkdir()

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(filesystem, "sync", full)
    with pytest.raises(OSError, match="No space"):
        live.change(SettingsChange(inbox_dir=str(inbox)))
    assert live.settings.inbox_dir is None
    assert f"begin {inbox}" not in live.log


def test_a_saved_folder_that_is_gone_does_not_keep_the_engine_from_starting(folder, tmp_path):
    (folder / SAVED).write_text(json.dumps({"inbox_dir": str(tmp_path / "unplugged")}))
    with started(folder) as live:
        assert live.settings.inbox_dir is None
        shown = setting(live, "inbox_dir")
        assert shown.value == str(tmp_path / "unplugged")
        assert "does not exist" in shown.fault
        (tmp_path / "unplugged").mkdir()
        live.change(SettingsChange(inbox_dir=shown.value))
        assert setting(live, "inbox_dir").fault is None
        assert live.log[-1] == f"begin {tmp_path / 'unplugged'}"


def test_a_folder_of_the_environment_that_is_gone_keeps_it_from_starting(folder, tmp_path):
    with pytest.raises(SettingError, match="does not exist"), started(folder, KB_INBOX_DIR=str(tmp_path / "absent")):
        pass


@pytest.mark.parametrize("content", ["{", "[]", "7", '"x"', "\udcff"])
def test_a_damaged_file_is_named(folder, content):
    (folder / SAVED).write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(SettingError, match=r"settings\.json: it cannot be read"):
        Settings.read({"KB_DATA_DIR": str(folder)})


def test_a_wrong_value_in_the_file_is_named_with_the_file(folder):
    (folder / SAVED).write_text('{"backup_hours": "soon", "unknown": "x"}')
    with pytest.raises(SettingError, match=r"settings\.json: KB_BACKUP_HOURS: it must be a number"):
        Settings.read({"KB_DATA_DIR": str(folder)})


def test_a_file_of_a_later_version_may_have_other_settings(folder):
    (folder / SAVED).write_text('{"backup_keep": "4", "unknown": "x", "data_dir": "/elsewhere"}')
    read = Settings.read({"KB_DATA_DIR": str(folder)})
    assert (read.backup_keep, read.data_dir) == (4, folder)


def test_with_postgresql_saved_backups_do_not_apply(folder):
    (folder / SAVED).write_text('{"backup_dir": "/tmp/backups", "ocr": "0"}')
    environment = {"KB_DATA_DIR": str(folder), "KB_DATABASE_URL": "postgresql://localhost/kb"}
    assert Settings.read(environment).backup_dir is None
    live = LiveSettings(environment)
    assert live.settings.ocr == "0"
    with pytest.raises(Invalid, match="SQLite"):
        live.change(SettingsChange(backup_keep=3))


def test_no_secret_is_shown(folder):
    secrets = {
        "KB_API_KEY": "sesame-1234567890",
        "KB_BACKUP_KEY": "sesame-1234567890",
        "KB_DATABASE_URL": "postgresql://ada:sesame@db/kb?password=sesame",
        "KB_DATABASE_READ_URL": "postgresql://ada:sesame@one/kb,postgresql://ada:sesame@two/kb?sslpassword=sesame",
        "KB_EXTRACTORS": "image=http://ada:sesame@ocr/?key=sesame; .doc=antiword -",
    }
    live = LiveSettings({"KB_DATA_DIR": str(folder), **secrets})
    assert "sesame" not in live.state().model_dump_json()
    assert setting(live, "api_key").is_secret
    assert setting(live, "database_url").value == "postgresql://db/kb"


@pytest.mark.parametrize(
    ("value", "shown"), [(None, None), ("", None), (True, "1"), (False, "0"), (24.0, "24"), (1.5, "1.5"), (7, "7")]
)
def test_a_value_is_shown_as_in_the_environment(value, shown):
    assert shown_value(value) == shown


@pytest.mark.parametrize(
    ("environment", "reachable"),
    [
        ({}, False),
        ({"KB_HOST": "127.0.0.1"}, False),
        ({"KB_HOST": "::1"}, False),
        ({"KB_HOST": "[::1]"}, False),
        ({"KB_HOST": "localhost"}, False),
        ({"KB_HOST": "0.0.0.0"}, True),
        ({"KB_HOST": "::"}, True),
        ({"KB_HOST": "192.168.1.5"}, True),
        ({"KB_HOST": "kb.local"}, True),
        ({"KB_ALLOWED_HOSTS": "kb.example.org"}, True),
    ],
)
def test_others_can_connect_unless_kb_listens_on_loopback_only(environment, reachable):
    assert is_reachable(environment) == reachable


def test_every_setting_is_described(live):
    settings = live.state().settings
    assert all(len(each.about) > 10 for each in settings)
    assert {each.name for each in settings if each.changeable} == set(CHANGEABLE)


@pytest.mark.parametrize("name", ["inbox_dir", "backup_dir"])
@pytest.mark.parametrize("place", ["notes", "notes/below", "."])
def test_the_inbox_and_the_backups_stay_apart_from_the_notes_folder(folder, tmp_path, name, place):
    chosen = tmp_path / "own" / place
    chosen.mkdir(parents=True)
    (tmp_path / "own" / "notes").mkdir(exist_ok=True)
    with started(folder, KB_NOTES_DIR=str(tmp_path / "own" / "notes")) as live:
        with pytest.raises(Invalid, match="Choose a separate folder"):
            live.change(SettingsChange(**{name: str(chosen)}))
        assert not (folder / SAVED).exists()


@pytest.mark.parametrize("name", ["inbox_dir", "backup_dir"])
@pytest.mark.parametrize("place", ["files", "staging", "files/2d"])
def test_the_inbox_and_the_backups_stay_apart_from_the_files_of_kb(folder, live, name, place):
    (folder / place).mkdir(parents=True)
    with pytest.raises(Invalid, match="Choose a separate folder"):
        live.change(SettingsChange(**{name: str(folder / place)}))


def test_a_saved_inbox_in_a_new_notes_folder_is_skipped_at_the_start(folder, tmp_path):
    (tmp_path / "inbox").mkdir()
    with started(folder) as live:
        live.change(SettingsChange(inbox_dir=str(tmp_path / "inbox")))
    with started(folder, KB_NOTES_DIR=str(tmp_path / "inbox")) as again:
        assert again.settings.inbox_dir is None
        assert "Choose a separate folder" in setting(again, "inbox_dir").fault
