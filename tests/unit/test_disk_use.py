"""How much room a folder takes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from threading import Event

from kb.documents.disk_use import FRESH_SECONDS, MOST_SECONDS, DiskUse, sizes


def test_the_size_of_a_folder_is_that_of_all_files_in_it_and_looked_at_now_and_then(tmp_path):
    now = [0.0]
    use = DiskUse(partial(sizes, tmp_path), clock=lambda: now[0])
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(b"x" * 300)
    (tmp_path / "two").write_bytes(b"x" * 20)
    assert use.size() == 320
    (tmp_path / "three").write_bytes(b"x")
    assert use.size() == 320
    now[0] = FRESH_SECONDS
    assert use.size() == 321


def test_a_folder_of_very_many_files_has_no_size_and_one_that_is_not_there_none_either(tmp_path):
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"x")
    assert DiskUse(partial(sizes, tmp_path), most=4).size() == 4
    assert DiskUse(partial(sizes, tmp_path), most=3).size() is None
    assert DiskUse(partial(sizes, tmp_path / "absent")).size() == 0
    assert DiskUse(None).size() is None


def test_a_folder_that_takes_long_to_look_through_has_no_size(tmp_path):
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"x")
    assert DiskUse(partial(sizes, tmp_path), clock=count(step=MOST_SECONDS / 10).__next__).size() == 4
    assert DiskUse(partial(sizes, tmp_path), clock=count(step=MOST_SECONDS).__next__).size() is None


def test_while_a_folder_is_looked_through_nobody_else_waits_for_it():
    begun, may_end = Event(), Event()

    def slow():
        begun.set()
        assert may_end.wait(60)
        yield 5

    use = DiskUse(slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(use.size)
        try:
            assert begun.wait(60)
            assert pool.submit(use.size).result(timeout=30) is None
        finally:
            may_end.set()
    assert use.size() == first.result() == 5
