from __future__ import annotations

from typing import get_args

import pytest

from kb.api import models
from kb.client import client
from kb_cli.commands.jobs import Status


def test_the_states_of_jobs_are_the_engines():
    assert get_args(Status) == get_args(models.JobStatus)
    assert set(client.ENDED) == models.ENDED


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("kb list --type mark", ["markdown"]),
        ("kb jobs --status r", ["running"]),
        ("kb mcp cur", ["cursor"]),
        ("kb jobs d", ["drop", "dismiss"]),
        ("kb jobs dismiss d", []),
        ("kb keys ro", ["rotate"]),
        ("kb backup v", ["verify"]),
        ("kb service u", ["uninstall"]),
        ("kb reembed ro", ["rollback"]),
    ],
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
