"""Following the changes of a folder."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from typer import TyperException

from kb.api.errors import KbError, Unauthorized
from kb_cli.runtime.call import explain_key
from kb_cli.runtime.output import print_error
from kb_cli.sync.folder import sync_folder
from kb_cli.sync.report import print_changes, print_result

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from kb.client.client import EngineClient
    from kb_cli.sync.digests import DigestCache
    from kb_cli.sync.folder import Folder

RETRY_SECONDS: Final = 5
TICK_MILLISECONDS: Final = 500
"""How often is looked whether a round is due."""


async def follow(client: EngineClient, folder: Folder, digests: DigestCache) -> None:
    """Go round at once, then after each change; what fails is tried again, also when the engine is away."""
    folder.check()
    is_first = True
    while True:
        await follow_until_away(client, folder, digests, is_first=is_first)
        is_first = False
        await asyncio.sleep(RETRY_SECONDS)


async def follow_until_away(client: EngineClient, folder: Folder, digests: DigestCache, *, is_first: bool) -> None:
    """Go round at once, then after each change, until the engine is away, or the folder: it may come back another."""
    # The first round waits until changes are watched, so that none falls between.
    is_due = True
    async with aclosing(watch(folder.path)) as ticks:
        async for is_changed in ticks:
            if is_changed or is_due:
                if not await sync_once(client, folder, digests, is_first=is_first):
                    return
                is_due = is_first = False


async def watch(folder: Path) -> AsyncGenerator[bool, None]:
    """Yield at every tick whether something has changed, until the folder cannot be watched any more."""
    from watchfiles import awatch

    ticks = awatch(folder, yield_on_timeout=True, rust_timeout=TICK_MILLISECONDS, ignore_permission_denied=True)
    async with aclosing(ticks):
        try:
            async for changes in ticks:
                yield bool(changes)
        # The next round says that there is no folder.
        except* FileNotFoundError:
            pass
        # Something happened to a file whose name is not UTF-8, or the system watches no more.
        except* RuntimeError as errors:
            print_error(f"the folder is watched anew: {errors.exceptions[0]}")


async def sync_once(client: EngineClient, folder: Folder, digests: DigestCache, *, is_first: bool) -> bool:
    """Go round once, and report if anything was done; return whether engine and folder were there."""
    try:
        result = await sync_folder(client, folder, digests, quiet=False)
    except Unauthorized:
        print_error(explain_key())
        return False
    except KbError as error:
        print_error(f"{error.detail} Watching goes on by itself when it is back.")
        return False
    except TyperException as error:
        print_error(error.format_message())
        return False
    if is_first:
        print_result(result, json=False)
    else:
        print_changes(result, folder.prefix)
    return True
