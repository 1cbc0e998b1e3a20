"""Vectors that are made anew while the disk is full or bad for a moment."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace

import pytest

from kb.api.errors import DiskFault, DiskFull
from kb.worker.reembed import Reembedder
from tests.support.eventually import eventually


class Store:
    """A database whose second vectors are wanted."""

    is_shared = False

    def __init__(self):
        second = SimpleNamespace(state="building", space="second")
        vectors = SimpleNamespace(get=lambda: second, counts=lambda: (0, 2), take=lambda: True)
        self._tx = SimpleNamespace(space="first", second=vectors)

    @contextmanager
    def read(self):
        yield self._tx

    write = read


@pytest.mark.parametrize("fault", [DiskFull, DiskFault])
def test_a_fault_of_the_disk_is_told_until_the_work_goes_on(monkeypatch, fault):
    is_mended, may_end = Event(), Event()

    class Builder:
        done, total = 0, 2

        def __init__(self, store, space, embedder, on_progress, check):
            self._on_progress = on_progress

        def build(self):
            if not is_mended.is_set():
                raise fault
            self._on_progress(1, 2)
            assert may_end.wait(60)

    monkeypatch.setattr("kb.worker.reembed.VectorBuilder", Builder)
    monkeypatch.setattr("kb.worker.reembed.open_model_of", lambda *_: None)
    monkeypatch.setattr("kb.worker.reembed.RETRY_SECONDS", 0.01)
    model = SimpleNamespace(models=[], announce=lambda _: None, use=lambda _: None)
    reembedder = Reembedder(Store(), None, "second", model)
    reembedder.resume()
    try:
        eventually("the fault is told", lambda: reembedder.progress().error, lambda error: error == fault().detail)
        is_mended.set()
        eventually("it goes on", lambda: reembedder.progress().error, lambda error: error is None)
    finally:
        may_end.set()
        reembedder.close()
