"""One run of an extractor on a file, within limits, without rights, and for a limited time."""

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from kb.api.errors import OutOfReach, Stopped, Unreadable
from kb.api.fields import Restriction
from kb.parser.extractor_exec import NOT_NOW, TASKS
from kb.parser.extractors import SUFFIX, Extractor
from kb.parser.old_office import FILE
from kb.parser.resource_usage import disk_sizes, files_below, group_members, memory_use, removed_files, thread_count
from kb.parser.sandbox import Limits, ending, environment

_MIB: Final = 1 << 20
_LOOK_SECONDS: Final = 0.2
_END_SECONDS: Final = 0.01
_BLOCK: Final = 1 << 16
_REPORT_SECONDS: Final = 60
_LAST_WORDS: Final = 300
_BYTES_A_CHARACTER: Final = 4


@dataclass
class ExtractorRun:
    """One run, from its start to its end.

    Args:
        limits: the memory limits.
        deadline: the time by which it must end, on the monotonic clock.
        too_slow: the error message if it does not.
        folder: the folder in which it gets its own; by default the one for temporary files.
        unconfined: whether it runs even if the system cannot keep it from other files.
    """

    extractor: Extractor
    limits: Limits
    deadline: float
    too_slow: str
    folder: Path | None = None
    unconfined: bool = False
    _look_at: float = 0
    _size: int = 0
    _is_stopped: bool = False

    def stop(self) -> None:
        """Stop the run; `read` raises `Stopped`. Any thread may call this."""
        self._is_stopped = True

    def read(self, path: Path, filename: str, characters: int) -> bytes:
        """Return the extractor's output for a file.

        Raises:
            Unreadable: it failed, or exceeded a limit.
            OutOfReach: the extractor or its service is unavailable.
            Stopped: `stop` was called.
        """
        with (
            tempfile.TemporaryDirectory(prefix="kb-extract-", dir=self.folder) as scratch,
            tempfile.TemporaryFile(dir=self.folder) as errors,
            path.open("rb") as file,
        ):
            self._size = os.fstat(file.fileno()).st_size
            command = self._command(file, Path(scratch), filename)
            process = subprocess.Popen(  # noqa: S603 - a command of the operator
                [*launcher(self.limits, scratch, *self._freedoms), *command],
                cwd=scratch,
                stdin=subprocess.DEVNULL if self.extractor.takes_path else file,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment() | {"HOME": scratch, "TMPDIR": scratch},
                start_new_session=True,
            )
            try:
                printed = self._printed(process, Path(scratch), characters)
            finally:
                end_group(process)
            if process.returncode == NOT_NOW:
                raise OutOfReach(f"its extractor {self.extractor.name} is unavailable{last_words(errors)}")
            if process.returncode:
                how = ending(process.returncode)
                raise Unreadable(f"its extractor {self.extractor.name} failed ({how}){last_words(errors)}")
            return printed

    def _command(self, file: Any, scratch: Path, filename: str) -> list[str]:  # noqa: ANN401 - an open file
        if not self.extractor.takes_path:
            return list(self.extractor.command)
        suffix = PurePath(filename).suffix
        copy = scratch / f"file{suffix if SUFFIX.fullmatch(suffix) else ''}"  # the name is untrusted
        with copy.open("wb") as copied:
            shutil.copyfileobj(file, copied)
        return [word.replace(FILE, str(copy)) for word in self.extractor.command]

    @property
    def _freedoms(self) -> Iterator[str]:
        if self.extractor.is_service:
            yield "--may-connect"
        if self.unconfined:
            yield "--unconfined"

    def _printed(self, process: subprocess.Popen[bytes], scratch: Path, characters: int) -> bytes:
        """Return the output of a process, once it and its child processes have ended."""
        printed, most = bytearray(), characters * _BYTES_A_CHARACTER
        with selectors.DefaultSelector() as selector:
            stream = process.stdout
            assert stream  # noqa: S101 - it is a pipe
            selector.register(stream, selectors.EVENT_READ)
            while True:
                if selector.select(_LOOK_SECONDS):
                    block = os.read(stream.fileno(), _BLOCK)
                    if not block:
                        break
                    printed += block
                self._check(process, scratch, is_in_bounds=len(printed) <= most, characters=characters)
                if has_ended(process):  # child processes that still run must not delay the end
                    kill_group(process.pid)
        while not has_ended(process):  # programs close their output a moment before they end
            self._check(process, scratch, is_in_bounds=True, characters=characters)
            time.sleep(_END_SECONDS)
        return bytes(printed)

    def _check(self, process: subprocess.Popen[bytes], scratch: Path, *, is_in_bounds: bool, characters: int) -> None:
        if self._is_stopped:
            raise Stopped
        if not is_in_bounds:
            raise Unreadable(self.limits.too_many_characters(characters))
        now = time.monotonic()
        if now >= self.deadline:
            raise Unreadable(self.too_slow)
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        members = list(group_members(process.pid))
        if memory_use(members) > self.limits.memory_mb * _MIB:
            raise Unreadable(self.limits.too_much_memory)
        try:
            files = [*files_below(scratch), *removed_files(members)]
        except PermissionError:
            raise Unreadable(f"its extractor {self.extractor.name} created a folder that kb cannot read") from None
        if sum(disk_sizes(files)) > self._size + self.limits.memory_mb * _MIB:
            raise Unreadable(self.limits.too_much_memory)
        if sum(map(thread_count, members)) > TASKS:
            raise Unreadable(f"its extractor {self.extractor.name} started more than {TASKS} processes")


def launcher(limits: Limits, scratch: str, *options: str) -> list[str]:
    """Return the start of a command line that confines itself and then becomes the command after it."""
    numbers = {
        "--engine": os.getpid(),
        "--address-space": (2 * limits.memory_mb + 1024) * _MIB,
        "--largest-file": limits.output_mb * _MIB,
    }
    given = [word for name, number in numbers.items() for word in (name, str(number))]
    return [sys.executable, "-P", "-m", "kb.parser.extractor_exec", *given, "--scratch", scratch, *options]


def confined_extractor(limits: Limits, folder: Path | None = None) -> list[Restriction]:
    """Return the restrictions of a command on this system, by trying one that does nothing.

    Raises:
        OSError, subprocess.SubprocessError, ValueError: it did not start, or failed.
    """
    with tempfile.TemporaryDirectory(prefix="kb-extract-", dir=folder) as scratch:
        command = launcher(limits, scratch, "--report")
        done = subprocess.run(  # noqa: S603 - kb's own
            command, cwd=scratch, env=environment(), capture_output=True, check=True, timeout=_REPORT_SECONDS
        )
    confined: list[Restriction] = json.loads(done.stdout)
    return confined


def last_words(errors: Any) -> str:  # noqa: ANN401 - an open file
    """Return ": " and the last line of a file, or an empty string for an empty file."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - _BLOCK))
    lines = errors.read().decode("utf-8", "replace").split("\n")
    last = next((line for line in map(printable, reversed(lines)) if line), "")
    return f": {last}" if last else ""


def printable(line: str) -> str:
    """Return the printable part of a line of a program's output."""
    return "".join(character if character.isprintable() else " " for character in line).strip()[:_LAST_WORDS]


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended, without releasing its process number.

    Python on macOS has no `waitid` before 3.13, nor has Windows; there, this releases the number.
    """
    if sys.platform == "win32" or not hasattr(os, "waitid"):
        return process.poll() is not None
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return True


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all processes that it has started, unless it has already ended."""
    if not has_ended(process):
        kill_group(process.pid)
    if sys.platform != "win32" and hasattr(os, "waitid"):
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        kill_group(process.pid)
        process.wait()
    else:
        process.wait()
        kill_group(process.pid)  # no other process gets the group's number while a process of the group exists
    if process.stdout:
        process.stdout.close()


def kill_group(pid: int) -> None:
    """Kill all processes in the group of a process that nobody has waited for yet; on Windows, only that process."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL)
