"""A few phrases are wrong in every text. Everything else about style is for the ear (CONTRIBUTING.md, "How we write texts")."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = {  # pattern: a text with the slip, and what to write
    r"\b(allow|allows|permit|permits|enable|enables) to \w+": ("It allows to search.", "allows you to, or lets you"),
    r"\b(informations|datas|softwares|advices)\b": ("The softwares that read it.", "no plural"),
    r"\b(anew|hitherto|whence|thereby|therein)\b": ("The vectors are made anew.", "again, until now, where, so, in it"),
    r"\b(is|are|was) no (regular )?(file|folder|key|number|database|address|document|note)\b": (
        "It is no regular file.",
        "is not a",
    ),
    r"\b(changed|added|deleted|used) the last\b|\b[Tt]he last (added|changed|deleted)\b": (
        "The last changed note comes first.",
        "most recently changed",
    ),
    r"\b(has|have) \d[\d,.]* ?[kMG]B\b": ("Its image has 436 MB.", "is 436 MB, or takes 436 MB"),
    r"\b(to|by) nobody\b": ("kb sends them to nobody.", "never … to anyone"),
    r"\b[Ss]ome \d+\b(?! of)": ("It takes some 10 ms.", "about 10"),
    r"(?<![\w.\])/-])\.\d+(?![\d.]*\w)": ("It finds .996 of them.", "0.996"),
    r"\d %(?!\w)": ("It finds 95 % of them.", "95%"),
    r"\bdata director(y|ies)\b": ("The engine locks its data directory.", "data folder"),
    r"\bdiscuss about\b|\bconsists in\b|\bin the same time\b": (
        "We discuss about it.",
        "discuss, consists of, at the same time",
    ),
}
NOT_PROSE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->", re.DOTALL)


def prose(path):
    """Return the texts for people in a page, or the longer strings of a module."""
    content = (ROOT / path).read_text()
    if path.endswith(".md"):
        return NOT_PROSE.sub(" ", content)
    strings = (node.value for node in ast.walk(ast.parse(content)) if isinstance(node, ast.Constant))
    return "\n\n".join(value for value in strings if isinstance(value, str) and " " in value)


def slips(text):
    return [f"{match[0]!r}: {better}" for wrong, (_, better) in WRONG.items() for match in re.finditer(wrong, text)]


@pytest.mark.parametrize(("wrong", "sample"), [(wrong, sample) for wrong, (sample, _) in WRONG.items()])
def test_each_pattern_finds_its_sample(wrong, sample):
    assert re.search(wrong, sample)


def test_no_page_and_no_message_contains_a_phrase_that_is_always_wrong():
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "src/*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]
    assert {path: found for path in paths if (found := slips(prose(path)))} == {}
