"""Files that arrive in pieces (requirements G-7 to G-10)."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID, uuid4

import pybase64
from filelock import BaseFileLock, FileLock

from kb.api.errors import DiskFull, Invalid, NotFound, SettingError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIFETIME_SECONDS = 600
"""How long an upload may take (requirement G-10)."""

MAX_CHUNK = 3_000_000
"""The most bytes of a chunk: in lines of base64, with JSON around them, they still fit the 4 MiB of an MCP request."""

MAX_CHUNKS = 10_000

SMALLEST_ROOM = 1 << 20
"""What an upload counts for at least, so that small ones are not without number."""

ANNOUNCED = "upload.json"
TAKEN = ".taken"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on its way in, as it was announced."""

    id: str
    filename: str
    total_size: int
    tags: list[str]
    expires: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """What uploads may take: bytes of one, bytes of all together, seconds."""

    size: int
    all_sizes: int
    seconds: float = LIFETIME_SECONDS


class Uploads:
    """The uploads in progress: a folder for each, with what was announced and the chunks by their index.

    All that is known of an upload is in its folder, and changes there by renaming, so that several processes may share
    one staging folder. Without one that is given, there is a temporary one, which ends with `close`.

    Args:
        bounds: what uploads may take.
        folder: the staging folder; it is made readable for this user alone.
        clock: seconds since the epoch.

    Raises:
        SettingError: the folder cannot be used.
    """

    def __init__(self, bounds: Bounds, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._bounds = bounds
        self._is_shared = folder is not None
        self._folder = _private(folder) if folder else Path(tempfile.mkdtemp(prefix="kb-uploads-"))
        self._clock = clock

    def start(self, filename: str, total_size: int, tags: list[str]) -> str:
        """Make room for a file; answers its upload_id.

        Raises:
            TooLarge: the file is larger than this gateway takes, alone or with the others that are on their way.
            DiskFull: there is no room for it.
        """
        if total_size > self._bounds.size:
            raise TooLarge(f"total_size: at most {self._bounds.size} bytes (KB_MCP_MAX_UPLOAD_MB).")
        upload = Upload(str(uuid4()), filename, total_size, tags, self._clock() + self._bounds.seconds)
        with _writing("try again"), self._locked():
            if sum(map(_room, self._all())) + _room(upload) > self._bounds.all_sizes:
                raise TooLarge(
                    "total_size: too much is being uploaded at once (KB_MCP_MAX_UPLOADS_MB); finish other uploads, or"
                    " try again in ten minutes."
                )
            making = self._folder / f"{upload.id}.new"
            making.mkdir(mode=0o700)
            (making / ANNOUNCED).write_text(json.dumps(asdict(upload)))
            making.rename(self._folder / upload.id)
        return upload.id

    def add_chunk(self, upload_id: str, index: int, data: str, digest: str = "") -> tuple[int, int]:
        """Keep a chunk; one sent again replaces itself. Answers how many bytes there are, and how many there will be.

        Raises:
            NotFound: there is no such upload.
            Invalid: `data` is not base64, has another SHA-256 than `digest`, or is more than was announced.
            DiskFull: there is no room for it.
        """
        upload = self._get(upload_id)
        raw = _decoded(data)
        if digest:
            _check_digest(sha256(raw).hexdigest(), digest, f"send chunk {index} again")
        folder = self._folder / upload_id
        size = sum(other for at, other in _sizes(folder).items() if at != index) + len(raw)
        if size > upload.total_size:
            raise Invalid(f"data: with this chunk there are {size} bytes, but total_size was {upload.total_size}.")
        try:
            with _writing(f"send chunk {index} again"):
                _replace(folder / str(index), raw)
        except FileNotFoundError:
            raise _no_upload(upload_id) from None
        return size, upload.total_size

    def take(self, upload_id: str, digest: str = "") -> tuple[Upload, BinaryIO]:
        """The upload, which is over then, and the whole file, complete and in order; `discard` removes it.

        Raises:
            NotFound: there is no such upload.
            Invalid: a chunk is missing, the sizes do not add up, or the file has another SHA-256 than `digest`;
                nothing of it is left.
            DiskFull: likewise.
        """
        upload = self._get(upload_id)
        taken = self._taken(upload)
        try:
            (self._folder / upload.id).rename(taken)
        except OSError:
            raise _no_upload(upload_id) from None
        try:
            _check_complete(upload, _sizes(taken))
            with _writing("begin again with kb_upload_start"):
                return upload, _assembled(taken, digest)
        except BaseException:
            self.discard(upload)
            raise

    def discard(self, upload: Upload) -> None:
        """Remove what was taken."""
        shutil.rmtree(self._taken(upload), ignore_errors=True)

    def expire(self) -> None:
        """Remove what took too long, and what a process that ended left behind."""
        now = self._clock()
        for folder in self._folder.glob("*/"):
            if not _is_uuid(folder.stem):
                continue  # not ours
            upload = _read(folder / ANNOUNCED) if folder.suffix == "" else None
            ends = upload.expires if upload else _changed(folder) + 2 * self._bounds.seconds
            if ends <= now:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove everything, unless other processes share it."""
        if not self._is_shared:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _locked(self) -> BaseFileLock:
        """The lock of the staging folder, which is made again if it was cleaned up with other temporary files."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock(self._folder / "lock")

    def _all(self) -> Iterator[Upload]:
        for announced in self._folder.glob(f"*/{ANNOUNCED}"):
            if announced.parent.suffix == "" and (upload := _read(announced)):
                yield upload

    def _get(self, upload_id: str) -> Upload:
        upload = _read(self._folder / upload_id / ANNOUNCED) if _is_uuid(upload_id) else None
        if upload is None or upload.expires <= self._clock():
            raise _no_upload(upload_id)
        return upload

    def _taken(self, upload: Upload) -> Path:
        return self._folder / f"{upload.id}{TAKEN}"


def _private(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & stat.S_IWOTH:
            raise SettingError(f"KB_MCP_UPLOAD_DIR: others write into {folder}; name a folder for uploads alone")
        folder.chmod(0o700)
    except OSError as error:
        raise SettingError(f"KB_MCP_UPLOAD_DIR: {error}") from None
    return folder


def _is_uuid(text: str) -> bool:
    """Whether it is written as this gateway writes them: nothing else is ever made a path of."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _no_upload(upload_id: str) -> NotFound:
    return NotFound(
        f"upload_id: there is no upload {upload_id[:40]!r}. It was finished, took more than ten minutes, or the"
        " gateway restarted: begin again with kb_upload_start."
    )


def _room(upload: Upload) -> int:
    return max(upload.total_size, SMALLEST_ROOM)


def _read(announced: Path) -> Upload | None:
    """What was announced; None if there is nothing, or only what a machine that crashed left of it."""
    try:
        return Upload(**json.loads(announced.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")


def _sizes(folder: Path) -> dict[int, int]:
    """The bytes of each chunk that is there."""
    try:
        with os.scandir(folder) as entries:
            return {int(entry.name): entry.stat().st_size for entry in entries if entry.name.isdecimal()}
    except FileNotFoundError:
        return {}


def _replace(path: Path, raw: bytes) -> None:
    """Write a file that is there as a whole or not at all, whoever else writes it."""
    scratch = path.with_name(f"{path.name}.{uuid4()}")
    try:
        scratch.write_bytes(raw)
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise


@contextmanager
def _writing(remedy: str) -> Iterator[None]:
    """Around what writes.

    Raises:
        DiskFull: instead of the operating system's own error.
    """
    try:
        yield
    except OSError as error:
        if not DiskFull.is_why(error):
            raise
        raise DiskFull(f"The gateway's disk is full: tell the user to make room, then {remedy}.") from None


def _decoded(data: str) -> bytes:
    try:
        # Many tools break base64 into lines.
        raw = pybase64.b64decode("".join(data.split()) if "\n" in data else data, validate=True)
    except ValueError:
        raise Invalid(
            "data: not valid base64; send it again in standard base64, padded with =, nothing else."
        ) from None
    if not 0 < len(raw) <= MAX_CHUNK:
        raise Invalid(f"data: a chunk holds 1 to {MAX_CHUNK} bytes; 1 MiB is a good size.")
    return raw


def _check_digest(actual: str, expected: str, remedy: str) -> None:
    if actual != expected.strip().lower():
        raise Invalid(f"sha256: what arrived has {actual}; the data was changed on its way here: {remedy}.")


def _check_complete(upload: Upload, sizes: dict[int, int]) -> None:
    missing = min(set(range(len(sizes) + 1)) - sizes.keys())
    if missing < len(sizes) or not sizes:
        raise Invalid(f"upload_id: chunk {missing} is missing; begin again with kb_upload_start.")
    size = sum(sizes.values())
    if size != upload.total_size:
        raise Invalid(
            f"upload_id: {size} bytes arrived, but total_size was {upload.total_size};"
            " begin again with kb_upload_start."
        )


def _assembled(folder: Path, digest: str) -> BinaryIO:
    """The chunks as one file. Each is removed once it is copied: the disk never holds the file twice."""
    whole, *others = (folder / str(index) for index in sorted(_sizes(folder)))
    with whole.open("ab") as file:
        for chunk in others:
            with chunk.open("rb") as source:
                shutil.copyfileobj(source, file, MAX_CHUNK)
            chunk.unlink()
    if digest:
        with whole.open("rb") as file:
            _check_digest(file_digest(file, "sha256").hexdigest(), digest, "begin again with kb_upload_start")
    return whole.open("rb")
