from __future__ import annotations

from typing import get_args

import pytest

from kb.api.models import JobStatus
from kb.formats.registry import READERS
from kb_cli.commands.jobs import Status
from kb_cli.runtime.completion import TYPES


def test_the_types_and_states_that_are_offered_are_the_engines():
    assert sorted([*READERS, "note"]) == list(TYPES)
    assert get_args(Status) == get_args(JobStatus)


@pytest.mark.parametrize(
    ("words", "offered"),
    [("kb list --type mark", ["markdown"]), ("kb jobs --status r", ["running"]), ("kb mcp cur", ["cursor"])],
)
def test_values_are_completed(outside, words, offered):
    env = {"_KB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert outside(env=env).stdout.split() == offered


def test_tags_are_completed_behind_a_comma_and_a_silent_engine_offers_none(kb, outside, tag):
    kb.note(tag, "--tags", tag)
    env = {"_KB_COMPLETE": "complete_bash", "COMP_WORDS": f"kb search --tags a,{tag[:8]}", "COMP_CWORD": "3"}
    assert kb(env=env).stdout.split() == [f"a,{tag}"]
    ended = outside(env=env | {"KB_ENGINE_URL": "http://127.0.0.1:9"})
    assert (ended.stdout.split(), ended.stderr) == ([], "")
