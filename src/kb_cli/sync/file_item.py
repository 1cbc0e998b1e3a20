"""A file on its way into the knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class FileItem:
    """A file and what became of it.

    Args:
        path: the file.
        source_path: what the engine calls it.
        tags: what it shall be tagged with.
        job: the engine's receipt, or when waited for the finished job; None if it was not sent.
        document_id: the document that has its content.
        error: why it did not go in.
        is_known_error: whether that is known since an earlier round, and the file was not sent again.
        is_unread: whether it could not be read here.
        is_named: whether someone named it, and not a folder that it is in.
        is_empty: whether there is nothing in it, so that it was not sent.
        is_new: whether the engine had nothing at its path.
        moved_from: the source path that its document had before.
    """

    path: str
    source_path: str
    tags: Sequence[str] = ()
    job: dict[str, Any] | None = None
    document_id: int | None = None
    error: str | None = None
    is_known_error: bool = False
    is_unread: bool = False
    is_named: bool = False
    is_empty: bool = False
    is_new: bool = True
    moved_from: str | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether the engine had it already, and at this place."""
        is_there = self.job is None and self.error is None and self.document_id is not None
        return is_there and self.moved_from is None

    @property
    def is_news(self) -> bool:
        """Whether something became of it that was not reported before."""
        return not (self.is_unchanged or self.is_known_error or self.is_empty)

    @property
    def is_partly_read(self) -> bool:
        """Whether something in it was not read."""
        return self.is_news and bool(self.job and self.job.get("omitted"))

    @property
    def act(self) -> str:
        """What was done with it, in a word."""
        if self.moved_from:
            return "moved"
        if not self.is_new:
            return "changed"
        return "there already" if self.job and self.job.get("existed") else "added"

    def finish(self, job: dict[str, Any]) -> None:
        """Note what became of its job."""
        self.job, self.error, self.document_id = job, job["error"], job["document_id"]

    def to_json(self) -> dict[str, Any]:
        """Return what --json prints."""
        return {name: getattr(self, name) for name in ("path", "source_path", "job", "document_id", "error")}
