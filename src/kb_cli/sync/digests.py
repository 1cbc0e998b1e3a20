"""The digests of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path


@dataclass
class DigestCache:
    """The SHA-256 of files, kept while a file looks unchanged: a watched folder is read again and again."""

    _digests: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)

    def digest(self, path: str) -> str:
        """Return the file's digest.

        Raises:
            OSError: it cannot be read.
        """
        with Path(path).open("rb") as file:
            status = Path(path).stat()
            state = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if path not in self._digests or self._digests[path][0] != state:
                self._digests[path] = state, file_digest(file, "sha256").hexdigest()
        return self._digests[path][1]
