"""From a command, which is synchronous, to the engine's client, which is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kb.contract.errors import KbError, WrongVersion
from kb.contract.versions import MIN_ENGINE_VERSION, engine_mismatch
from kb_cli import config
from kb_cli.output import complain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kb.contract.client import EngineClient

T = TypeVar("T")


def ask(work: Callable[[EngineClient], Awaitable[T]], timeout: float = 60) -> T:
    """What `work` answers when it is given the configured engine, which has `timeout` seconds for each answer.

    Raises:
        KbError: what the engine answered, or that it did not.
    """
    import asyncio

    from kb.contract.client import EngineClient

    settings = config.read()

    async def session() -> T:
        async with EngineClient(settings.engine_url, settings.api_key, timeout=timeout) as engine:
            answer = await explained(work, engine)
        if reason := engine_mismatch(engine.engine_version or MIN_ENGINE_VERSION):
            complain(reason)
        return answer

    return asyncio.run(session())


async def explained(work: Callable[[EngineClient], Awaitable[T]], engine: EngineClient) -> T:
    """What `work` answers.

    Raises:
        WrongVersion: it failed, and the reason is the engine's version (requirement S-9).
    """
    try:
        return await work(engine)
    except KbError as error:
        if type(error) is KbError and engine.engine_version is None:
            await engine.status()
        if reason := engine_mismatch(engine.engine_version or MIN_ENGINE_VERSION):
            raise WrongVersion(reason) from None
        raise


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
