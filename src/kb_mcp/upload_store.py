"""Store uploads until they are complete (requirements G-7 to G-10)."""

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
from kb.api.limit_errors import UPLOADS_FULL, upload_limit
from kb_mcp import upload_chunks

LIFETIME_SECONDS: Final = 600
"""Maximum duration of an upload (requirement G-10)."""

MIN_RESERVATION: Final = 1 << 20
"""Minimum size reserved for an upload, which also limits the number of small uploads."""

MANIFEST: Final = "upload.json"
TAKEN_SUFFIX: Final = ".taken"
SECRET_FILE: Final = "secret"  # noqa: S105 - a name
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Upload:
    """An announced upload; its manifest contains these fields. `by` is the name of the key.

    `client` is the program that announced it. `expires` counts from the `boot` of the machine, so that setting the
    clock does not end an upload.
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
    """Limits: bytes per file, bytes of all uploads in progress, and seconds."""

    file_size: int
    reserved_bytes: int
    seconds: float = LIFETIME_SECONDS


class UploadStore:
    """The uploads in progress: a folder for each, with its manifest and chunks.

    All state of an upload is in its folder and changes by renaming, so that several processes can share one staging
    folder. Without a given folder, the store uses a temporary one, which `close` removes.

    Args:
        limits: the limits of uploads.
        folder: the staging folder; it is made private to this user.
        clock: monotonic seconds, the same in all processes of this machine.

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
        """Reserve space for a file. Return its upload_id.

        Raises:
            TooLarge: the file exceeds the limit, either by its own size or together with other uploads in progress.
            DiskFull: the disk is full.
        """
        if total_size > self._limits.file_size:
            raise TooLarge(f"total_size: {upload_limit(self._limits.file_size)}")
        expires = self._clock() + self._limits.seconds
        boot = clocks.boot_id()
        upload = Upload(str(uuid4()), filename, total_size, tags, expires, source_path, sha256, by, client, boot)
        with upload_chunks.explain_full_disk("try again"), self._locked():
            reserved = sum(other.reserved_bytes for other in self._uploads())
            if reserved + upload.reserved_bytes > self._limits.reserved_bytes:
                raise TooLarge(f"total_size: {UPLOADS_FULL}")
            self._create(upload)
        return upload.id

    def add_chunk(self, upload_id: str, index: int, data: str, digest: str = "") -> tuple[int, int]:
        """Store a chunk; an earlier one with this index is replaced. Return the received and the announced bytes.

        Raises:
            NotFound: the upload does not exist.
            Invalid: `data` is not base64, has another SHA-256 than `digest`, or exceeds the announced size.
            DiskFull: the disk is full.
        """
        upload = self.get(upload_id)
        raw = upload_chunks.decode(data, index, digest)
        folder = self._folder / upload.id
        others = (size for other, size in upload_chunks.sizes(folder).items() if other != index)
        received = sum(others) + len(raw)
        if received > upload.total_size:
            raise Invalid(f"data: with this part, kb has {received} bytes, but total_size is {upload.total_size}.")
        try:
            upload_chunks.write(folder, index, raw)
        except FileNotFoundError:
            raise _unknown_upload(upload_id) from None
        return received, upload.total_size

    def take(self, upload_id: str, digest: str = "") -> tuple[Upload, BinaryIO]:
        """Finish an upload. Return it with the whole file, which `discard` removes.

        Raises:
            NotFound: the upload does not exist.
            Invalid: a part is missing, and the received chunks are kept; or the SHA-256 is not `digest` or the
                announced one, and the upload is discarded.
            DiskFull: the disk is full, and the upload is discarded.
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
        """Receive the file in one piece, which replaces all chunks if it is as announced and is otherwise discarded.

        Yields a function that writes the next part.

        Raises:
            NotFound: the upload has ended.
            Invalid: the size or the SHA-256 is not the announced one.
            DiskFull: the disk is full.
        """
        scratch = self._folder / upload.id / f"whole.{uuid4()}"
        announced = f"total_size: the announced size is {upload.total_size} bytes, but"
        digest, size = sha256(), 0

        def write(part: bytes) -> None:
            nonlocal size
            size += len(part)
            if size > upload.total_size:
                raise Invalid(f"{announced} kb received more. Start again with kb_upload_start and the right size.")
            digest.update(part)
            file.write(part)

        try:
            with upload_chunks.explain_full_disk("send it again"), scratch.open("xb") as file:
                yield write
            if size < upload.total_size:
                raise Invalid(f"{announced} kb received {size}. Send the file again.")
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
        """Remove the file of a finished upload."""
        shutil.rmtree(self._taken_folder(upload), ignore_errors=True)

    def expire(self) -> None:
        """Remove expired uploads and the leftovers of stopped processes."""
        for folder in self._folder.glob("*/"):
            if not _is_upload_id(folder.stem):
                continue  # not ours
            upload = _read_manifest(folder / MANIFEST) if folder.suffix == "" else None
            if self._is_over(upload, folder):
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove everything, unless other processes share the folder."""
        if not self._is_shared:
            shutil.rmtree(self._folder, ignore_errors=True)

    def secret(self) -> bytes:
        """Return random bytes that all processes with this folder share, and that last as long as the folder."""
        file = self._folder / SECRET_FILE
        with self._locked():
            if not file.exists():
                new = file.with_suffix(".new")
                new.touch(mode=0o600)
                new.write_bytes(secrets.token_bytes(SECRET_BYTES))
                new.replace(file)
            return file.read_bytes()

    def _locked(self) -> BaseFileLock:
        """Lock the staging folder; recreate it if a cleanup of temporary files removed it."""
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
            NotFound: the upload does not exist.
        """
        upload = _read_manifest(self._folder / upload_id / MANIFEST) if _is_upload_id(upload_id) else None
        if upload is None or self._is_over(upload, self._folder / upload_id):
            raise _unknown_upload(upload_id)
        return upload

    def _is_over(self, upload: Upload | None, folder: Path) -> bool:
        """Return whether an upload has expired; one from before the last boot, or an incomplete one, expires later."""
        if upload and upload.boot == clocks.boot_id():
            return upload.expires <= self._clock()
        left = _modified_at(folder) + 2 * self._limits.seconds + clocks.STEP_SECONDS
        return left <= clocks.own.expiry().timestamp()

    def check_sender(self, upload_id: str, by: str | None) -> None:
        """Refuse an upload that another key began, as if it did not exist.

        Raises:
            NotFound: the upload does not belong to the key.
        """
        if self.get(upload_id).by != by:
            raise _unknown_upload(upload_id)

    def _taken_folder(self, upload: Upload) -> Path:
        return self._folder / f"{upload.id}{TAKEN_SUFFIX}"


def _private_folder(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & stat.S_IWOTH:
            raise SettingError(f"KB_MCP_UPLOAD_DIR: other users can write to {folder}; choose a private folder")
        folder.chmod(0o700)
    except OSError as error:
        raise SettingError(f"KB_MCP_UPLOAD_DIR: {error}") from None
    return folder


def _is_upload_id(text: str) -> bool:
    """Return whether a text is a UUID in the gateway's format; only such texts are used as paths."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _unknown_upload(upload_id: str) -> NotFound:
    return NotFound(
        f"upload_id: no upload {upload_id[:40]!r} exists. It is finished, took more than ten minutes, or the gateway"
        " restarted. Start again with kb_upload_start."
    )


def _read_manifest(path: Path) -> Upload | None:
    """Return the upload; None if the manifest is missing or was damaged by a crash."""
    try:
        return Upload(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")
