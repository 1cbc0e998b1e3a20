"""From a command, which is synchronous, to the engine's client, which is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kb_cli import config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kb.contract.client import EngineClient

T = TypeVar("T")


def ask(work: Callable[[EngineClient], Awaitable[T]]) -> T:
    """What `work` answers when it is given the configured engine.

    Raises:
        KbError: what the engine answered, or that it did not.
    """
    import asyncio

    from kb.contract.client import EngineClient

    settings = config.read()

    async def session() -> T:
        async with EngineClient(settings.engine_url, settings.api_key) as engine:
            return await work(engine)

    return asyncio.run(session())


async def in_parallel(work: Callable[[T], Awaitable[None]], items: Iterable[T], at_once: int) -> None:
    """Do `work` with each item, some at once; the first error ends it."""
    import asyncio

    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(worker())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
