"""Rounds of a sync against a running engine, without a process for each."""

from __future__ import annotations

import asyncio

from kb.client.client import EngineClient
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.round import plan_sync, sync_folder
from tests.conftest import KEY


def with_client(server, act):
    """Return what `act(client)` returns."""

    async def connected():
        async with EngineClient(server.url, KEY) as client:
            return await act(client)

    return asyncio.run(connected())


def keep(server, folder, digests=None):
    """Run one round."""
    return with_client(server, lambda client: sync_folder(client, folder, digests or DigestCache(), quiet=True))


def plan(server, folder, digests=None):
    """Return the changes that a round would make."""
    return with_client(server, lambda client: plan_sync(client, folder, digests or DigestCache()))


def documents_below(server, prefix):
    """The documents of the engine under a prefix of paths."""

    async def listed(client):
        return [each async for each in client.iter_documents(source_prefix=prefix)]

    return with_client(server, listed)
