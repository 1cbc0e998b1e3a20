"""Parsing in a separate process with limits, so that a file cannot take the engine down.

The process reads many files, and is replaced if a file killed it. It receives the bytes of one file at a time and
returns the text; `kb.parser.drop_privileges` describes its restrictions.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast, get_args

from kb.api.errors import Stopped, Unreadable
from kb.api.fields import Restriction
from kb.api.job_error_phrases import NO_OCR
from kb.api.limits import MAX_TAG_CHARS, MAX_TAGS
from kb.formats.ocr_text import with_remark
from kb.formats.text.external_types import Kind, Opaque
from kb.formats.text.extracted import Extracted, attached_room
from kb.parser.protocol import Malformed, OverLimit, check, receive, receive_bytes, send, send_file, unpack

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

MAX_FILES: Final = 500
"""The number of files after which the process is replaced, because parsers leak memory."""

MONITOR_SECONDS: Final = 0.02
_MIB: Final = 1 << 20
_BYTES_A_CHARACTER: Final = 8
_MAX_REASON: Final = 1000
_FREE: Final = 400_000
"""The bytes that even the smallest file may take in the database."""

_FREE_OF_PART: Final = 4000
"""The same for a file inside another file, which may contain a hundred files."""

_LARGEST_PICTURE: Final = 32 << 20
_PLACE: Final = re.compile(r"(?<=/)[\w.-]+/[\w.-]+\.py\", line \d+, in <?\w+>?|^\w*(?:Error|Exception)\b", re.MULTILINE)
_MOST_PLACES: Final = 12
_MAX_RLIMIT: Final = 1 << 31
_ENVIRONMENT: Final = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for reading one file: wall-clock seconds, MiB of memory, MiB of text, pages.

    Args:
        index_ratio: the file's maximum size in the database as a multiple of its own, in addition to 400 kB.
        own_tags: the maximum number of tags that it may set; further tags are left out.
        tag_chars: the maximum length of its tags; longer tags are left out.
        thumbnails: whether the process can also make thumbnails; it then loads more.
    """

    seconds: float = 120
    memory_mb: int = 2048
    output_mb: int = 64
    pages: int = 5000
    index_ratio: float = 20
    own_tags: int = MAX_TAGS
    tag_chars: int = MAX_TAG_CHARS
    thumbnails: bool = False

    @property
    def too_slow(self) -> str:
        return f"reading it took more than {self.seconds:g} seconds, the limit set by KB_PARSE_SECONDS"

    @property
    def too_much_memory(self) -> str:
        return f"reading it took more than {self.memory_mb} MiB of memory, the limit set by KB_PARSE_MEMORY_MB"

    @property
    def too_large_index(self) -> str:
        return (
            f"its text is far too long for a file of its size: in the database it would take more than 400 kB and"
            f" {self.index_ratio:g} times the size of the file, the limit (KB_INDEX_RATIO)"
        )

    def index_bytes(self, size: int, *, is_part: bool) -> float:
        """Return the maximum number of bytes that a file of `size` bytes may take in the database."""
        return self.index_ratio * size + (_FREE_OF_PART if is_part else _FREE)

    def characters(self, size: int, *, is_part: bool) -> int:
        """Return the maximum length of a file's text: half its bytes in the database, as each is stored twice."""
        return min(self.output_mb * _MIB, int(self.index_bytes(size, is_part=is_part)) // 2)

    def too_many_characters(self, characters: int) -> str:
        too_much_text = f"it contains more than {self.output_mb} MiB of text, the limit"
        return too_much_text if characters == self.output_mb * _MIB else self.too_large_index

    def too_many_pages(self, pages: int) -> str:
        return f"it has {pages} pages; the limit is {self.pages}"


class Sandbox:
    """Reads files in a separate process.

    Use it from one thread, from start to close, because Linux ends the process along with the thread that started it;
    only `stop` may be called from another. Memory is limited only on Linux.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: _Process | None = None
        self._confined: list[Restriction] | None = None
        self._stopped = False

    @property
    def confined(self) -> list[Restriction] | None:
        """The restrictions of the process; None until it has started for the first time."""
        process = self._process
        if process and process.confined is not None:
            self._confined = process.confined
        return self._confined

    def start(self) -> None:
        """Start the process, so that the first file does not wait for it."""
        if self._process is None and not self._stopped:
            self._process = _Process(self.limits)

    def stop(self) -> None:
        """Interrupt the process, and refuse further work."""
        self._stopped = True
        if process := self._process:
            process.interrupt()

    def close(self) -> None:
        if self._process:
            self._process.close()
            self._process = None

    def extract(self, path: Path, filename: str, *, is_part: bool = False) -> tuple[str, Extracted]:
        """Read the file at `path`, which its sender called `filename`, as `kb.formats.extract.extract` does.

        `is_part` means that it came inside another file.

        Raises:
            Unreadable: the file contains no text, or reading it exceeded a limit or killed the parser.
            Stopped: `stop` was called.
        """
        doc_type, extracted = self._parse(path, filename, is_part=is_part)
        return doc_type, with_remark(extracted, extracted.scans, NO_OCR)

    def _parse(
        self, path: Path, filename: str, *, is_part: bool = False, pictures: bool = False
    ) -> tuple[str, Extracted]:
        doc_type, extracted = self._ask(
            lambda process: process.extract(path, filename, is_part=is_part, pictures=pictures)
        )
        numbers = [*(section.page for section in extracted.sections), *(scan.page for scan in extracted.scans)]
        numbers += [picture.page for picture in extracted.pictures]
        pages = max((number or 0 for number in numbers), default=0)
        if pages > self.limits.pages:
            raise Unreadable(self.limits.too_many_pages(pages))
        return doc_type, extracted

    def draw_page(self, path: Path, number: int, passage: str, place: float, words: Sequence[str] = ()) -> bytes:
        """Return a page of the PDF at `path` as PNG (`kb.formats.readers.pdf_picture`). Raises as `extract`."""
        request = {"page": number, "passage": passage, "place": place, "words": [*words]}
        return self._ask(lambda process: process.draw(path, request))

    def count_pages(self, path: Path) -> int:
        return int(self._ask(lambda process: process.draw(path, {"page": None})))

    def thumbnail(self, path: Path) -> bytes:
        """Return the file at `path` in small (`kb.formats.readers.thumbnail`). Raises the same errors as `extract`."""
        return self._ask(lambda process: process.draw(path, {"page": 1, "small": True}))

    def picture_to_read(self, path: Path, number: int) -> bytes:
        """Return a page of the PDF at `path` as a PNG for OCR. Raises the same errors as `extract`."""
        return self._ask(lambda process: process.draw(path, {"page": number}))

    def _ask(self, ask: Callable[[_Process], Answer]) -> Answer:
        self.start()
        process = self._process
        if process is None or self._stopped:
            raise Stopped
        try:
            return ask(process)
        except Unreadable:
            if self._stopped and not process.is_reusable:
                raise Stopped from None
            raise
        finally:
            if not process.is_reusable:
                self.close()


class _Monitor:
    """Kills a process that exceeds a limit while it reads a file, and keeps the reason.

    One thread serves all files, because starting a thread takes longer than reading most files.
    """

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self.reason: str | None = None
        self.peak = 0
        self._process = process
        self._limits = limits
        self._memory_limit = 0
        self._deadline: float | None = None
        self._lock = threading.Lock()
        self._is_reading, self._is_closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="kb-parser-watch", daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, memory_limit: int) -> Iterator[None]:
        """Limit the process to this much memory, in bytes, and to the seconds for one file."""
        with self._lock:
            self.reason, self.peak, self._memory_limit = None, 0, memory_limit
            self._deadline = time.monotonic() + self._limits.seconds
        self._is_reading.set()
        try:
            yield
        finally:
            with self._lock:
                self._deadline = None
            self._is_reading.clear()

    def close(self) -> None:
        self._is_closed.set()
        self._is_reading.set()
        self._thread.join()

    def _run(self) -> None:
        while self._is_reading.wait() and not self._is_closed.wait(MONITOR_SECONDS):
            with self._lock:
                if self._deadline is not None:
                    self._check(self._deadline)

    def _check(self, deadline: float) -> None:
        self.peak = max(self.peak, resident(self._process.pid))
        if self.peak > self._memory_limit:
            self.reason = self._limits.too_much_memory
        elif time.monotonic() >= deadline:
            self.reason = self._limits.too_slow
        if self.reason:
            self._process.kill()


class _Process:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files = 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        # Address space exceeds memory, so the limit is twice as high, and the monitor checks the real use. This limit
        # stops growth too sudden for the monitor.
        address_space = 2 * limits.memory_mb * _MIB + 1024 * _MIB
        seconds = math.ceil(min(MAX_FILES * limits.seconds, _MAX_RLIMIT))
        arguments = (os.getpid(), address_space, seconds, int(limits.thumbnails))
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "kb.parser.process", *map(str, arguments)],
            cwd=os.sep,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(),
            start_new_session=True,  # Ctrl+C in the terminal stops only the engine, which finishes the file
        )
        self._requests, self._replies = cast("BinaryIO", self._process.stdin), cast("BinaryIO", self._process.stdout)
        self._monitor = _Monitor(self._process, limits)
        self._baseline: int | None = None
        self.confined: list[Restriction] | None = None
        self._start = threading.Thread(target=self._receive_start, name="kb-parser-start", daemon=True)
        self._start.start()

    @property
    def is_reusable(self) -> bool:
        grown = resident(self._process.pid) - (self._baseline or 0)
        return self._process.poll() is None and self._files < MAX_FILES and grown < self._limits.memory_mb * _MIB // 4

    def interrupt(self) -> None:
        """Kill it; the thread that waits for its reply cleans up."""
        self._process.kill()

    def close(self) -> None:
        self._end()
        self._monitor.close()
        self._start.join()
        for pipe in (self._requests, self._replies, self._errors):
            with suppress(OSError):  # a request that the process never read
                pipe.close()

    def extract(self, path: Path, filename: str, *, is_part: bool, pictures: bool) -> tuple[str, Extracted]:
        """Read a file, with its pictures if requested. Raises `Unreadable`, after which the process may be dead."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            characters = self._limits.characters(size, is_part=is_part)
            too_much = self._limits.too_many_characters(characters)
            request = {"filename": filename, "max_chars": characters, "pictures": pictures}
            return self._watched(lambda: self._exchange(file, request, size, characters), too_much)

    def draw(self, path: Path, request: dict[str, Any]) -> bytes:
        """Draw a page. Raises the same errors as `extract`."""
        with path.open("rb") as file:
            return self._watched(lambda: self._exchange_page(file, request), "its picture is too large")

    def _watched(self, exchange: Callable[[], Answer], too_much: str) -> Answer:
        self._files += 1
        self._start.join()
        if self.confined is None:
            raise RuntimeError(f"the parser did not start: {self._stderr()}")
        self._errors.truncate(0)
        self._errors.seek(0)
        try:
            with self._monitor.watching((self._baseline or 0) + self._limits.memory_mb * _MIB):
                return self._answered(exchange, too_much)
        except (EOFError, OSError):
            pass
        finally:
            if self._monitor.reason:  # it may have ended just before it was killed
                self._process.wait()
        raise Unreadable(self._monitor.reason or self._exit_reason(self._monitor.peak))

    def _answered(self, exchange: Callable[[], Answer], too_much: str) -> Answer:
        """Return the answer. If none arrives, wait until the process has ended, on its own or by its limits."""
        try:
            return exchange()
        except OverLimit:
            self._end()
            raise Unreadable(too_much) from None
        except Malformed as error:
            self._end()
            raise Unreadable(f"its parser returned an invalid answer: {error}") from None
        except (EOFError, OSError):
            self._process.wait()
            raise

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _receive_start(self) -> None:
        with suppress(EOFError, OverLimit, Malformed):
            confined = receive(self._replies, 1024)["confined"]
            self._baseline = resident(self._process.pid)
            self.confined = confined
            logger.info("the parser has started; blocked: %s", ", ".join(confined) or "nothing on this system")

    def _exchange(self, file: BinaryIO, request: dict[str, Any], size: int, characters: int) -> tuple[str, Extracted]:
        reply = self._reply(file, request, characters * _BYTES_A_CHARACTER + _MIB)
        if reply.get("out_of") == "output":
            raise Unreadable(self._limits.too_many_characters(characters))
        document = check(reply)
        blobs = self._attached(len(document.attachments) + len(document.pictures), size)
        limits = self._limits
        return document.doc_type, unpack(document, blobs, characters, limits.own_tags, limits.tag_chars)

    def _exchange_page(self, file: BinaryIO, request: dict[str, Any]) -> bytes:
        self._reply(file, request, _MIB)
        return receive_bytes(self._replies, _LARGEST_PICTURE)

    def _reply(self, file: BinaryIO, request: dict[str, Any], limit: int) -> dict[str, Any]:
        send(self._requests, request)
        send_file(self._requests, file)
        reply = receive(self._replies, limit)
        if "unreadable" in reply:
            raise _unreadable(reply)
        if reply.get("out_of") == "memory":
            self._end()
            raise Unreadable(self._limits.too_much_memory)
        return reply

    def _attached(self, count: int, file_size: int) -> list[bytes]:
        room, blobs = attached_room(file_size), list[bytes]()
        for _ in range(count):
            blobs.append(receive_bytes(self._replies, room))
            room -= len(blobs[-1])
        return blobs

    def _exit_reason(self, peak: int) -> str:
        stderr = self._stderr()
        logger.warning("the parser ended with status %s: %s", self._process.returncode, places_in(stderr))
        is_full = peak > 0.75 * self._limits.memory_mb * _MIB or "memory allocation of" in stderr
        if is_full:
            return self._limits.too_much_memory
        status = self._process.returncode
        if status >= 0:
            return f"the parser exited while reading it (exit status {status})"
        return f"the parser crashed on it ({ending(status)})"

    def _stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read(65536).decode("utf-8", "replace").strip()


def ending(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    return signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"


def places_in(stderr: str) -> str:
    """Return the places in the code at which a parser failed, without text from the file."""
    places = [match[0] for match in _PLACE.finditer(stderr)]
    return ", ".join(places[-_MOST_PLACES:]) or "no place in the code"


def _unreadable(reply: dict[str, Any]) -> Unreadable:
    reason, kind, pages = str(reply["unreadable"])[:_MAX_REASON], reply.get("kind"), reply.get("pages")
    if kind in get_args(Kind) and isinstance(pages, int):
        return Opaque(reason, cast("Kind", kind), pages)
    return Unreadable(reason)


def environment() -> dict[str, str]:
    """Return the environment of the process: no keys, and the module folders as absolute paths."""
    environment = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT}
    folders = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return environment | {"PYTHONUTF8": "1", "PYTHONPATH": os.pathsep.join(map(os.path.abspath, folders))}


def resident(pid: int) -> int:
    """Return the memory that a process uses, in bytes; 0 if unknown."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_bytes().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * mmap.PAGESIZE
