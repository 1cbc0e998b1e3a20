"""Sending files, a few at a time: not again what is there already, and what is wrong with one stops no other."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kb.api.errors import KbError
from kb_cli.commands.jobs import finished
from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.call import in_parallel
from kb_cli.runtime.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kb.client.client import EngineClient
    from kb_cli.sync.remote import Known
    from kb_cli.sync.selection import Found

AT_ONCE: Final = 4
MANY_FAILURES: Final = 20
EXAMPLES: Final = 3


@dataclass(slots=True)
class Sent:
    """A file and what became of it.

    Args:
        path: the file.
        source_path: what the engine calls it.
        tags: what it shall be tagged with.
        job: the engine's receipt, or when waited for the finished job; None if it was not sent.
        document_id: the document that has its content.
        error: why it did not go in.
        is_old_error: whether that is known since an earlier round, and the file was not sent again.
    """

    path: str
    source_path: str
    tags: Sequence[str] = ()
    job: dict[str, Any] | None = None
    document_id: int | None = None
    error: str | None = None
    is_old_error: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Whether the engine had it already."""
        return self.job is None and self.error is None and self.document_id is not None

    @property
    def is_news(self) -> bool:
        """Whether there is something to tell of it that was not told before."""
        return not (self.is_unchanged or self.is_old_error)

    def shown(self) -> dict[str, Any]:
        """What --json tells."""
        return {name: getattr(self, name) for name in ("path", "source_path", "job", "document_id", "error")}


@dataclass
class Digests:
    """The SHA-256 of files, kept while a file looks unchanged: a watched folder is looked at again and again.

    Args:
        unreadable: what the engine could not read, by path: the digest and the reason.
    """

    unreadable: dict[str, tuple[str, str]] = field(default_factory=dict)
    _kept: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)

    def of(self, path: str) -> str:
        """The file's digest.

        Raises:
            OSError: it cannot be read.
        """
        with Path(path).open("rb") as file:
            status = Path(path).stat()
            look = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if path not in self._kept or self._kept[path][0] != look:
                self._kept[path] = look, file_digest(file, "sha256").hexdigest()
        return self._kept[path][1]


@dataclass
class Sender:
    """Sends files.

    Args:
        engine: where to.
        known: what the engine has, by source path.
        digests: those of the files.
        title: the title of the file, if there is but one.
        quiet: show no progress.
    """

    engine: EngineClient
    known: Mapping[str, Known]
    digests: Digests
    title: str | None = None
    quiet: bool = False

    async def send_all(self, files: Sequence[Sent]) -> None:
        """Send what the engine does not have."""
        with progress(
            "sending", sum(size(Path(each.path)) for each in files), is_bytes=True, quiet=self.quiet
        ) as advance:
            await in_parallel(lambda each: self.send(each, advance), files, AT_ONCE)

    async def send(self, each: Sent, advance: Callable[[int], None]) -> None:
        """Send a file. What is wrong with this one alone is noted; what would stop the others too is raised."""
        try:
            each.source_path.encode()
            if await self._is_there(each) or await self._is_unreadable(each):
                advance(size(Path(each.path)))
                return
            with Upload(each.path, advance) as content:
                each.job = await self.engine.add_file(
                    Path(each.path).name, content, source_path=each.source_path, tags=each.tags, title=self.title
                )
        except OSError as error:
            each.error = error.strerror or str(error)
        except UnicodeEncodeError:
            each.error = "its name is not UTF-8"
        except KbError as error:
            if exits.code_of(error) != exits.REFUSED:
                raise
            each.error = error.detail

    async def _is_there(self, each: Sent) -> bool:
        known = self.known.get(each.source_path)
        if known is None or self.title not in (None, known.title):
            return False
        if known.content_hash != await asyncio.to_thread(self.digests.of, each.path):
            return False
        if missing := [tag for tag in each.tags if tag not in known.tags]:
            if known.document_id is None:
                return False
            await self.engine.change_tags(known.document_id, add=missing)
        each.document_id = known.document_id
        each.job = None if known.job_id is None else {"job_id": known.job_id, "status": "queued"}
        return True

    async def _is_unreadable(self, each: Sent) -> bool:
        digest, reason = self.digests.unreadable.get(each.path, (None, None))
        if digest is None or digest != await asyncio.to_thread(self.digests.of, each.path):
            return False
        each.error, each.is_old_error = reason, True
        return True

    async def settle_all(self, files: Sequence[Sent]) -> None:
        """Wait until what was sent can be found, or note why not."""
        waiting = [each for each in files if each.job]
        with progress("taking in", len(waiting), is_bytes=False, quiet=self.quiet) as advance:
            for each in waiting:
                await self.settle(each)
                advance(1)

    async def settle(self, each: Sent) -> None:
        """Wait until the file's document can be found, or note why not."""
        if each.job:
            each.job = await finished(self.engine, each.job["job_id"])
            each.error, each.document_id = each.job["error"], each.job["document_id"]
            if each.error:
                self.digests.unreadable[each.path] = each.job["content_hash"], each.error


class Upload(io.FileIO):
    """A file that tells how much of it was read, and ends where it ended when it was opened.

    A log that grows while it is sent would otherwise become longer than what the request announced.
    """

    def __init__(self, path: str, advance: Callable[[int], None]) -> None:
        super().__init__(path)
        self._left = size(Path(path))
        self._advance = advance

    def read(self, size: int | None = -1, /) -> bytes:
        """Read on."""
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = super().read(wanted) or b""
        self._left -= len(data)
        self._advance(len(data))
        return data


def size(file: Path) -> int:
    """The file's length in bytes; 0 if it cannot be known."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def unlisted(found: Found) -> list[Sent]:
    """The folders that could not be looked into, as what did not go in."""
    return [Sent(str(folder), folder.as_posix(), error="this folder cannot be listed") for folder in found.unreadable]


def complain_of(failed: Sequence[Sent]) -> None:
    """Say what did not go in, and why: each, or if they are many, how many for each reason."""
    if len(failed) <= MANY_FAILURES:
        for each in failed:
            output.complain(f"{each.path}: {each.error}")
        return
    by_reason: dict[str, list[Sent]] = {}
    for each in failed:
        by_reason.setdefault(each.error or "", []).append(each)
    for reason, those in by_reason.items():
        names = ", ".join(each.path for each in those[:EXAMPLES])
        output.complain(f"{counted(len(those))}: {reason}: {names}" + (", …" if len(those) > EXAMPLES else ""))


def summary(sent: Sequence[Sent], found: Found, *, waited: bool) -> str:
    """What became of the files, in one line."""
    failed = sum(bool(each.error) for each in sent)
    unchanged = sum(each.is_unchanged for each in sent)
    parts = [f"{len(sent) - failed - unchanged} {'searchable' if waited else 'on their way in'}"]
    parts += [f"{unchanged} unchanged"] if unchanged else []
    parts += [f"{failed} failed"] if failed else []
    if found.passed:
        kinds = ", ".join(f"{count} {suffix}" for suffix, count in sorted(found.passed.items()))
        parts.append(f"{sum(found.passed.values())} passed over ({kinds})")
    return f"{counted(len(sent))}: {', '.join(parts)}"


def counted(files: int) -> str:
    """A number of files."""
    return "1 file" if files == 1 else f"{files} files"
