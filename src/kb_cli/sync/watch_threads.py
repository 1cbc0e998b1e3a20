"""Watch the folders of this machine, each in a thread of its own: a missing disk must not block the others."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from hashlib import sha256
from pathlib import Path
from typing import Final

from kb.api.errors import KbError, Unauthorized
from kb.api.limits import MAX_REASONS
from kb.client.client import EngineClient
from kb_cli.runtime.engine_call import explain_key, make_client
from kb_cli.runtime.error_wording import rephrase
from kb_cli.runtime.last_search import state_folder
from kb_cli.runtime.output import print_error, print_line
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_claim import machine_id
from kb_cli.sync.report import SyncResult, groups_left_out, is_done, summarize
from kb_cli.sync.watch_records import WatchedFolder, load_records
from kb_cli.sync.watch_rounds import RETRY_SECONDS, Follower

LOOK_SECONDS: Final = 2.0
"""How often the records and the engine's requests are read."""

REPEAT_SECONDS: Final = 60.0
WAITING: Final = "another kb on this machine is already watching the folders; this one takes over when it ends"


class Reporter:
    """Reports the rounds of a folder to the engine."""

    def __init__(self, client: EngineClient, record: WatchedFolder) -> None:
        self._client = client
        self._record = record
        self._failure = ""
        self._failed_at = 0.0
        self._answers: str | None = None
        self.asked_at: str | None = None
        """The time of an open request to sync now."""

        self.is_syncing = False

    def is_asked(self) -> bool:
        """Return whether a request to sync now is open that no round has followed."""
        return self.asked_at is not None and self.asked_at != self._answers

    async def on_begin(self) -> None:
        self._answers = self.asked_at
        self.is_syncing = True

    async def on_result(self, result: SyncResult, folder: Folder) -> None:
        """Report a complete round."""
        self._failure = ""
        if result.is_news:
            print_line(f"{self._record.name}: {summarize(result.items, result.selection, waited=True)}")
        await self._report(result=described(result, folder))

    async def on_failure(self, reason: str) -> None:
        """Report why a round did not run: again only after a while, or if somebody asked for it."""
        now, record = asyncio.get_running_loop().time(), self._record
        if reason == f"The folder {record.path} does not exist.":
            reason += f" If you moved it, run 'kb watch add NEW_FOLDER --as {record.name}'."
        if reason != self._failure:
            print_error(f"{self._record.name}: {reason}")
        if reason != self._failure or self._answers or now - self._failed_at > REPEAT_SECONDS:
            self._failed_at = now
            await self._report(error=rephrase(reason))
        self.is_syncing, self._failure = False, reason

    async def _report(self, **outcome: object) -> None:
        try:
            await self._client.report_round(self._record.id, answers=self._answers, **outcome)
        except KbError:  # the next round reports again
            self._failed_at, self._answers = 0.0, None
        self.is_syncing = False


def described(result: SyncResult, folder: Folder) -> dict[str, object]:
    """Return the fields of a `folder_models.SyncReport`."""
    done = [item.act for item in result.items if is_done(item)]
    failed = result.failed
    return {
        "files": len(result.items),
        "added": sum(act in ("added", "already existed") for act in done),
        "changed": done.count("changed"),
        "moved": done.count("moved"),
        "deleted": len(result.deleted),
        "failed": len(failed),
        "failures": [
            {"path": writable(folder.place(item.source_path)), "error": rephrase(item.error or "")}
            for item in failed[:MAX_REASONS]
        ],
        "left_out": [
            {
                "reason": group.reason,
                "count": group.count,
                "paths": [writable(os.path.relpath(path, folder.path)) for path in group.paths[:MAX_REASONS]],
            }
            for group in groups_left_out(result.selection)[:MAX_REASONS]
        ],
        "kept": [writable(withheld.reason) for withheld in result.withheld[:MAX_REASONS]],
    }


def writable(text: str) -> str:
    """Return a text in UTF-8; names of files may be in another encoding."""
    return text.encode(errors="replace").decode()


class FolderThread:
    """Follows one folder in a thread of its own."""

    def __init__(self, record: WatchedFolder) -> None:
        self.record = record
        self._reporter: Reporter | None = None
        self._loop = asyncio.new_event_loop()
        self._following: asyncio.Task[None] | None = None
        # A thread that blocks in a system call cannot be stopped, so the program must not wait for it.
        context = copy_context()  # it has the profile
        self._thread = threading.Thread(target=context.run, args=[self._run], name="kb-folder", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread is still watching the folder."""
        return self._thread.is_alive()

    @property
    def is_syncing(self) -> bool:
        """Whether a round is running."""
        return self._reporter is not None and self._reporter.is_syncing

    def ask(self, asked_at: str | None) -> None:
        """Run a round soon if somebody asked for it."""
        if self._reporter:
            self._reporter.asked_at = asked_at

    def stop(self) -> None:
        """Stop soon, also within a round: the next one continues."""
        with suppress(RuntimeError):  # it has stopped already
            self._loop.call_soon_threadsafe(lambda: self._following and self._following.cancel())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._following = self._loop.create_task(self._follow())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._following)
        self._loop.close()

    async def _follow(self) -> None:
        async with make_client() as client:
            self._reporter = Reporter(client, self.record)
            folder, digests = self.record.folder(), DigestCache()
            reporter = self._reporter
            follower = Follower(client, folder, digests, reporter, reporter.is_asked, self._round, quiet=True)
            while True:
                try:
                    await follower.run()
                except Exception as error:  # noqa: BLE001 - one folder must not end silently
                    await reporter.on_failure(f"A sync failed: {type(error).__name__}: {error}")
                await asyncio.sleep(RETRY_SECONDS)

    @asynccontextmanager
    async def _round(self) -> AsyncIterator[None]:
        """Hold the lock of the rounds of the folder. End the thread if its record was removed or changed."""
        async with alone(self.record.lock):
            if load_records().get(self.record.id) != self.record:
                raise asyncio.CancelledError
            yield


class Watcher:
    """Watches the folders that both this machine's records and the engine name.

    Args:
        engine_url: the address of the engine.
    """

    def __init__(self, engine_url: str) -> None:
        key = sha256(engine_url.encode()).hexdigest()[:16]
        self._lock = state_folder() / f"watcher-{key}.lock"
        self._threads: dict[str, FolderThread] = {}
        self._problem = ""

    async def run(self) -> None:
        """Watch until stopped; only one program of this machine watches for an engine, and another one waits."""
        async with alone(self._lock, on_wait=lambda: print_error(WAITING)), make_client() as client:
            while True:
                await self._look(client)
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self, client: EngineClient) -> None:
        """Compare the running threads with the records and with the folders that the engine knows."""
        records = await asyncio.to_thread(load_records)
        for id_, thread in list(self._threads.items()):
            if thread.record != records.get(id_) or not thread.is_alive:
                self._threads.pop(id_).stop()
        try:
            known = await self._fetch_known(client, records)
        except KbError as error:  # the folders go on, and say so themselves
            reason = explain_key() if isinstance(error, Unauthorized) else error.detail
            if reason != self._problem:
                print_error(f"{reason} kb keeps trying.")
            self._problem = reason
            return
        self._problem = ""
        for id_ in self._threads.keys() - known.keys():
            self._threads.pop(id_).stop()
        for id_, asked_at in known.items():
            if id_ not in self._threads:
                self._threads[id_] = FolderThread(records[id_])
            self._threads[id_].ask(asked_at)

    async def _fetch_known(self, client: EngineClient, records: Collection[str]) -> dict[str, str | None]:
        """Return the folders that the engine knows, with the time of an open request to sync now."""
        if not records:
            return {}
        syncing = {id_: id_ in self._threads and self._threads[id_].is_syncing for id_ in records}
        known = await client.note_running(machine_id(), syncing)
        return {watch["id"]: watch["asked_at"] for watch in known["watches"]}


@asynccontextmanager
async def alone(lock: Path, on_wait: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    """Hold a lock of this machine during the block; without one if its folder is not writable."""
    from filelock import AsyncFileLock, Timeout

    held = AsyncFileLock(lock, thread_local=False)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            await held.acquire(timeout=0)
        except Timeout:
            on_wait()
            await held.acquire()
    except OSError:
        yield
        return
    try:
        yield
    finally:
        await held.release()


def end_with_parent() -> None:
    """End this program when its parent closes the pipe to it, or ends in any way."""

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os._exit(0)

    threading.Thread(target=wait, name="kb-parent", daemon=True).start()
