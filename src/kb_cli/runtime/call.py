"""From a command, which is synchronous, to the engine's client, which is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kb.api.errors import KbError, NoEngine, WrongVersion
from kb.api.versions import MIN_ENGINE_VERSION, engine_mismatch
from kb_cli.runtime import config
from kb_cli.runtime.output import complain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kb.client.client import EngineClient

T = TypeVar("T")

SECONDS = 60.0
NO_SUCH_PAGE = 404


def ask(work: Callable[[EngineClient], Awaitable[T]], timeout: float = SECONDS) -> T:
    """What `work` answers when it is given the configured engine, which has `timeout` seconds for each answer.

    `work` makes one call after the other; for anything else there is `ask_at_length`.

    Raises:
        KbError: what the engine answered, or that it did not.
    """
    from kb.client.client import EngineClient
    from kb.client.stdlib import StdlibTransport, run

    settings = config.read()
    if not settings.engine_url.startswith("http://"):
        return ask_at_length(work, timeout)
    transport = StdlibTransport(settings.engine_url)
    client = EngineClient(settings.engine_url, settings.api_key, transport=transport, timeout=timeout)
    return run(_session(client, work))


def ask_at_length(work: Callable[[EngineClient], Awaitable[T]], timeout: float = SECONDS) -> T:
    """As `ask`, for work that makes several calls at once, sends files or waits."""
    import asyncio

    from kb.client.client import EngineClient

    settings = config.read()
    return asyncio.run(_session(EngineClient(settings.engine_url, settings.api_key, timeout=timeout), work))


async def _session(client: EngineClient, work: Callable[[EngineClient], Awaitable[T]]) -> T:
    async with client as engine:
        answer = await explained(work, engine)
    if reason := engine_mismatch(engine.engine_version or MIN_ENGINE_VERSION):
        complain(reason)
    return answer


async def explained(work: Callable[[EngineClient], Awaitable[T]], engine: EngineClient) -> T:
    """What `work` answers.

    Raises:
        WrongVersion: it failed, and the reason is the engine's version (requirement S-9).
    """
    try:
        return await work(engine)
    except KbError as error:
        if type(error) in (KbError, NoEngine) and (engine.engine_version is None or error.status == NO_SUCH_PAGE):
            await introduced(engine)
        if reason := engine_mismatch(engine.engine_version or MIN_ENGINE_VERSION):
            raise WrongVersion(reason) from None
        raise


async def introduced(engine: EngineClient) -> None:
    """Ask for the version, which an engine before version 3 says only there.

    Raises:
        KbError: it is no engine.
    """
    try:
        await engine.status()
    except KbError as error:
        if error.status != NO_SUCH_PAGE:
            raise
        raise NoEngine(
            f"What answers at {engine.base_url} is no kb engine; KB_ENGINE_URL says where to look."
        ) from None


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
