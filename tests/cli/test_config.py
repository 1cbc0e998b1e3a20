from __future__ import annotations

import json
import re

import pytest

from tests.conftest import KEY


@pytest.fixture
def config(outside):
    """Writes the configuration file."""
    path = outside.folder / "config" / "kb" / "config.toml"
    path.parent.mkdir(parents=True)

    def write(text, mode=0o600):
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


@pytest.mark.requirement("L-3")
def test_server_and_key_can_stand_in_a_file(outside, config, server):
    config(f'engine_url = "{server.url}"\napi_key = "{KEY}"\n')
    ended = outside("status")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.requirement("L-3")
def test_without_xdg_config_home_the_file_is_in_the_home_folder(outside, config, server):
    config(f'engine_url = "{server.url}"\napi_key = "{KEY}"\n')
    (outside.folder / "config").rename(outside.folder / ".config")
    assert outside("status", env={"XDG_CONFIG_HOME": ""}).returncode == 0


@pytest.mark.requirement("L-3")
def test_the_environment_wins_over_the_file_and_an_empty_variable_is_none(kb, config):
    config('engine_url = "http://127.0.0.1:9"\napi_key = "wrong"\n')
    assert kb("status").returncode == 0
    assert kb("status", env={"KB_API_KEY": ""}).returncode == 4


@pytest.mark.requirement("L-3")
def test_a_key_of_the_file_goes_to_no_other_server(outside, config):
    config('engine_url = "http://kb.example:1"\napi_key = "first-secret"\nmcp_api_key = "second-secret"\n')

    def keys(**env):
        settings = json.loads(outside("config", "--json", env=env).stdout)["settings"]
        return {name for name in settings if name.endswith("api_key")}

    assert keys() == {"api_key", "mcp_api_key"}
    assert keys(KB_ENGINE_URL="http://kb.example:1") == {"api_key", "mcp_api_key"}
    assert keys(KB_ENGINE_URL="http://elsewhere.example") == set()
    assert keys(KB_ENGINE_URL="http://elsewhere.example", KB_API_KEY="third") == {"api_key"}
    assert keys(KB_MCP_URL="http://elsewhere.example/mcp") == {"api_key"}
    config('api_key = "first-secret"\n')
    assert keys(KB_ENGINE_URL="http://elsewhere.example") == {"api_key"}


def test_a_key_that_others_can_read_is_warned_of_and_works(outside, config, server):
    path = config(f'engine_url = "{server.url}"\napi_key = "{KEY}"\n', mode=0o644)
    ended = outside("status")
    assert ended.returncode == 0
    assert ended.stderr == f"kb: warning: other users can read the key in {path}. Run: chmod 600 {path}\n"


def test_the_file_may_begin_as_windows_editors_have_it(outside, config, server):
    config(f'\ufeffengine_url = "{server.url}"\r\n')
    assert server.url in outside("config").stdout


def test_a_file_without_a_key_may_be_read_by_anyone(outside, config, server):
    config(f'engine_url = "{server.url}"\n', mode=0o644)
    assert "warning" not in outside("status").stderr


@pytest.mark.requirement("L-3")
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("engine_url = ", "not valid TOML"),
        ('url = "x"', "'url' is not a setting"),
        ("engine_url = 5", "engine_url must be a string in quotes"),
        ('engine_url = "localhost:8000"', "engine_url: 'localhost:8000' is not a valid URL"),
        ('engine_url = "http://[::1"', "is not a valid URL"),
        ('api_key = "clé"', "printable ASCII"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_it(outside, config, text, complaint):
    path = config(text)
    ended = outside("status")
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"kb: {path}: ")
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_wrong_variable_is_one_line_that_names_it_and_keeps_the_key_secret(outside):
    ended = outside("status", env={"KB_ENGINE_URL": "ftp://x"})
    assert (ended.returncode, ended.stderr[:18]) == (2, "kb: KB_ENGINE_URL:")
    ended = outside("status", env={"KB_API_KEY": "gehe\nim"})
    assert (ended.returncode, ended.stderr[:15]) == (2, "kb: KB_API_KEY:")
    assert "gehe" not in ended.stderr


def test_keys_are_made_listed_rotated_and_revoked(kb):
    made = kb("keys", "make", "from-the-shell", "--right", "write", "--tags", "a,b", "--path", "/notes")
    token = made.stdout.strip()
    assert token.startswith("kb_")
    assert "write documents tagged a or b under /notes/" in made.stderr
    [row] = [line.split("\t") for line in kb("keys").stdout.splitlines() if line.startswith("from-the-shell")]
    assert row[1] == "write documents tagged a or b under /notes/"
    assert row[3] == "never"
    assert kb("keys", "make", "from-the-shell").returncode == 6
    rotated = kb.json("keys", "rotate", "from-the-shell")
    assert rotated["key"].startswith("kb_")
    assert rotated["key"] != token
    assert kb("keys", "revoke", "from-the-shell").returncode == 0
    assert kb("keys", "revoke", "from-the-shell").returncode == 5
    for wrong in (["make"], ["revoke", "a", "b"], ["give", "a"]):
        assert kb("keys", *wrong).returncode == 2, wrong
    actions = [line["action"] for line in kb.json("audit")["lines"] if line["key"] == "from-the-shell"]
    assert actions == ["key-revoke", "key-rotate", "key-make"]


def test_the_audit_log_shows_who_changed_a_document(kb, tag):
    note = kb.note(f"The {tag} is lit at six.", "--tags", tag)
    kb("tag", note, "--add", "seen")
    rows = [line.split("\t") for line in kb("audit", "--document", note).stdout.splitlines()]
    assert [row[3] for row in rows] == ["retag", "add"]
    assert {row[4] for row in rows} == {f"document {note}"}
    assert rows[0][2].endswith("(cli)")
    assert tag not in kb("audit").stdout


def test_the_settings_of_the_engine_are_listed_with_their_sources_and_without_secrets(kb):
    settings = {each["variable"]: each for each in kb.json("config", "--engine")["settings"]}
    assert settings["KB_API_KEY"]["source"] == "environment"
    assert settings["KB_BACKUP_KEEP"]["value"] == "7"
    printed = kb("config", "--engine").stdout
    assert KEY not in printed
    assert re.search(r"(?m)^KB_BACKUP_KEEP\s+7\s+default$", printed)
