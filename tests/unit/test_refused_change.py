"""What is said of a change that came too late."""

from __future__ import annotations

import threading

from kb.api.errors import Changed
from kb_mcp.tools import changes
from kb_mcp.tools.changes import refused_change


async def test_long_texts_are_compared_while_others_are_answered(monkeypatch):
    threads = []

    def difference(before: str, after: str) -> str:
        threads.append(threading.current_thread())
        return f"-{before}\n+{after}"

    monkeypatch.setattr(changes, "difference", difference)
    error = Changed(extra={"text": "there", "content_hash": "0" * 64})
    refused = await refused_change(None, 7, error, "mine", "")
    assert "-there\n+mine" in str(refused)
    assert threads != [threading.main_thread()]
