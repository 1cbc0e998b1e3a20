"""The paths of files in an export: the folders that they came from, and their own names."""

import os.path
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from kb.folders.safe_names import safe_name

ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)
WEB: Final = "web"
"""The folder for documents from web addresses."""


class Tree:
    """Assigns each file of an export its path.

    Absolute paths begin with the last folder that all of them share.

    Args:
        source_paths: the source paths of all files.
    """

    def __init__(self, source_paths: Iterable[str]) -> None:
        whole = [path for path in source_paths if path.startswith("/")]
        shared = os.path.commonpath([str(PurePosixPath(path).parent) for path in whole]) if whole else "/"
        self._top = PurePosixPath(shared).parent
        self._files: set[str] = set()
        self._inner: set[str] = set()

    def place(self, source_path: str, document_id: int) -> PurePosixPath:
        """Return the path of a file, with its id in the name if the path is taken."""
        own = self._folders(source_path)
        with_id = own.with_name(f"{own.stem} ({document_id}){own.suffix}")
        apart = PurePosixPath(f"{document_id}-{own.name}")  # another file's name would be a folder here
        place = next(path for path in (own, with_id, apart) if path is apart or not self._is_taken(path))
        self._files.add(str(place).casefold())
        self._inner.update(str(parent).casefold() for parent in place.parents)
        return place

    def _folders(self, source_path: str) -> PurePosixPath:
        if ADDRESS.match(source_path):
            parts = [WEB, *ADDRESS.sub("", source_path).split("/")]
        elif source_path.startswith("/"):
            path = PurePosixPath(source_path)
            parts = list(path.relative_to(self._top if path.is_relative_to(self._top) else "/").parts)
        else:
            parts = source_path.replace("\\", "/").split("/")
        named = [safe_name(part) for part in parts if part not in ("", ".", "..")]
        return PurePosixPath(*named or ["file"])

    def _is_taken(self, place: PurePosixPath) -> bool:
        """Return whether the path, or one of its folders, is a file already, or the path is a folder."""
        path = str(place).casefold()
        above = {str(parent).casefold() for parent in place.parents}
        return path in self._files or path in self._inner or bool(above & self._files)
