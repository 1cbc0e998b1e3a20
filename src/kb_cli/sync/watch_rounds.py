"""Sync a folder on each change."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from typer import TyperException

from kb.api.errors import KbError, Unauthorized
from kb.folders.watching import watch
from kb_cli.runtime.engine_call import explain_key
from kb_cli.runtime.output import print_error
from kb_cli.sync.folder_names import named
from kb_cli.sync.report import SyncResult, print_changes, print_result
from kb_cli.sync.round import sync_folder

if TYPE_CHECKING:
    from kb.client.client import EngineClient
    from kb_cli.sync.digests import DigestCache
    from kb_cli.sync.folder import Folder

RETRY_SECONDS: Final = 5


@dataclass
class Follower:
    """Syncs at once, then after each change.

    Args:
        client: the client of the engine.
        folder: the options of the sync.
        digests: the cache of file digests.
    """

    client: EngineClient
    folder: Folder
    digests: DigestCache
    _is_first: bool = True
    _printed: set[str] = field(default_factory=set)
    """Messages of the last round, which are not repeated."""

    async def run(self) -> None:
        """Sync forever; retry after failures, even if the engine is unreachable."""
        while True:
            await self._follow_until_away()
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow_until_away(self) -> None:
        """Sync on changes until the engine or the folder is gone: a folder that returns may be a different one."""
        # The first round starts only after watching has begun, so that no change is missed.
        is_due = True
        async with aclosing(watch(self.folder.path, print_error)) as ticks:
            async for is_changed in ticks:
                if is_changed or is_due:
                    if not await self._sync_once():
                        return
                    is_due = False

    async def _sync_once(self) -> bool:
        """Run one round and report any changes; return whether engine and folder were available."""
        self.client.begin_operation(uuid4().hex)
        try:
            self.folder = await named(self.client, self.folder)
            result = await sync_folder(self.client, self.folder, self.digests, quiet=False)
        except Unauthorized:
            return self._say(explain_key())
        except KbError as error:
            return self._say(f"{error.detail} kb keeps trying and then continues to watch.")
        except TyperException as error:
            return self._say(error.format_message())
        # A confirmation covers only the state that the user saw, not later rounds.
        self.folder = replace(self.folder, take_over=False, is_sure=False)
        self._report(self._without_known(result))
        return True

    def _say(self, line: str) -> bool:
        """Print once why a round did not run; return False."""
        if line not in self._printed:
            print_error(line)
        self._printed = {line}
        return False

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

    def _report(self, result: SyncResult) -> None:
        if self._is_first:
            print_result(result, json=False)
        else:
            print_changes(result, self.folder.prefix)
        self._is_first = False


async def follow(client: EngineClient, folder: Folder, digests: DigestCache) -> None:
    """Sync at once, then after each change.

    Raises:
        UsageError: the folder does not exist.
    """
    folder.check()
    await Follower(client, folder, digests).run()
