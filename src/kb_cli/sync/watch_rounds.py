"""Sync a folder on each change."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final, Protocol
from uuid import uuid4

from typer import TyperException

from kb.api.errors import KbError, Unauthorized
from kb.client.client import EngineClient
from kb.folders.watching import watch
from kb_cli.runtime.engine_call import explain_key
from kb_cli.runtime.output import print_error
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_names import named
from kb_cli.sync.report import SyncResult, print_changes, print_result
from kb_cli.sync.round import sync_folder

RETRY_SECONDS: Final = 5
FULL_SECONDS: Final = 600.0
"""A round runs after this time even without a notification: network disks do not report changes by other machines."""

REST_SHARE: Final = 4
REST_SECONDS: Final = 30.0
"""After a round, the next one waits for this multiple of its duration: a file such as a log may change all the time."""


class Listener(Protocol):
    """Receives the outcome of each round."""

    async def on_begin(self) -> None: ...
    async def on_result(self, result: SyncResult, folder: Folder) -> None: ...
    async def on_failure(self, reason: str) -> None: ...


@dataclass
class Printer:
    """Prints the outcome of each round, without messages that it has already printed."""

    _is_first: bool = True
    _printed: set[str] = field(default_factory=set)
    """Messages of the last round."""

    async def on_begin(self) -> None: ...

    async def on_result(self, result: SyncResult, folder: Folder) -> None:
        result = self._without_known(result)
        if self._is_first:
            print_result(result, json=False)
        else:
            print_changes(result, folder.prefix)
        self._is_first = False

    async def on_failure(self, reason: str) -> None:
        if reason not in self._printed:
            print_error(reason)
        self._printed = {reason}

    def _without_known(self, result: SyncResult) -> SyncResult:
        """Return the result without known messages about files and documents that have not changed."""
        before, self._printed = self._printed, set()
        for item in result.items:
            if item.error:
                line = f"{item.path}: {item.error}"
                item.is_known_error = item.is_known_error or (line in before and item.job is None)
                self._printed.add(line)
        self._printed.update(withheld.reason for withheld in result.withheld)
        return replace(result, withheld=[withheld for withheld in result.withheld if withheld.reason not in before])


@dataclass
class Follower:
    """Syncs at once, then after each change.

    Args:
        folder: the options of the sync.
        digests: the cache of file digests.
        listener: receives the outcome of each round.
        is_asked: returns whether somebody waits for a round.
        guard: returns the lock around each round.
        quiet: whether to hide progress.
    """

    client: EngineClient
    folder: Folder
    digests: DigestCache
    listener: Listener = field(default_factory=Printer)
    is_asked: Callable[[], bool] = lambda: False
    guard: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    quiet: bool = False

    async def run(self) -> None:
        """Sync forever; retry after failures, even if the engine is unreachable."""
        while True:
            await self._follow_until_away()
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow_until_away(self) -> None:
        """Sync on changes until the engine or the folder is gone: a folder that returns may be a different one."""
        # The first round starts only after watching has begun, so that no change is missed.
        due = rested = 0.0
        has_changed = False
        async with aclosing(watch(self.folder.path, print_error)) as ticks:
            async for is_changed in ticks:
                has_changed |= is_changed
                now = time.monotonic()
                if self.is_asked() or (now >= rested and (has_changed or now >= due)):
                    has_changed = False
                    if not await self._sync_once():
                        return
                    ended = time.monotonic()
                    due, rested = ended + FULL_SECONDS, ended + min(REST_SECONDS, REST_SHARE * (ended - now))

    async def _sync_once(self) -> bool:
        """Run one round and report its outcome; return whether engine and folder were available."""
        self.client.begin_operation(uuid4().hex)
        await self.listener.on_begin()
        try:
            self.folder = await named(self.client, self.folder)
            async with self.guard():
                result = await sync_folder(self.client, self.folder, self.digests, quiet=self.quiet)
        except Unauthorized:
            return await self._fail(explain_key())
        except KbError as error:
            return await self._fail(f"{error.detail} kb keeps trying, and resumes watching once it succeeds.")
        except TyperException as error:
            return await self._fail(error.format_message())
        # A confirmation covers only the state that the user saw, not later rounds.
        self.folder = replace(self.folder, take_over=False, is_sure=False)
        await self.listener.on_result(result, self.folder)
        return True

    async def _fail(self, reason: str) -> bool:
        await self.listener.on_failure(reason)
        return False


async def follow(client: EngineClient, folder: Folder, digests: DigestCache) -> None:
    """Sync at once, then after each change.

    Raises:
        UsageError: the folder does not exist.
    """
    folder.check()
    await Follower(client, folder, digests).run()
