"""Where uploads are kept until they are complete (requirements G-7 to G-10)."""

from __future__ import annotations

import json
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID, uuid4

from filelock import BaseFileLock, FileLock

from kb import clock as clocks
from kb.api.errors import Invalid, NotFound, SettingError, TooLarge
from kb_mcp import upload_chunks

LIFETIME_SECONDS: Final = 600
"""How long an upload may take (requirement G-10)."""

MIN_RESERVATION: Final = 1 << 20
"""The least that an upload counts for, so that the number of small ones is limited, too."""

MANIFEST: Final = "upload.json"
TAKEN_SUFFIX: Final = ".taken"
SECRET_FILE: Final = "secret"  # noqa: S105 - a name
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload as it was announced; its manifest holds these fields. `by` is the name of the key it came with.

    `client` is the program that announced it. `expires` counts since the `boot` of the machine that it was announced
    on, so that a clock that is set ends no upload.
    """

    id: str
    filename: str
    total_size: int
    tags: list[str]
    expires: float
    source_path: str | None = None
    sha256: str = ""
    by: str | None = None
    client: str = ""
    boot: str = ""

    @property
    def reserved_bytes(self) -> int:
        return max(self.total_size, MIN_RESERVATION)


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Limits in bytes of one file, bytes of all uploads in progress, and seconds."""

    file_size: int
    reserved_bytes: int
    seconds: float = LIFETIME_SECONDS


class UploadStore:
    """The uploads in progress: a folder for each, with its manifest and its chunks.

    All state of an upload is in its folder, and changes there by renaming, so that several processes may share one
    staging folder. Without one that is given, there is a temporary one, which `close` removes.

    Args:
        limits: what uploads may take.
        folder: the staging folder; it is made readable for this user alone.
        clock: seconds that only count on, the same in all processes of this machine.

    Raises:
        SettingError: the folder cannot be used.
    """

    def __init__(
        self, limits: UploadLimits, folder: Path | None = None, clock: Callable[[], float] = clocks.uptime
    ) -> None:
        self._limits = limits
        self._is_shared = folder is not None
        self._folder = _private_folder(folder) if folder else Path(tempfile.mkdtemp(prefix="kb-uploads-"))
        self._clock = clock

    def start(
        self,
        filename: str,
        total_size: int,
        tags: list[str],
        *,
        source_path: str | None = None,
        sha256: str = "",
        by: str | None = None,
        client: str = "",
    ) -> str:
        """Reserve room for a file. Return its upload_id.

        Raises:
            TooLarge: the file is above the limit, alone or with the other uploads in progress.
            DiskFull: there is no room for it.
        """
        if total_size > self._limits.file_size:
            raise TooLarge(f"total_size: at most {self._limits.file_size} bytes (KB_MCP_MAX_UPLOAD_MB).")
        expires = self._clock() + self._limits.seconds
        boot = clocks.boot_id()
        upload = Upload(str(uuid4()), filename, total_size, tags, expires, source_path, sha256, by, client, boot)
        with upload_chunks.explain_full_disk("try again"), self._locked():
            reserved = sum(other.reserved_bytes for other in self._uploads())
            if reserved + upload.reserved_bytes > self._limits.reserved_bytes:
                raise TooLarge(
                    "total_size: too much is being uploaded at once; finish other uploads, or try again in ten minutes."
                )
            self._create(upload)
        return upload.id

    def add_chunk(self, upload_id: str, index: int, data: str, digest: str = "") -> tuple[int, int]:
        """Keep a chunk, in the place of an earlier one of that index. Return the bytes received, and those announced.

        Raises:
            NotFound: there is no such upload.
            Invalid: `data` is not base64, has another SHA-256 than `digest`, or is more than was announced.
            DiskFull: there is no room for it.
        """
        upload = self.get(upload_id)
        raw = upload_chunks.decode(data, index, digest)
        folder = self._folder / upload.id
        others = (size for other, size in upload_chunks.sizes(folder).items() if other != index)
        received = sum(others) + len(raw)
        if received > upload.total_size:
            raise Invalid(f"data: with this chunk there are {received} bytes, but total_size was {upload.total_size}.")
        try:
            upload_chunks.write(folder, index, raw)
        except FileNotFoundError:
            raise _unknown_upload(upload_id) from None
        return received, upload.total_size

    def take(self, upload_id: str, digest: str = "") -> tuple[Upload, BinaryIO]:
        """End an upload. Return it with the whole file, which `discard` removes.

        Raises:
            NotFound: there is no such upload.
            Invalid: something is missing, and what came is kept; or the file has another SHA-256 than `digest` or than
                was announced, and nothing of it is left.
            DiskFull: likewise.
        """
        upload = self.get(upload_id)
        upload_chunks.check_complete(upload_chunks.sizes(self._folder / upload.id), upload.total_size)
        taken = self._taken_folder(upload)
        try:
            (self._folder / upload.id).rename(taken)
        except OSError:
            raise _unknown_upload(upload_id) from None
        try:
            return upload, upload_chunks.assemble(taken, upload.total_size, digest or upload.sha256)
        except BaseException:
            self.discard(upload)
            raise

    @contextmanager
    def whole(self, upload: Upload) -> Iterator[Callable[[bytes], None]]:
        """Take the file in one piece, in the place of all chunks if it is as was announced; nothing of it stays if not.

        Yields what keeps the next part.

        Raises:
            NotFound: the upload is over.
            Invalid: it is shorter or longer, or has another SHA-256 than was announced.
            DiskFull: there is no room for it.
        """
        scratch = self._folder / upload.id / f"whole.{uuid4()}"
        announced = f"total_size: {upload.total_size} bytes were announced, and"
        digest, size = sha256(), 0

        def write(part: bytes) -> None:
            nonlocal size
            size += len(part)
            if size > upload.total_size:
                raise Invalid(f"{announced} more came; nothing of it was kept.")
            digest.update(part)
            file.write(part)

        try:
            with upload_chunks.explain_full_disk("send it again"), scratch.open("xb") as file:
                yield write
            if size < upload.total_size:
                raise Invalid(f"{announced} {size} came; send it again.")
            if upload.sha256:
                upload_chunks.check_digest(digest.hexdigest(), upload.sha256, "send the file that was announced")
            for index in upload_chunks.sizes(scratch.parent):
                scratch.with_name(str(index)).unlink()
            scratch.replace(scratch.with_name("0"))
        except FileNotFoundError:
            raise _unknown_upload(upload.id) from None
        finally:
            scratch.unlink(missing_ok=True)

    def discard(self, upload: Upload) -> None:
        """Remove the file of an upload that was taken."""
        shutil.rmtree(self._taken_folder(upload), ignore_errors=True)

    def expire(self) -> None:
        """Remove the uploads that took too long, and what a process that ended left behind."""
        for folder in self._folder.glob("*/"):
            if not _is_upload_id(folder.stem):
                continue  # not ours
            upload = _read_manifest(folder / MANIFEST) if folder.suffix == "" else None
            if self._is_over(upload, folder):
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove everything, unless other processes share it."""
        if not self._is_shared:
            shutil.rmtree(self._folder, ignore_errors=True)

    def secret(self) -> bytes:
        """Return random bytes that the processes of this folder share, and that stay as long as it does."""
        file = self._folder / SECRET_FILE
        with self._locked():
            if not file.exists():
                new = file.with_suffix(".new")
                new.touch(mode=0o600)
                new.write_bytes(secrets.token_bytes(SECRET_BYTES))
                new.replace(file)
            return file.read_bytes()

    def _locked(self) -> BaseFileLock:
        """Lock the staging folder, which is made again if it was cleaned up with other temporary files."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock(self._folder / "lock")

    def _create(self, upload: Upload) -> None:
        new = self._folder / f"{upload.id}.new"
        new.mkdir(mode=0o700)
        (new / MANIFEST).write_text(json.dumps(asdict(upload)))
        new.rename(self._folder / upload.id)

    def _uploads(self) -> Iterator[Upload]:
        for manifest in self._folder.glob(f"*/{MANIFEST}"):
            if manifest.parent.suffix == "" and (upload := _read_manifest(manifest)):
                yield upload

    def get(self, upload_id: str) -> Upload:
        """Return an upload in progress.

        Raises:
            NotFound: there is no such upload.
        """
        upload = _read_manifest(self._folder / upload_id / MANIFEST) if _is_upload_id(upload_id) else None
        if upload is None or self._is_over(upload, self._folder / upload_id):
            raise _unknown_upload(upload_id)
        return upload

    def _is_over(self, upload: Upload | None, folder: Path) -> bool:
        """Return whether an upload took too long; one of before the last boot, or half a one, some time later."""
        if upload and upload.boot == clocks.boot_id():
            return upload.expires <= self._clock()
        left = _modified_at(folder) + 2 * self._limits.seconds + clocks.STEP_SECONDS
        return left <= clocks.own.expiry().timestamp()

    def check_sender(self, upload_id: str, by: str | None) -> None:
        """Refuse an upload that another key began, like one that is not there.

        Raises:
            NotFound: it is none of the key's.
        """
        if self.get(upload_id).by != by:
            raise _unknown_upload(upload_id)

    def _taken_folder(self, upload: Upload) -> Path:
        return self._folder / f"{upload.id}{TAKEN_SUFFIX}"


def _private_folder(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & stat.S_IWOTH:
            raise SettingError(f"KB_MCP_UPLOAD_DIR: others write into {folder}; name a folder for uploads alone")
        folder.chmod(0o700)
    except OSError as error:
        raise SettingError(f"KB_MCP_UPLOAD_DIR: {error}") from None
    return folder


def _is_upload_id(text: str) -> bool:
    """Return whether it is a UUID as this gateway writes them: nothing else is ever made a path of."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _unknown_upload(upload_id: str) -> NotFound:
    return NotFound(
        f"upload_id: there is no upload {upload_id[:40]!r}. It was finished, took more than ten minutes, or the"
        " gateway restarted: begin again with kb_upload_start."
    )


def _read_manifest(path: Path) -> Upload | None:
    """Return the upload; None if there is no manifest, or only what a machine that crashed left of it."""
    try:
        return Upload(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")
