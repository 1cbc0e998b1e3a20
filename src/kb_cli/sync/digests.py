"""Hash files."""

import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from kb.folders.timed_reads import listening, open_file

BLOCK: Final = 1 << 20


@dataclass
class DigestCache:
    """Caches the SHA-256 of files that look unchanged, because a watched folder is read repeatedly."""

    _digests: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file.

        Raises:
            OSError: the file cannot be read or does not respond.
        """
        with listening(path) as patient:
            descriptor = patient.call(open_file, path)
            try:
                status = os.fstat(descriptor)
                state = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
                if path not in self._digests or self._digests[path][0] != state:
                    digest = sha256()
                    while block := patient.call(os.read, descriptor, BLOCK):
                        digest.update(block)
                    self._digests[path] = state, digest.hexdigest()
            finally:
                if not patient.is_stuck:
                    os.close(descriptor)
        return self._digests[path][1]
