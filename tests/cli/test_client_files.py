"""What is added to the files of other programs, in every way that people write these."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from kb_cli.agents.client_files import merge
from kb_cli.runtime.files import back_up, replace_file

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
