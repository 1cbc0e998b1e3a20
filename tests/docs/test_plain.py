"""The lint of the style sheet finds the turns of phrase that it lists, in every kind of text, and nothing else."""

from __future__ import annotations

import tomllib

import pytest

from tests.docs import plain

CONFIG = tomllib.loads(plain.CONFIG.read_text())
PATTERNS = {each["name"]: each for each in CONFIG["pattern"]}
BAD = "It is no file."
FILES = {
    "docs/page.md": f"# Page\n\n`is no code`\n\n```sh\necho is no code\n```\n{BAD}\n",
    "docs/adr/0001-x.md": f"\n\n\n\n\n\n\n{BAD}\n",
    "src/kb/x.py": f'is_no = 1\n\n\nx = "none"\n\n\n\nraise ValueError(f"{BAD} {{x}}")\n',
    "src/kb/y.py": "x = 1\n\n\n\n\n\n\n# A comment: it is\n# no file.\n",
    "src/kb/x.sql": "SELECT 'is no comment';\n\n\n\n\n\n\n-- It is\n-- no file.\n",
    "src/kb_web/templates/x.html": f"{{# is no text #}}\n\n\n\n\n\n\n<p>{BAD}</p>\n",
    "src/kb_web/templates/attribute.html": f'<p class="is no text">\n\n\n\n\n\n\n<input placeholder="{BAD}" value="is no text">\n',
    "src/kb_web/templates/call.html": f'{{% if x is none %}}\n\n\n\n\n\n\n{{{{ act("a" if x is none else "{BAD}") }}}}\n',
    "src/kb_web/templates/tag.html": f'<a href="/{{% if x > 1 %}}#{{{{ x }}}}{{% endif %}}">\n\n\n\n\n\n\n{BAD}</a>\n',
    "src/kb_web/static/x.js": f'let x = isNo;\n\n\n\n\n\n\nalert("{BAD}");\n',
    "src/kb_cli/agents/skill.md": f"\n\n\n\n\n\n\n{BAD}\n",
    "compose/compose.yaml": f"x: is no comment\n\n\n\n\n\n\ny: 1 # {BAD}\n",
    "systemd/kb.service": f"[Unit]\n\n\n\n\n\n\nDescription={BAD}\n",
    "Makefile": f'x:\n\ttrue is no text\n\n\n\n\n\n\t@echo "{BAD}"\n',
}


def found(path, content, **config):
    return list(plain.Rules({"pattern": CONFIG["pattern"], **config}).hits(path, content))


def of_group(pattern, text):
    path = {"docs": "docs/page.md", "program": "src/kb_cli/agents/skill.md", "adr": "docs/adr/0001-x.md"}
    return [each["name"] for _, _, each in found(path[pattern.get("in", ["docs"])[0]], text)]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_finds_its_bad_line_and_not_its_good_one(name):
    assert name in of_group(PATTERNS[name], PATTERNS[name]["bad"])
    assert of_group(PATTERNS[name], PATTERNS[name]["good"]) == []


@pytest.mark.parametrize("path", FILES)
def test_texts_are_found_in_every_kind_of_file_with_their_line_and_code_is_not(path):
    [(line, words, pattern)] = found(path, FILES[path])
    assert (line, words, pattern["name"]) == (8, "is no", "is no")


def test_a_phrase_is_found_across_the_end_of_a_line_and_not_across_a_paragraph():
    assert found("docs/page.md", "It is\nno file.\n")
    assert not found("docs/page.md", "It is\n\nno file.\n")


def test_an_exception_covers_its_words_in_its_files_and_is_noted_as_used():
    allow = [{"file": "docs/*.md", "text": "is no file", "why": "a quotation"}]
    assert not found("docs/page.md", BAD, allow=allow)
    assert found("docs/page.md", "It is no folder.", allow=allow)
    assert found("README.md", BAD, allow=allow)


def run(monkeypatch, tmp_path, content, config, *arguments):
    monkeypatch.setattr(plain, "ROOT", tmp_path)
    monkeypatch.setattr(plain, "CONFIG", tmp_path / "plain.toml")
    monkeypatch.setattr(plain, "checked_files", lambda: ["README.md"])
    (tmp_path / "README.md").write_text(content)
    patterns = plain.CONFIG.parent / "plain.toml"
    if config is not None:
        patterns.write_text('[[pattern]]\nname = "is no"\nfind = "is no"\nwrite = "is not a"\n\n' + config)
    return plain.main(list(arguments))


def test_one_hit_more_than_the_ceiling_fails_and_says_where_and_what_to_write(monkeypatch, tmp_path, capsys):
    ceiling = '[ceiling]\n"README.md" = 1\n'
    assert run(monkeypatch, tmp_path, "It is no file.", ceiling) == 0
    assert run(monkeypatch, tmp_path, "It is no file.\nIt is no folder.", ceiling) == 1
    assert "README.md:2: 'is no' (is no): is not a" in capsys.readouterr().out


def test_ceilings_are_lowered_and_never_raised(monkeypatch, tmp_path):
    two = "It is no file.\nIt is no folder."
    run(monkeypatch, tmp_path, two, '[ceiling]\n"README.md" = 5\n', "--lower")
    assert run(monkeypatch, tmp_path, two, None) == 0
    assert run(monkeypatch, tmp_path, two + "\nIt is no disk.", None, "--lower") == 0
    assert run(monkeypatch, tmp_path, two + "\nIt is no disk.", None) == 1
    run(monkeypatch, tmp_path, "It is a file.", None, "--lower")
    assert "ceiling" not in (tmp_path / "plain.toml").read_text()


def test_an_exception_that_no_longer_matches_fails(monkeypatch, tmp_path, capsys):
    allow = '[[allow]]\nfile = "README.md"\ntext = "is no file"\nwhy = "a quotation"\n'
    assert run(monkeypatch, tmp_path, "It is no file.", allow) == 0
    assert run(monkeypatch, tmp_path, "It is a file.", allow) == 1
    assert "'is no file' in README.md matches nothing" in capsys.readouterr().out
