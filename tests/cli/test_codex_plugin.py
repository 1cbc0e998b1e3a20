"""kb mcp codex --plugin: what Codex takes in, calls with its events and reads."""

from __future__ import annotations

import json
import subprocess

import pytest
from jsonschema import validate

from kb_cli.agents.session import read_session
from tests.support.eventually import eventually

SESSION = "01a20414-2832-7322-8b44-12f3eefe7d20"
HANDLER = {
    "type": "object",
    "required": ["type", "command"],
    "properties": {
        "type": {"const": "command"},
        "command": {"type": "string", "minLength": 1},
        "timeout": {"type": "integer", "minimum": 0},
    },
}
GROUP = {"type": "object", "required": ["hooks"], "properties": {"hooks": {"type": "array", "items": HANDLER}}}
HOOKS = {
    "type": "object",
    "required": ["hooks"],
    "additionalProperties": False,
    "properties": {
        "hooks": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"enum": ["SessionStart", "PreCompact", "SessionEnd"]},
            "additionalProperties": {"type": "array", "minItems": 1, "items": GROUP},
        }
    },
}
"""Of the hooks file of Codex, what kb may write."""
TOLD = {
    "type": "object",
    "required": ["hookSpecificOutput"],
    "additionalProperties": False,
    "properties": {
        "hookSpecificOutput": {
            "type": "object",
            "required": ["hookEventName"],
            "additionalProperties": False,
            "properties": {"hookEventName": {"const": "SessionStart"}, "additionalContext": {"type": "string"}},
        }
    },
}
"""Of what Codex reads of a hook at the start, what kb may say; it refuses fields that it does not know."""


def message(role, *texts, kind="input_text"):
    content = [{"type": kind, "text": text} for text in texts]
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}


ROLLOUT = [
    {"type": "session_meta", "payload": {"id": SESSION, "base_instructions": {"text": "You are a coding agent."}}},
    {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "t1"}},
    message("developer", "<skills_instructions>\nkb\n</skills_instructions>"),
    message(
        "user",
        "# AGENTS.md instructions for /home/ann/walrus\n\n<INSTRUCTIONS>\nBe kind.\n\n</INSTRUCTIONS>",
        "<environment_context>\n  <cwd>/home/ann/walrus</cwd>\n</environment_context>",
    ),
    message("user", "Where does the walrus sleep?"),
    {
        "type": "event_msg",
        "payload": {"type": "item_completed", "item": {"type": "UserMessage", "content": [{"type": "text"}]}},
    },
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": "a listing"}},
    {"type": "response_item", "payload": {"type": "reasoning", "summary": [], "content": None}},
    message("assistant", "On the ice.", kind="output_text"),
    message("user", "<turn_aborted>\nThe user interrupted.\n</turn_aborted>"),
]
"""A session as Codex keeps it."""


@pytest.fixture
def rollout(tmp_path):
    file = tmp_path / f"rollout-2026-11-22T16-25-59-{SESSION}.jsonl"
    file.write_text("".join(json.dumps({"timestamp": "2026-11-22T16:25:59Z"} | line) + "\n" for line in ROLLOUT))
    return file


@pytest.fixture
def hooks(kb, tmp_path):
    """Runs the hook of an event with what Codex sends, as Codex does: by a shell."""
    folder = tmp_path / "my plug-in"
    assert kb("mcp", "codex", "--plugin", folder, "--capture").returncode == 0
    written = json.loads((folder / "hooks/hooks.json").read_text())
    validate(written, HOOKS)

    def run(event, **fields):
        [group] = written["hooks"][event]
        [handler] = group["hooks"]
        sent = {"cwd": "/home/ann/walrus", "hook_event_name": event, "session_id": SESSION, **fields}
        return subprocess.run(
            *(handler["command"],),
            shell=True,
            input=json.dumps(sent),
            env=kb.environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_the_folder_is_a_plugin_of_codex_and_the_list_that_names_it(kb, tmp_path):
    folder = tmp_path / "my plug-in"
    made = kb("mcp", "codex", "--plugin", folder, "--capture")
    assert f"codex plugin marketplace add '{folder}' && codex plugin add kb@kb" in made.stdout
    assert "/hooks" in made.stdout
    listed = json.loads((folder / ".agents/plugins/marketplace.json").read_text())
    [plugin] = listed["plugins"]
    assert f"{plugin['name']}@{listed['name']}" == "kb@kb"
    manifest = folder / plugin["source"]["path"] / ".codex-plugin/plugin.json"
    assert json.loads(manifest.read_text())["name"] == plugin["name"]
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    [[ending]] = [group["hooks"] for group in hooks["SessionEnd"]]
    assert ending["timeout"] == 3, "Codex waits no longer at the end, and warns of more"


def test_the_users_own_hooks_and_settings_of_codex_stay_as_they_are(kb, tmp_path):
    own = tmp_path / "codex"
    own.mkdir()
    (own / "hooks.json").write_text('{"hooks": {}}')
    made = kb("mcp", "codex", "--plugin", tmp_path / "plugin", env={"CODEX_HOME": str(own)})
    assert made.returncode == 0
    assert {file.name: file.read_text() for file in own.iterdir()} == {"hooks.json": '{"hooks": {}}'}


def test_codex_is_told_the_brief_at_the_start_and_its_session_is_kept(kb, hooks, rollout, tag):
    started = {"model": "gpt-5", "permission_mode": "default", "source": "startup", "transcript_path": None}
    told = hooks("SessionStart", **started, session_id=tag)
    assert (told.returncode, told.stderr) == (0, "")
    validate(json.loads(told.stdout), TOLD)
    assert "kb_search finds passages" in told.stdout
    compacting = {"turn_id": "t1", "model": "gpt-5", "trigger": "auto"}
    for event, fields in (("PreCompact", compacting), ("SessionEnd", {"reason": "other"})):
        kept = hooks(event, **fields, session_id=tag, transcript_path=str(rollout))
        assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "")
    [document] = eventually(
        "the session is kept",
        lambda: [each for each in kb.json("list")["documents"] if each["source_path"] == f"session/{tag}"],
    )
    assert kb("get", document["id"], "--text").stdout.strip() == read_session(rollout)
    again = hooks("SessionStart", **started | {"source": "compact"}, session_id=tag)
    assert (
        f"document {document['id']}: kb_get reads it"
        in json.loads(again.stdout)["hookSpecificOutput"]["additionalContext"]
    )


def test_what_a_subagent_of_a_session_said_does_not_take_the_place_of_the_session(kb, hooks, rollout, tag):
    own = {"agent_id": "a1", "agent_type": "explorer", "turn_id": "t1", "model": "gpt-5", "trigger": "auto"}
    before = kb.json("jobs")
    kept = hooks("PreCompact", **own, session_id=tag, transcript_path=str(rollout))
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "")
    assert kb.json("jobs") == before


def test_of_a_session_of_codex_is_kept_what_user_and_agent_said_and_nothing_that_codex_says_for_them(rollout):
    assert read_session(rollout) == "**User:** Where does the walrus sleep?\n\n**Assistant:** On the ice."
