"""Waiting for the end of a job: nobody is forgotten, and nobody waits for long when the engine stops."""

from __future__ import annotations

import asyncio
import threading
import time
from random import Random

import pytest

from kb.worker.job_ends import JobEnds

JOBS, WAITERS = 200, 5


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


async def wait_for(ends, job_id, ended):
    """As the routes do: subscribe, look, wait, look again."""
    deadline = asyncio.get_running_loop().time() + 60
    with ends.subscribe(job_id) as subscription:
        while job_id not in ended and await subscription.wait(deadline):
            pass
    return job_id in ended


@pytest.mark.parametrize("seed", range(3))
async def test_no_end_is_missed_however_waiting_and_ending_meet(seed):
    ends, ended, chance = JobEnds(), set(), Random(seed)
    jobs = list(range(JOBS))
    chance.shuffle(jobs)

    def work(own):
        for job_id in own:
            time.sleep(chance.random() / 1000)
            ended.add(job_id)  # what became of it is in the store
            ends.publish(job_id)

    async def begin_late(job_id):
        await asyncio.sleep(chance.random() / 10)
        return await wait_for(ends, job_id, ended)

    threads = [threading.Thread(target=work, args=(jobs[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(30):
        heard = await asyncio.gather(*(begin_late(job_id) for job_id in range(JOBS) for _ in range(WAITERS)))
    for thread in threads:
        thread.join()
    assert heard == [True] * JOBS * WAITERS


async def test_an_end_wakes_those_who_wait_for_this_job_alone():
    ends, ended = JobEnds(), set()
    one, two = (asyncio.create_task(wait_for(ends, job_id, ended)) for job_id in (1, 2))
    await asyncio.sleep(0)
    ended.add(1)
    await asyncio.to_thread(ends.publish, 1)
    assert await one
    assert not two.done()
    two.cancel()


async def test_a_job_that_was_begun_again_is_waited_for_on():
    ends, ended = JobEnds(), set()
    waiter = asyncio.create_task(wait_for(ends, 1, ended))
    await asyncio.sleep(0)
    ends.publish(1)  # it failed, and was retried before anyone looked
    await asyncio.sleep(0.01)
    assert not waiter.done()
    ended.add(1)
    ends.publish(1)
    assert await waiter


async def test_who_waits_is_woken_when_the_engine_stops_and_who_comes_later_does_not_wait():
    ends = JobEnds()
    waiters = [asyncio.create_task(wait_for(ends, job_id, set())) for job_id in range(5)]
    await asyncio.sleep(0)
    await asyncio.to_thread(ends.close)
    async with asyncio.timeout(30):
        assert await asyncio.gather(*waiters) == [False] * 5
        assert not await wait_for(ends, 9, set())


async def test_no_wait_is_longer_than_its_deadline():
    ends = JobEnds()
    with ends.subscribe(1) as subscription:
        assert not await subscription.wait(asyncio.get_running_loop().time() + 0.01)


def test_who_left_with_his_event_loop_does_not_disturb_an_end():
    ends = JobEnds()
    loop = asyncio.new_event_loop()

    async def subscribe():
        context = ends.subscribe(1)
        context.__enter__()
        return context

    kept = loop.run_until_complete(subscribe())
    loop.close()
    ends.publish(1)
    kept.__exit__(None, None, None)
