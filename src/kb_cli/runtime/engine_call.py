"""Call the engine's asynchronous client from synchronous commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from kb.api.errors import (
    JobDone,
    KbError,
    NoEngine,
    NotFound,
    NotInBin,
    NotRetryable,
    Occupied,
    Unauthorized,
    WrongVersion,
)
from kb.api.version_check import MIN_ENGINE_VERSION, engine_mismatch
from kb.client.client import EngineClient
from kb_cli.runtime.config import config_path, key_headers, load_config, made_key
from kb_cli.runtime.error_wording import rephrase
from kb_cli.runtime.output import print_error, print_json, print_line

if TYPE_CHECKING:
    from kb.client.transport import Transport

T = TypeVar("T")

TIMEOUT: Final = 60.0
HTTP_NOT_FOUND: Final = 404


def call(request: Callable[[EngineClient], Awaitable[T]], timeout: float = TIMEOUT) -> T:
    """Return the result of `request` with the configured engine, which has `timeout` seconds for each response.

    Its calls run one after another; use `call_async` for concurrent calls, for files and for waiting.

    Raises:
        KbError: an error from the engine, or a failure to reach it.
    """
    from kb.client.stdlib import StdlibTransport, run

    url = load_config().engine_url
    if not url.startswith("http://"):
        return call_async(request, timeout)
    return run(_session(make_client(timeout, StdlibTransport(url)), request))


def call_async(request: Callable[[EngineClient], Awaitable[T]], timeout: float = TIMEOUT) -> T:
    """Do the same as `call` in an event loop."""
    import asyncio

    return asyncio.run(_session(make_client(timeout), request))


def make_client(timeout: float = TIMEOUT, transport: Transport | None = None) -> EngineClient:
    from kb.client.client import EngineClient

    config = load_config()
    return EngineClient(
        config.engine_url,
        config.api_key,
        transport=transport,
        timeout=timeout,
        around=lambda _, __: nullcontext({} if config.api_key else key_headers(made_key(config.engine_url))),
        agent="cli",
        operation=operation_key(),
    )


@cache
def operation_key() -> str:
    """Return the key that all requests of this command share, which makes them one operation."""
    return uuid4().hex


async def _session(client: EngineClient, request: Callable[[EngineClient], Awaitable[T]]) -> T:
    async with client:
        answer = await translate_errors(client, request)
    if reason := engine_mismatch(client.engine_version or MIN_ENGINE_VERSION):
        print_error(reason)
    return answer


async def translate_errors(client: EngineClient, request: Callable[[EngineClient], Awaitable[T]]) -> T:
    """Return the result of `request`.

    Raises:
        WrongVersion: it failed because of the engine's version (requirement S-9).
        Unauthorized: the key is missing or wrong; the message names its source.
    """
    try:
        return await request(client)
    except Unauthorized:
        raise Unauthorized(explain_key()) from None
    except KbError as error:
        if type(error) in (KbError, NoEngine) and (client.engine_version is None or error.status == HTTP_NOT_FOUND):
            await check_engine(client)
        if reason := engine_mismatch(client.engine_version or MIN_ENGINE_VERSION):
            raise WrongVersion(reason) from None
        raise


def explain_key() -> str:
    """Return a message that names the engine and the source of the rejected key, or says where to set one."""
    config = load_config()
    engine = config.engine_url + (f" (profile {config.profile})" if config.profile else "")
    key = config.settings.get("api_key")
    if key is None:
        return f"{engine} requires an API key. Set KB_API_KEY, or api_key in {config_path()}."
    return (
        f"{engine} rejected the key from {key.source}. Use the engine's own KB_API_KEY, or a key from 'kb keys make'."
    )


async def check_engine(client: EngineClient) -> None:
    """Request the version, which an engine before version 3 reports only in its status.

    Raises:
        KbError: the server is not an engine.
    """
    try:
        await client.status()
    except KbError as error:
        if error.status != HTTP_NOT_FOUND:
            raise
        raise NoEngine(f"The server at {client.base_url} is not a kb engine. Check KB_ENGINE_URL.") from None


def call_for_each(
    ids: Iterable[int], request: Callable[[EngineClient, int], Awaitable[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], int]:
    """Return the engine's responses and the exit code; print an error for each id that it does not know or refuses."""

    async def request_all(client: EngineClient) -> tuple[list[dict[str, Any]], int]:
        from kb_cli.runtime import exit_codes

        answers, code = [], exit_codes.OK
        for id_ in ids:
            try:
                answers.append(await request(client, id_))
            except (NotFound, NotInBin, NotRetryable, JobDone, Occupied) as error:
                print_error(rephrase(error.detail))
                code = exit_codes.exit_code_for(error)
        return answers, code

    return call(request_all)


def report_each(
    ids: Iterable[int],
    request: Callable[[EngineClient, int], Awaitable[dict[str, Any]]],
    describe: Callable[[dict[str, Any]], str],
    *,
    json: bool,
) -> int:
    """Make a request for each id, print the responses, and return the exit code."""
    answers, code = call_for_each(ids, request)
    if json:
        print_json(answers)
    for answer in () if json else answers:
        print_line(describe(answer))
    return code


async def run_parallel(work: Callable[[T], Awaitable[None]], items: Iterable[T], limit: int) -> None:
    """Run `work` for each item, at most `limit` at once; the first error stops it."""
    import asyncio

    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(limit):
                group.create_task(worker())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
