"""Looks at the folder of a file, whose disk may be away."""

from __future__ import annotations

import asyncio
import threading

from kb_web import documents


def test_a_disk_that_does_not_respond_takes_one_thread_however_often_pages_are_opened(monkeypatch):
    back = threading.Event()
    monkeypatch.setattr(documents, "DISK_SECONDS", 0.01)
    monkeypatch.setattr(documents, "is_vault", lambda _: back.wait())

    async def open_pages() -> list[bool]:
        return [await documents.is_seen_as_vault("/away") for _ in range(20)]

    try:
        assert asyncio.run(open_pages()) == [False] * 20
        assert sum(thread.name == "kb-vault" for thread in threading.enumerate()) == 1
    finally:
        back.set()


def test_a_folder_in_a_vault_is_seen(tmp_path):
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / "deep").mkdir()
    assert asyncio.run(documents.is_seen_as_vault(str(tmp_path / "deep")))
    assert not asyncio.run(documents.is_seen_as_vault("not a\0path"))
