"""What is added to the files of other programs, in every way that people write these."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb_cli.agents.client_files import merge

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
    ],
)
def test_what_is_not_understood_is_refused(name, wanted, text):
    with pytest.raises(ValueError, match=r"."):
        merge(Path(name), text, wanted)
