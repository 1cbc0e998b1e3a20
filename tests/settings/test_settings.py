"""Settings: the source of a value, and the message about a wrong one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import kb.asgi.metrics
import kb.settings
import kb.telemetry.logging
import kb_cli.server
import kb_mcp.settings
from kb.api.errors import SettingError
from kb.asgi.subapps import AppContext, SubApp
from kb.running_engine import data_folder
from kb.settings import EnvSettings, reveal, with_flags

ALL = [
    kb.settings.Settings,
    kb.asgi.metrics.MetricsSettings,
    kb.telemetry.logging.LogSettings,
    kb_cli.server.ServeSettings,
    kb_mcp.settings.GatewaySettings,
]


@pytest.mark.requirement("R-3")
def test_a_flag_counts_more_than_a_variable_and_that_more_than_the_default():
    def port(environment, **flags):
        return kb_cli.server.ServeSettings.read(with_flags(environment, **flags)).port

    assert port({}) == 8000
    assert port({"KB_PORT": "8001"}) == 8001
    assert port({"KB_PORT": "8001"}, port=8002) == 8002
    assert port({"KB_PORT": "8001"}, port=None) == 8001
    assert port({"KB_PORT": "8001"}, port=0) == 0


@pytest.mark.requirement("R-3")
def test_the_variables_of_the_process_count_where_no_others_are_given(monkeypatch):
    monkeypatch.setenv("KB_PORT", "8001")
    assert kb_cli.server.ServeSettings.read().port == 8001
    assert kb_cli.server.ServeSettings.read({}).port == 8000


def test_flags_change_no_variable():
    environment = {"KB_PORT": "8001"}
    before = dict(os.environ)
    assert with_flags(environment, port=1, device="cpu") == {"KB_PORT": "1", "KB_DEVICE": "cpu"}
    assert environment == {"KB_PORT": "8001"}
    assert os.environ == before


@pytest.mark.requirement("R-3")
def test_an_empty_variable_counts_as_unset():
    settings = kb.settings.Settings.read({"KB_API_KEY": "", "KB_MAX_TOP": ""})
    assert (settings.api_key, settings.max_top) == (None, 100)


def test_values_are_read_from_text(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = kb.settings.Settings.read(
        {"KB_KEEP_FILES": "0", "KB_PARSE_SECONDS": "1.5", "KB_DATA_DIR": "~/kb", "KB_API_KEY": " secret "}
    )
    assert (settings.keep_files, settings.parse_seconds, settings.data_dir) == (False, 1.5, tmp_path / "kb")
    assert reveal(settings.api_key) == "secret"
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"), [("KB_MAX_TOP", "wombat"), ("KB_API_KEY", "wombat quokka"), ("KB_DEVICE", "wombat")]
)
def test_a_wrong_value_is_not_quoted(name, value):
    with pytest.raises(SettingError, match=rf"^{name}: ") as refused:
        kb.settings.Settings.read({name: value})
    assert "wombat" not in str(refused.value)


@pytest.mark.parametrize("value", ["/srv/kb\r", " /srv/kb ", "/srv/kb\t\n"])
def test_blanks_and_ends_of_lines_around_a_value_are_no_part_of_it(value):
    environment = {"KB_DATA_DIR": value, "KB_BACKUP_DIR": value, "KB_LOG_LEVEL": " \r"}
    settings = kb.settings.Settings.read(environment)
    assert settings.data_dir == settings.backup_dir == data_folder(environment) == Path("/srv/kb")
    assert kb.telemetry.logging.LogSettings.read(environment).log_level == "info"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('"/srv/kb"', "remove the quotes"),
        ("'/srv/kb'", "remove the quotes"),
        ("$HOME/kb", "variables such as"),
        ("${XDG_DATA_HOME}/kb", "variables such as"),
        ("~nobody-of-this-name/kb", "no account of that name"),
    ],
)
@pytest.mark.parametrize("name", ["KB_DATA_DIR", "KB_BACKUP_DIR", "KB_NOTES_DIR"])
def test_what_a_shell_would_replace_makes_no_folder_of_that_name(name, value, says):
    with pytest.raises(SettingError, match=f"^{name}: .*{says}"):
        kb.settings.Settings.read({name: value})


def test_a_key_in_quotes_is_used_as_it_is_and_the_log_says_so(caplog):
    kb.settings.warn_of_quotes.cache_clear()
    assert reveal(kb.settings.Settings.read({"KB_API_KEY": '"wombat"'}).api_key) == '"wombat"'
    assert "KB_API_KEY: a key is in quotes" in caplog.text
    assert "wombat" not in caplog.text


def test_words_may_be_in_capitals():
    log = kb.telemetry.logging.LogSettings.read({"KB_LOG_LEVEL": "WARNING", "KB_LOG_FORMAT": "JSON"})
    assert (log.log_level, log.log_format) == ("warning", "json")
    assert kb.settings.Settings.read({"KB_DEVICE": "CPU"}).device == "cpu"


def test_a_setting_that_several_apps_read_is_declared_once():
    classes = {each for settings in ALL for each in settings.__mro__ if issubclass(each, EnvSettings)}
    declared = [name for each in classes for name in each.__annotations__ if name in each.model_fields]
    assert sorted(declared) == sorted(set(declared))


@pytest.mark.parametrize(
    "other", ["postgres://b:[p@h/kb", "postgresql://h/kb", "postgresql://h/kb?password=p&sslmode=require"]
)
def test_files_stay_where_they_are_when_it_changes_who_connects_to_postgresql_and_how(other, tmp_path):
    def files(url):
        return kb.settings.Settings(data_dir=tmp_path, database_url=url).files_dir

    assert files(other) == files("postgresql://a:secret@h/kb")
    assert files("postgresql:///kb?host=/one") != files("postgresql:///kb?host=/two")


def test_an_app_whose_packages_are_not_installed_says_what_to_do():
    absent = SubApp("absent_package.app:create_app", paths=("/mcp",))
    with pytest.raises(
        SettingError, match=r"the app at /mcp needs absent_package.*Reinstall kb-local, or leave this app"
    ):
        absent.build(AppContext())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "mysql://kb:secret@host/kb",
            "the URL that begins with mysql:// does not name a database. Write sqlite:///PATH or postgresql://",
        ),
        ("secret", "the URL does not name a database. Write sqlite:///PATH"),
        ("sqlite:///", "the URL that begins with sqlite:// does not name a database"),
        ("postgresql://kb:secret@host/kb", "this command works only with a database in a file"),
        ("sqlite:////", "/ is a folder. Name a file in it, such as sqlite:////kb.db"),
    ],
)
def test_a_database_that_cannot_be_meant_is_refused_with_the_setting_the_remedy_and_no_password(url, says, tmp_path):
    with pytest.raises(SettingError) as refused:
        _ = kb.settings.Settings(data_dir=tmp_path, database_url=url).database_path
    assert refused.value.detail.startswith(f"KB_DATABASE_URL: {says}")
    assert "secret" not in refused.value.detail
