"""kb mcp prints what connects clients, or writes it into their files; kb config says what counts."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import yaml

from kb_cli.agents.config_files import merge
from kb_cli.runtime.files import back_up, replace_file

KEY = 'a "quoted" key\\'
URL = "http://kb.example:8000/mcp"


@pytest.fixture
def printed(outside):
    def printed(*words, key=KEY, url="http://kb.example:8000"):
        return outside("mcp", *words, env={"KB_ENGINE_URL": url, "KB_MCP_API_KEY": key}).stdout

    return printed


@pytest.mark.parametrize(
    ("client", "table", "address"),
    [("cursor", "mcpServers", "url"), ("roo", "mcpServers", "url"), ("kilo", "mcp", "url"), ("kiro", "mcpServers", "url"),
     ("amp", "amp.mcpServers", "url"), ("qwen", "mcpServers", "httpUrl"), ("crush", "mcp", "url"),
     ("anythingllm", "mcpServers", "url"), ("gemini", "mcpServers", "httpUrl"),
     ("windsurf", "mcpServers", "serverUrl"), ("opencode", "mcp", "url"), ("zed", "context_servers", "url"),
     ("lmstudio", "mcpServers", "url"), ("copilot-cli", "mcpServers", "url"), ("cline", "mcpServers", "url")],
)  # fmt: skip
def test_clients_that_read_json_get_address_and_key(printed, client, table, address):
    server = json.loads(printed(client))[table]["kb"]
    assert server[address] == URL
    assert server["headers"] == {"Authorization": f"Bearer {KEY}"}
    assert "headers" not in json.loads(printed(client, key=""))[table]["kb"]


def test_commands_and_toml_survive_a_key_with_quotes(printed):
    words = shlex.split(printed("claude-code"))
    assert words == [
        "claude", "mcp", "add", "--transport", "http", "--scope", "user", "kb", URL,
        "--header", f"Authorization: Bearer {KEY}",
    ]  # fmt: skip
    codex = tomllib.loads(printed("codex"))["mcp_servers"]["kb"]
    assert codex == {"url": URL, "bearer_token_env_var": "KB_MCP_API_KEY"}
    assert tomllib.loads(printed("codex", key="")) == {"mcp_servers": {"kb": {"url": URL}}}


def test_vscode_asks_for_the_key_and_keeps_the_other_inputs(printed, outside):
    wanted = json.loads(printed("vscode"))
    assert wanted["servers"]["kb"]["headers"] == {"Authorization": "Bearer ${input:kb-agent-key}"}
    assert KEY not in printed("vscode")
    assert "inputs" not in json.loads(printed("vscode", key=""))
    file = outside.folder / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"inputs": [{"id": "mine", "type": "promptString"}], "servers": {"other": {"url": "http://o"}}}')
    for _ in range(2):
        assert outside("mcp", "vscode", "--write", env={"KB_MCP_API_KEY": KEY}).returncode == 0
        written = json.loads(file.read_text())
        assert [each["id"] for each in written["inputs"]] == ["mine", "kb-agent-key"]
        assert written["servers"].keys() == {"other", "kb"}


@pytest.mark.parametrize("client", ["continue", "librechat"])
def test_clients_that_read_yaml_get_address_and_key(printed, client):
    servers = yaml.safe_load(printed(client))["mcpServers"]
    [server] = servers if isinstance(servers, list) else servers.values()
    assert (server["type"], server["url"]) == ("streamable-http", URL)
    assert f"Bearer {KEY}" in str(server).replace("\\\\", "\\")


def test_clients_that_only_start_programs_start_kb_itself(printed):
    server = json.loads(printed("claude-desktop"))["mcpServers"]["kb"]
    assert Path(server["command"]).is_file()
    assert server["args"] == ["stdio"]
    assert server["env"] == {"KB_MCP_URL": URL, "KB_MCP_API_KEY": KEY}
    local = json.loads(printed("claude-desktop", url="http://127.0.0.1:1", key=""))["mcpServers"]["kb"]
    assert local["env"] == {"KB_MCP_URL": "http://127.0.0.1:1/mcp", "KB_PRECISION": "fp32"}


def test_a_program_that_starts_kb_gives_it_the_settings_of_this_shell(outside):
    settings = {
        "KB_PRECISION": "fp32",
        "KB_DATA_DIR": "data",
        "KB_API_KEY": "the engine's",
        "KB_MCP_API_KEY": "the agents'",
    }
    env = json.loads(outside("mcp", "claude-desktop", env=settings).stdout)["mcpServers"]["kb"]["env"]
    assert env == {**settings, "KB_DATA_DIR": str(outside.folder / "data"), "KB_MCP_URL": "http://127.0.0.1:8000/mcp"}


def test_all_of_them_with_their_place_and_the_collections_too(printed, outside):
    everything = printed()
    assert "# Claude Code: run\nclaude mcp add" in everything
    assert "# Codex: ~/.codex/config.toml\n[mcp_servers.kb]" in everything
    assert "kb mcp cursor --write" in everything.splitlines()[-1]
    assert "http://kb.example:8000/collections/mcp" in printed("cursor", "--collections")
    assert outside("mcp", "emacs").returncode == 2
    assert outside.json("mcp", "codex")["clients"].keys() == {"codex"}


PROFILES = """
profile = "home"
[profiles.home]
engine_url = "http://127.0.0.1:9"
[profiles.work]
engine_url = "https://kb.example"
api_key = "a-long-secret-key-42"
mcp_url = "https://agents.example/mcp"
"""


@pytest.fixture
def profiles(outside):
    path = outside.folder / "config" / "kb" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(PROFILES)
    path.chmod(0o600)
    return path


def test_a_profile_is_a_server_of_several(outside, profiles):
    home = outside.json("config")
    assert (home["profile"], home["profiles"]) == ("home", ["home", "work"])
    assert home["settings"]["engine_url"] == {
        "value": "http://127.0.0.1:9", "source": f"{profiles}: profiles.home.engine_url",
    }  # fmt: skip
    work = outside("--profile", "work", "config")
    assert "https://kb.example" in work.stdout
    assert "••••42" in work.stdout
    assert "secret" not in work.stdout
    assert outside("config", env={"KB_PROFILE": "work"}).stdout == work.stdout
    assert "https://agents.example/mcp" in outside("--profile", "work", "mcp", "cursor").stdout


def test_a_profile_that_is_asked_for_is_taken_whole(outside, profiles):
    env = {"KB_ENGINE_URL": "http://127.0.0.1:8", "KB_MCP_API_KEY": "another-servers"}
    assert "another-servers" in outside("mcp", "cursor", env=env).stdout
    assert "another-servers" not in outside("--profile", "work", "mcp", "cursor", env=env).stdout


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('profile = "away"', "the profile 'away' does not exist. The file has no profiles"),
        ("profiles = 3", "profiles must be tables"),
        ("[profiles]\nx = 3", "profiles must be tables"),
        ('[profiles.x]\nurl = "y"', "'url' is not a setting"),
        ('[profiles.x]\nprofile = "y"', "'profile' is not a setting"),
        ("profile = 4", "profile must be a string in quotes"),
    ],
)
def test_wrong_profiles_are_one_line(outside, profiles, text, complaint):
    profiles.write_text(text)
    ended = outside("config")
    assert ended.returncode == 2
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_others_who_can_read_a_profiles_key_are_warned_of(outside, profiles):
    profiles.chmod(0o644)
    assert "other users can read the key" in outside("config").stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tags_types_and_profiles_are_completed(kb, tag, outside, profiles, shell):
    kb.note("A tagged note", "--tags", f"{tag}-one,{tag}-two")

    def offered(line, **more):
        words = {"COMP_WORDS": f"kb {line}", "COMP_CWORD": str(line.count(" ") + 1)}
        typed = {"_TYPER_COMPLETE_ARGS": f"kb {line}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        return kb(env={"_KB_COMPLETE": f"complete_{shell}", **words, **typed, **more}).stdout

    assert f"{tag}-one" in offered(f"search --tags {tag}")
    assert f"{tag}-two" in offered(f"list --tags x,{tag}-t")
    assert f"{tag}-one" in offered(f"tag 1 --add {tag}")
    assert "markdown" in offered("list --type mark")
    assert "work" in offered("--profile w")
    assert "claude-desktop" in offered("mcp cl")
    assert "Traceback" not in offered(f"search --tags {tag}", KB_ENGINE_URL="http://127.0.0.1:9")


def test_what_a_client_needs_is_written_into_its_file_beside_what_is_there(outside):
    file = outside.folder / ".cursor/mcp.json"
    file.parent.mkdir()
    before = '{"mcpServers": {"other": {"url": "http://other"}}, "theme": "dark"}'
    file.write_text(before)
    settings = {"KB_ENGINE_URL": "http://kb.example:8000", "KB_MCP_API_KEY": KEY}
    written = outside("mcp", "cursor", "--write", env=settings)
    assert (written.returncode, written.stderr) == (0, "")
    content = json.loads(file.read_text())
    assert content["mcpServers"]["kb"] == {"url": URL, "headers": {"Authorization": f"Bearer {KEY}"}}
    assert (content["mcpServers"]["other"], content["theme"]) == ({"url": "http://other"}, "dark")
    assert file.stat().st_mode & 0o077 == 0
    assert outside("mcp", "cursor", "--write").returncode == 0
    assert file.with_name("mcp.json.before-kb").read_text() == before
    assert outside("mcp", "--write").returncode == 2


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("cursor", ".cursor/mcp.json", "{,}"),
        ("zed", "config/zed/settings.json", '{"context_servers": ["mine"]}'),
        ("codex", ".codex/config.toml", "[mcp_servers"),
        ("goose", "config/goose/config.yaml", "extensions: [a"),
        ("goose", "config/goose/config.yaml", "- a list"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="they have their files elsewhere")
def test_a_file_that_cannot_be_read_stays_as_it_is(outside, client, file, text):
    path = outside.folder / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    refused = outside("mcp", client, "--write")
    assert (refused.returncode, path.read_text()) == (2, text)
    assert f"Paste the output of 'kb mcp {client}'" in refused.stderr
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("client", "why"), [("open-webui", "in a database"), ("claude-code", "uses a command instead")]
)
def test_a_client_without_a_file_says_what_to_do_instead(outside, client, why):
    refused = outside("mcp", client, "--write")
    assert (refused.returncode, why in refused.stderr) == (2, True)
    assert f"kb mcp {client}'" in refused.stderr


ZED = """// Zed settings
{
  "theme": "One Dark", // the dark one
  "context_servers": {
    "other": { "url": "http://other//mcp" }, /* "kb": { */
    // and here mine
  },
}
"""
CODEX = """# mine
model = "o" # a good one

[mcp_servers.other]
command = "other" # of another

[tui]
theme = "dark"
"""
GOOSE = """# top
extensions:
  # what came with it
  developer:
    enabled: true # yes
    args:
    - one
GOOSE_PROVIDER: ollama
"""


@pytest.mark.parametrize(
    ("client", "file", "before", "added"),
    [
        ("zed", "config/zed/settings.json", ZED, '"kb": {'),
        ("codex", ".codex/config.toml", CODEX, "[mcp_servers.kb]"),
        ("goose", "config/goose/config.yaml", GOOSE, "  kb: {"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="they have their files elsewhere")
def test_comments_and_order_stay_and_writing_twice_changes_nothing(outside, client, file, before, added):
    path = outside.folder / file
    path.parent.mkdir(parents=True)
    path.write_text(before)
    settings = {"KB_ENGINE_URL": "http://kb.example:8000", "KB_MCP_API_KEY": KEY}
    assert outside("mcp", client, "--write", env=settings).returncode == 0
    after = path.read_text()
    rest = iter(after.splitlines())
    assert all(line in rest for line in before.splitlines())
    assert added in after
    backup = path.with_name(f"{path.name}.before-kb")
    assert backup.read_text() == before
    assert outside("mcp", client, "--write", env=settings).returncode == 0
    assert path.read_text() == after
    assert sorted(path.parent.iterdir()) == sorted([path, backup])


@pytest.mark.skipif(sys.platform != "linux", reason="Cline has its former file elsewhere")
def test_cline_is_written_to_the_file_it_has(outside):
    former = outside.folder / "config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    former.parent.mkdir(parents=True)
    former.write_text("{}")
    assert outside("mcp", "cline", "--write").returncode == 0
    assert json.loads(former.read_text())["mcpServers"]["kb"]["type"] == "streamableHttp"
    former.unlink()
    assert outside("mcp", "cline", "--write").returncode == 0
    file = outside.folder / ".cline/data/settings/cline_mcp_settings.json"
    assert "kb" in json.loads(file.read_text())["mcpServers"]
    assert outside("mcp", "cline", "--write", env={"CLINE_MCP_SETTINGS_PATH": "~/cline.json"}).returncode == 0
    assert (outside.folder / "cline.json").exists()


@pytest.mark.parametrize(
    ("client", "file", "table"),
    [
        ("claude-desktop", "config/Claude/claude_desktop_config.json", "mcpServers"),
        ("opencode", ".config/opencode/opencode.json", "mcp"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
        ("lmstudio", ".lmstudio/mcp.json", "mcpServers"),
        ("copilot-cli", ".copilot/mcp-config.json", "mcpServers"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="Claude Desktop has its file elsewhere")
def test_each_client_with_a_file_of_json_gets_what_it_is_told_to_paste(outside, printed, client, file, table):
    assert outside("mcp", client, "--write").returncode == 0
    assert "kb" in json.loads((outside.folder / file).read_text())[table]


def test_clients_without_a_file_of_json_get_theirs(printed):
    assert f'"uri": "{URL}"' in printed("goose")
    assert printed("open-webui").startswith(f"URL: {URL}\nAuthorization: Bearer ")


def test_writing_again_keeps_links_other_settings_and_a_copy_of_each_file(outside):
    file, link = outside.folder / "dotfiles.json", outside.folder / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to(file)
    file.write_text('{"mcpServers": null, "name": "Zoë"}')
    assert outside("mcp", "cursor", "--write").returncode == 0
    assert link.is_symlink()
    assert "Zoë" in file.read_text()
    content = json.loads(file.read_text())
    content["mcpServers"]["kb"]["disabled"] = True
    file.write_text(json.dumps(content))
    assert outside("mcp", "cursor", "--write", env={"KB_ENGINE_URL": "http://kb.example"}).returncode == 0
    server = json.loads(file.read_text())["mcpServers"]["kb"]
    assert server == {"url": "http://kb.example/mcp", "disabled": True}
    assert "null" in file.with_name("dotfiles.json.before-kb").read_text()
    assert "disabled" in file.with_name("dotfiles.json.before-kb-2").read_text()


JSON = '{"servers": {"kb": {"url": "u", "headers": {"Authorization": "B"}}}}'
TOML = '[servers.kb]\nurl = "u"\nheaders = { Authorization = "B" }'
YAML = 'servers:\n  kb: {"url": "u", "headers": {"Authorization": "B"}}'

FILES = [
    ("x.json", JSON, ""),
    ("x.json", JSON, "{}"),
    ("x.json", JSON, '{"servers": null}'),
    ("x.json", JSON, '{\n    "a": 1 // "last"\n    // more\n}'),
    ("x.json", JSON, '{"servers": {"other": {}}, "t": [1, 2,],}'),
    (
        "x.json",
        JSON,
        '\ufeff{\r\n\t"servers": {\r\n\t\t"kb": { "url": "old", // mine\r\n"enabled": false, },},\r\n}\r\n',
    ),
    ("x.json", JSON, '{"servers": {"kb": {"headers": {"X": "/* \\" // "}}}} // end'),
    ("x.toml", TOML, "# only a comment"),
    ("x.toml", TOML, '[servers.a]\nurl = "a" # c\n[tui]\nb = 1\n[servers.b]\nurl = "b"\n'),
    ("x.toml", TOML, 'servers = { a = { url = "x" } } # d'),
    (
        "x.toml",
        TOML,
        '[servers.kb]\nurl = "old" # mine\nenabled = false\n[servers.kb.headers]\nX = "y" # z\n[tui]\nq = 1',
    ),
    ("x.yaml", YAML, "# only a comment"),
    ("x.yaml", YAML, "a: b # c"),
    ("x.yaml", YAML, "servers:\nb: c # d\n"),
    ("x.yaml", YAML, "servers: {} # e\nb: c\n"),
    ("x.yaml", YAML, "servers: {a: {b: 1}}\n"),
    ("x.yaml", YAML, "a: |\n  text\n  # no comment\n"),
    ("x.yaml", YAML, "servers:\n  kb:\n    url: old # mine\n    enabled: false\n    headers: {}\n\n# f\nb: [c]\n"),
    (
        "x.yaml",
        YAML,
        "servers:\n    a:\n        args:\n        - b\n        - >-\n          c\n          d\n# g\ne: f\n",
    ),
]


@pytest.mark.parametrize(("name", "wanted", "text"), FILES)
def test_what_is_wanted_is_there_afterwards_and_nothing_written_is_lost(name, wanted, text):
    file = Path(name)
    after = merge(file, text, wanted)
    assert merge(file, after, wanted) == after
    for comment in ("last", "more", "mine", "end", "only a comment", "# c", "# d", "# e", "# f", "# g", "# z"):
        assert after.count(comment) == text.count(comment)
    assert after.count("\n") == after.count("\r\n") or "\r\n" not in text
    changed = merge(file, after, wanted.replace('"u"', '"v"'))
    assert len(changed) == len(after)
    assert changed.count("false") == text.count("false")


def test_a_new_member_is_indented_as_the_others_are():
    before = '{\n\t"servers": {\n\t\t"a": {}\n\t}\n}\n'
    after = merge(Path("x.json"), before, '{"servers": {"kb": {"url": "u"}}}')
    assert after == before.replace("{}", '{},\n\t\t"kb": {\n\t\t\t"url": "u"\n\t\t}')
    assert json.loads(after)["servers"] == {"a": {}, "kb": {"url": "u"}}


@pytest.mark.parametrize(
    ("name", "wanted", "text"),
    [
        ("x.json", JSON, "[]"),
        ("x.json", JSON, "null"),
        ("x.json", JSON, '{"servers": 3}'),
        ("x.json", JSON, '{"a": "never ends}'),
        ("x.toml", TOML, "servers = 3"),
        ("x.toml", TOML, "a ="),
        ("x.yaml", YAML, "{a: b}"),
        ("x.yaml", YAML, "a: b\na: *nowhere"),
        ("x.yaml", YAML, "a: &x {b: 1}\nservers: *x\n"),
        ("x.toml", TOML, 'servers = ""'),
        ("x.yaml", YAML, "---\n"),
        ("x.yaml", YAML, "null\n"),
        ("x.yaml", YAML, "servers: {a: {since: 2020-01-01}}\n"),
        ("x.yaml", YAML, "servers: {a: {b: 1}, # mine\n  c: {d: 1}}\n"),
        ("x.yaml", YAML, "servers:\n  kb:\n    url: |\n      old\n    headers: {}\n"),
    ],
)
def test_what_is_not_understood_is_refused(name, wanted, text):
    with pytest.raises(ValueError, match=r"."):
        merge(Path(name), text, wanted)


def test_a_comment_stays_above_the_table_that_it_is_about():
    before = '[servers.a]\nurl = "a"\n\n# my projects\n[projects]\nb = 1\n'
    after = merge(Path("x.toml"), before, TOML)
    assert after.startswith(f"{before}\n[servers.kb]\n")


def test_tables_written_with_dots_are_added_to():
    before = 'servers.a.url = "a" # mine\nz = 1\n'
    assert merge(Path("x.toml"), before, TOML).startswith(before)


def test_why_a_file_is_refused_does_not_quote_it():
    with pytest.raises(ValueError, match=r"line 2\Z") as refused:
        merge(Path("x.yaml"), 'a: b\nkey: "secret" "secret"\n', YAML)
    assert "secret" not in str(refused.value)


def write(file, content):
    for _ in range(25):
        replace_file(file, content)
    return back_up(file)


def test_several_who_write_a_file_at_once_leave_it_whole_and_for_its_owner_alone(tmp_path):
    file = tmp_path / "mcp.json"
    contents = [letter * 5000 for letter in (b"a", b"b", b"c")]
    with ThreadPoolExecutor(3) as writers:
        backups = list(writers.map(partial(write, file), contents))
    assert len(set(backups)) == len(contents)
    assert sorted(tmp_path.iterdir()) == sorted([file, *backups])
    assert all(each.read_bytes() in contents for each in (file, *backups))
    if sys.platform != "win32":
        assert all(each.stat().st_mode & 0o077 == 0 for each in (file, *backups))
