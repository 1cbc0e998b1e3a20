"""Names of files that every file system accepts."""

import re
from typing import Final

FORBIDDEN: Final = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
"""Characters that some file systems refuse in names."""

LONGEST: Final = 240
"""In bytes, with space for the id: a file name may have 255."""


def safe_name(name: str) -> str:
    """Return a name that every file system accepts."""
    name = FORBIDDEN.sub("-", name).rstrip(" .") or "-"
    stem, dot, suffix = name.rpartition(".")
    room = LONGEST - len(f"{dot}{suffix}".encode())
    if len(name.encode()) <= LONGEST or room <= 0:
        return name.encode()[:LONGEST].decode(errors="ignore")
    return stem.encode()[:room].decode(errors="ignore") + dot + suffix
