"""Requests wait a bounded time for their turn, and each client gets its share."""

from __future__ import annotations

import asyncio
import math
import random
import selectors

import pytest

from kb.api.errors import Busy
from kb.asgi.error_replies import problem
from kb.routes.admission import LEAST_SECONDS, MOST_CLIENTS, RECENT_SECONDS, TYPICAL_SECONDS, Admission


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class VirtualSelector(selectors.SelectSelector):
    """Lets the time of its loop pass at once."""

    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0
        return super().select(0)


def run(clients, seconds, patience=math.inf):
    """Run clients against one queue in virtual time, so many seconds.

    Each client has a name, the time that its turns take, its pause between two requests, and a list for its waits.
    """
    selector, chance = VirtualSelector(), random.Random(1)
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now
    queue = Admission(1000, 2, clock=loop.time, patience=patience)

    async def client(name, work, pause, waits):
        while loop.time() < seconds:
            await asyncio.sleep(pause * chance.uniform(0.7, 1.3))
            begun = loop.time()
            try:
                async with queue.turn({}, name):
                    await asyncio.sleep(work * chance.uniform(0.5, 1.5))
                waits.append(loop.time() - begun)
            except Busy as refusal:
                await asyncio.sleep(refusal.retry_after)

    async def together():
        await asyncio.gather(*(client(*each) for each in clients))

    loop.run_until_complete(together())
    loop.close()


def waits_of_ten(costly):
    """How long ten clients with cheap requests wait beside a client with so many expensive ones."""
    waits = []
    run([*((f"cheap {number}", 0.015, 0.3, waits) for number in range(10)), *[("costly", 0.2, 0, [])] * costly], 15)
    return sorted(waits)


async def order_of(requests, at_once=1):
    """The clients in the order in which their requests run, if (client, seconds) come at once."""
    clock, order = Clock(), []
    queue = Admission(1000, at_once, clock=clock)

    async def request(client, seconds):
        async with queue.turn({}, client):
            order.append(client)
            clock.now += seconds
            await asyncio.sleep(0)

    await asyncio.gather(*(request(client, seconds) for client, seconds in requests))
    return order


async def test_a_client_with_many_requests_does_not_hold_up_another_one():
    order = await order_of([("many", 1)] * 50 + [("few", 1)] * 2)
    assert [place for place, client in enumerate(order) if client == "few"][-1] <= 4


async def test_a_client_with_expensive_requests_gets_the_same_time_and_not_the_same_number():
    order = await order_of([("costly", 10)] * 5 + [("cheap", 1)] * 20)
    assert order[:12].count("cheap") >= 10


async def test_a_client_alone_is_served_in_order_and_later_ones_are_not_punished_for_its_past():
    clock = Clock()
    queue, order = Admission(1000, 1, clock=clock), []
    for _ in range(20):
        async with queue.turn({}, "old"):
            clock.now += 5

    async def request(client):
        async with queue.turn({}, client):
            order.append(client)
            clock.now += 1

    await asyncio.gather(request("old"), request("new"), request("old"), request("new"))
    assert order.index("new") <= 1
    assert order.index("old") <= 2


def test_ten_clients_beside_one_with_expensive_requests_wait_at_most_twice_as_long():
    alone, beside = (waits[int(len(waits) * 0.95)] for waits in (waits_of_ten(0), waits_of_ten(4)))
    assert beside <= 2 * alone


def test_no_accepted_request_waits_much_longer_than_the_bound_although_other_clients_used_less():
    waits = []
    run([(str(number), 0.03, 0, waits) for number in range(200)], 30, patience=1.0)
    assert len(waits) > 1000
    assert max(waits) <= 1.5


def test_a_client_with_expensive_requests_gets_no_turn_for_waiting_long():
    costly, cheap = [], []
    run([("costly", 0.5, 0, costly)] * 4 + [(str(number), 0.03, 0, cheap) for number in range(100)], 30, patience=1.0)
    assert len(costly) * 0.5 <= 0.1 * 2 * 30


async def test_a_client_has_all_turns_only_while_it_is_alone():
    clock, go = Clock(), asyncio.Event()
    queue, running = Admission(1000, 2, clock=clock), []

    async def request(client):
        async with queue.turn({}, client):
            running.append(client)
            await go.wait()

    async with asyncio.TaskGroup() as group:
        for client in ("costly", "costly", "costly"):
            group.create_task(request(client))
        await asyncio.sleep(0)
        assert running == ["costly", "costly"]
        go.set()
    running.clear()
    go.clear()
    async with queue.turn({}, "other"):
        pass
    async with asyncio.TaskGroup() as group:
        for client in ("costly", "costly", "costly", "other"):
            group.create_task(request(client))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sorted(running) == ["costly", "other"]
        go.set()
    assert sorted(running) == ["costly", "costly", "costly", "other"]
    running.clear()
    go.clear()
    clock.now += 2 * RECENT_SECONDS
    async with asyncio.TaskGroup() as group:
        for client in ("costly", "costly"):
            group.create_task(request(client))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert running == ["costly", "costly"]
        go.set()


async def test_a_request_that_would_wait_too_long_is_refused_at_once_and_told_when_to_return():
    queue, go = Admission(1000, 1, patience=1.0), asyncio.Event()

    async def request(client):
        async with queue.turn({}, client):
            await go.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(1 + round(1.0 / TYPICAL_SECONDS)):
            group.create_task(request("a"))
        await asyncio.sleep(0)
        with pytest.raises(Busy) as refused:
            await request("a")
        assert int(problem(refused.value).headers["Retry-After"]) >= 1
        assert queue.refused == 1
        group.create_task(request("b"))  # the share of another client is free
        await asyncio.sleep(0)
        assert queue.refused == 1
        go.set()


async def test_a_request_that_is_given_up_takes_no_turn():
    queue, go = Admission(1000, 1), asyncio.Event()

    async def request():
        async with queue.turn({}, "a"):
            await go.wait()

    tasks = [asyncio.create_task(request()) for _ in range(4)]
    await asyncio.sleep(0)
    for task in tasks[1:3]:
        task.cancel()
    tasks[0].cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    go.set()
    await asyncio.wait_for(tasks[3], 1)
    assert not queue.is_crowded


async def test_the_expected_time_follows_the_turns_but_no_single_one():
    clock = Clock()
    queue = Admission(1000, 1, clock=clock)
    for seconds, bound in [(1000, 1), (0, 1)]:
        async with queue.turn({}, "a"):
            clock.now += seconds
        assert queue._clients["a"].seconds < bound
    for _ in range(100):
        async with queue.turn({}, "a"):
            clock.now += 2
    assert queue._clients["a"].seconds == pytest.approx(2, rel=0.01)
    for _ in range(200):
        async with queue.turn({}, "a"):
            pass
    assert queue._clients["a"].seconds < LEAST_SECONDS


async def test_clients_without_requests_are_forgotten():
    queue = Admission(10_000, 1)
    for number in range(MOST_CLIENTS + 50):
        async with queue.turn({}, str(number)):
            pass
    assert len(queue._clients) <= MOST_CLIENTS + 1
