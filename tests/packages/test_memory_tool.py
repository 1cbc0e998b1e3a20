"""Anthropic's memory tool on kb answers as Anthropic's own one on a folder (`make packages`)."""

from __future__ import annotations

import re

import pytest

from tests.conftest import KEY

pytest.importorskip("anthropic", reason="make packages installs it")
pytestmark = pytest.mark.filterwarnings("default")

SIZE = re.compile(r"^[\d.]+[BKMG]\t", re.MULTILINE)
"""The size before each path in a list; a folder's is a matter of the disk."""

NOTES = "Kiln\nfired on Fridays\nat six\nby Ben\nsince May"
CALLS = [
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/none.md"},
    {"command": "create", "path": "/memories/kiln.md", "file_text": NOTES},
    {"command": "create", "path": "/memories/kiln.md", "file_text": "again"},
    {"command": "create", "path": "/memories/people/ben/likes.md", "file_text": "short answers\n"},
    {"command": "create", "path": "/memories/people/anna.md", "file_text": "Anna\nAnna likes tea\n"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/people"},
    {"command": "view", "path": "/memories/kiln.md"},
    {"command": "view", "path": "/memories/kiln.md", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/kiln.md", "view_range": [4, -1]},
    {"command": "view", "path": "/memories/people/anna.md"},
    {"command": "str_replace", "path": "/memories/kiln.md", "old_str": "at six", "new_str": "at seven\nin winter"},
    {"command": "str_replace", "path": "/memories/kiln.md", "old_str": "at noon", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/people/anna.md", "old_str": "Anna", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/none.md", "old_str": "a", "new_str": "b"},
    {"command": "str_replace", "path": "/memories/people", "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": "/memories/kiln.md", "insert_line": 0, "insert_text": "# The kiln\n"},
    {"command": "insert", "path": "/memories/kiln.md", "insert_line": 7, "insert_text": "to the end"},
    {"command": "insert", "path": "/memories/kiln.md", "insert_line": 99, "insert_text": "x"},
    {"command": "insert", "path": "/memories/none.md", "insert_line": 0, "insert_text": "x"},
    {"command": "view", "path": "/memories/kiln.md"},
    {"command": "rename", "old_path": "/memories/kiln.md", "new_path": "/memories/work/kiln.md"},
    {"command": "rename", "old_path": "/memories/people", "new_path": "/memories/team"},
    {"command": "rename", "old_path": "/memories/none.md", "new_path": "/memories/other.md"},
    {"command": "rename", "old_path": "/memories/team", "new_path": "/memories/work"},
    {"command": "view", "path": "/memories"},
    {"command": "delete", "path": "/memories/team/anna.md"},
    {"command": "delete", "path": "/memories/none.md"},
    {"command": "delete", "path": "/memories"},
    {"command": "delete", "path": "/memories/work"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/etc/passwd"},
    {"command": "create", "path": "/memories/../escape.md", "file_text": "x"},
]


@pytest.fixture
def tool(start_server, tmp_path):
    from kb_memory.memory_tool import KbMemoryTool

    with start_server(tmp_path / "data", KB_API_KEY=KEY) as server:
        yield KbMemoryTool(server.url, KEY)


def said(tool, call):
    from anthropic.lib.tools import ToolError

    try:
        return SIZE.sub("", tool.call(call))
    except ToolError as error:
        return f"refused: {error}"


def test_it_answers_as_the_one_on_a_folder(tool, tmp_path):
    from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

    reference = BetaLocalFilesystemMemoryTool(str(tmp_path / "reference"))
    for call in CALLS:
        assert said(tool, call) == said(reference, call), call


def test_a_file_is_a_note_with_a_history_and_two_programs_do_not_overwrite_each_other(tool):
    from anthropic.lib.tools import ToolError

    tool.call({"command": "create", "path": "/memories/kiln.md", "file_text": "fired on Fridays"})
    document = tool._engine.at("/memories/kiln.md")
    tool.call({"command": "str_replace", "path": "/memories/kiln.md", "old_str": "Fridays", "new_str": "Mondays"})
    [found] = tool._engine.search("when is the kiln fired", 1, {})
    assert found["text"] == "fired on Mondays"
    history = tool._engine._call("GET", f"documents/{document['id']}/history")["versions"]
    assert [version["number"] for version in history] == [2, 1]
    with pytest.raises(Exception, match="changed"):
        tool._engine.change(document, "an old edit")
    with pytest.raises(ToolError, match="cannot be empty"):
        tool.call({"command": "create", "path": "/memories/empty.md", "file_text": ""})
    for path in ("/memories/..", "/memories/a/../../b", "/memoriesx/a", "/memories/a\\..\\b", "/memories/\u0000"):
        with pytest.raises(ToolError):
            tool.call({"command": "create", "path": path, "file_text": "x"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert list(tool._engine.below("/memories/")) == []
