"""Writes for which somebody waits go before others, but not endlessly."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from kb.store.write_turns import MOST_URGENT, WriteTurns
from tests.support.eventually import eventually


def order_of(kinds):
    """The order in which writes of these kinds go that came, in this order, during another one."""
    turns, order, lock = WriteTurns(), [], threading.Lock()

    def write(kind):
        with turns.turn(urgent=kind == "urgent"), lock:
            order.append(kind)

    with ThreadPoolExecutor(len(kinds)) as threads, turns.turn():
        for number, kind in enumerate(kinds, 1):
            threads.submit(write, kind)
            eventually(
                "it waits", lambda: sum(turns._waiting.values()), lambda waiting, number=number: waiting == number
            )
    return order


def test_an_urgent_write_goes_before_ordinary_ones():
    assert order_of(["ordinary"] * 3 + ["urgent"]) == ["urgent"] + ["ordinary"] * 3


def test_an_ordinary_write_goes_after_a_few_urgent_ones():
    order = order_of(["urgent"] * 3 * MOST_URGENT + ["ordinary"] * 2)
    assert order == ([*["urgent"] * MOST_URGENT, "ordinary"] * 2 + ["urgent"] * MOST_URGENT)


def test_no_two_write_at_once_and_an_error_ends_a_turn():
    turns, writing = WriteTurns(), []

    def write(number):
        try:
            with turns.turn(urgent=number % 2 == 0):
                writing.append(1)
                assert len(writing) == 1
                writing.pop()
                if number % 3 == 0:
                    raise ValueError
        except ValueError:
            return True
        return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(write, range(300))) == 100
