"""Blobs in a folder: the data folder, or one that several engines share."""

import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO, Final
from uuid import uuid4

from kb.api.errors import DiskFull, FilesUnavailable
from kb.blobs.protocol import BLOCK_SIZE, DIGEST, KEPT, Blob, OpenBlob, Readable, kept_as
from kb.filesystem import sync, sync_descriptor

PART: Final = ".part"
"""The ending of an unfinished file."""


class FolderBlobs:
    """See `kb.blobs.protocol.Blobs`.

    Args:
        root: the folder; the names are paths below it.
    """

    is_shared = False
    is_outside = False

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, name: str) -> Path:
        """Return the path of a blob, whether or not it exists.

        Raises:
            FileNotFoundError: the name leads out of the folder.
        """
        path = PurePath(name)
        if path.anchor or ".." in path.parts:
            raise FileNotFoundError(f"not a file name: {name!r}")
        return self._root / path

    def put(self, name: str, content: Readable) -> None:
        with self._reaching(), self._written(name) as part, part.open("xb") as file:
            while block := content.read(BLOCK_SIZE):
                file.write(block)
            file.flush()
            sync_descriptor(file.fileno())

    def copy(self, names: Mapping[str, str]) -> None:
        """Give blobs a second name, as hard links if possible."""
        folders = set[Path]()
        with self._reaching():
            try:
                for name, to in names.items():
                    self._link(name, to)
                    folders |= {self.path(to).parent, self.path(to).parent.parent}
            finally:  # once for all links in a folder: the first flush takes most of the time
                for folder in folders:
                    sync(folder)

    def _link(self, name: str, to: str) -> None:
        path = self.path(to)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.link(self.path(name), path)
        except FileExistsError:
            return
        except OSError:  # no hard links, or a full disk, which copying will detect
            with self._written(to) as part:
                shutil.copyfile(self.path(name), part)
                sync(part)

    def open(self, name: str) -> OpenBlob:
        with self._reaching():
            file = self.path(name).open("rb")
            return OpenBlob(os.fstat(file.fileno()).st_size, self._blocks(file), file)

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        with self._reaching():
            self.path(name).stat()
        yield self.path(name)

    def size(self, name: str) -> int | None:
        try:
            with self._reaching():
                return self.path(name).stat().st_size
        except FileNotFoundError:
            return None

    def remove(self, names: Iterable[str]) -> None:
        with self._reaching():
            for name in names:
                self.path(name).unlink(missing_ok=True)

    def list(self, prefix: str) -> Iterator[Blob]:
        """Yield the blobs below a folder, and remains of unfinished ones."""
        now, start = time.time(), len(str(self._root / "x")) - 1  # as Path writes it: without "."
        with self._reaching():
            for folder, _, names in os.walk(self.path(prefix)):
                for name in names:
                    path = os.path.join(folder, name)  # noqa: PTH118 - faster, for very many files
                    try:
                        stat = os.lstat(path)
                    except FileNotFoundError:
                        continue
                    yield Blob(path[start:].replace(os.sep, "/"), stat.st_size, now - stat.st_mtime)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if DiskFull.is_why(error):
                raise DiskFull from error
            raise

    @contextmanager
    def _written(self, name: str) -> Iterator[Path]:
        """Provide a temporary file next to a blob, and rename it to the blob when the block ends."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_name(f"{path.name}.{uuid4().hex}{PART}")
        try:
            yield part
            part.replace(path)
            sync(path.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _blocks(self, file: BinaryIO) -> Generator[bytes]:
        with file, self._reaching():
            while block := file.read(BLOCK_SIZE):
                yield block


class KeptFiles:
    """A folder of kept files for maintenance: of a data folder, a backup or an export."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, content_hash: str) -> Path:
        """Return the path of the file with this content, whether or not it is kept.

        Raises:
            FileNotFoundError: the hash is not a SHA-256.
        """
        return self._folder / kept_as(content_hash).removeprefix(KEPT)

    def has(self, content_hash: str) -> bool:
        return bool(DIGEST.fullmatch(content_hash)) and self.path(content_hash).exists()

    def digests(self) -> set[str]:
        return {path.name for path in self._folder.glob("??/*") if _is_kept(path)}


def _is_kept(path: Path) -> bool:
    return bool(DIGEST.fullmatch(path.name)) and path.name.startswith(path.parent.name) and not path.is_dir()


class SharedFolder(FolderBlobs):
    """A folder that several engines share, and that may be unavailable.

    Args:
        root: the folder. Without `marker` in it, it counts as unavailable, because it may not be mounted.
        marker: the name of a blob.
    """

    is_shared = True
    is_outside = True

    def __init__(self, root: Path, marker: str) -> None:
        super().__init__(root)
        self._marker = root / marker

    def put(self, name: str, content: Readable) -> None:
        self._check(self.path(name))
        super().put(name, content)

    def copy(self, names: Mapping[str, str]) -> None:
        for to in names.values():
            self._check(self.path(to))
        super().copy(names)

    def size(self, name: str) -> int | None:
        # In a new folder, the marker may be missing.
        if self.path(name) == self._marker and self._root.is_dir() and not self._is_there():
            return None
        return super().size(name)

    def _check(self, path: Path) -> None:
        if path != self._marker:
            with self._reaching():
                self._marker.stat()

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            with super()._reaching():
                yield
        except FileNotFoundError as error:
            if self._is_there():
                raise
            raise FilesUnavailable(
                f"The folder of the files is missing: {self._root}. Check that it is mounted."
            ) from error
        except OSError as error:
            raise FilesUnavailable(f"The folder of the files does not answer: {error}.") from error

    def _is_there(self) -> bool:
        try:
            return self._marker.exists()
        except OSError:
            return False
