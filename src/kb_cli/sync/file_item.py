"""A file to add to the knowledge base."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class FileItem:
    """A file and the result of adding it.

    Args:
        source_path: its path in the engine.
        tags: the tags to give it.
        job: the engine's receipt, or after waiting the finished job; None if the file was not sent.
        document_id: the document that has its content.
        error: the reason if it was not added.
        is_known_error: whether an earlier round had the same error, so that the file was not sent again.
        is_unread: whether it could not be read here.
        is_named: whether the user named the file itself instead of a folder.
        is_empty: whether it is empty and was therefore not sent.
        is_new: whether the engine had nothing at its path.
        moved_from: the previous source path of its document.
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
        is_there = self.job is None and self.error is None and self.document_id is not None
        return is_there and self.moved_from is None

    @property
    def is_news(self) -> bool:
        """Whether its result was not reported before."""
        return not (self.is_unchanged or self.is_known_error or self.is_empty)

    @property
    def is_partly_read(self) -> bool:
        return self.is_news and bool(self.job and self.job.get("omitted"))

    @property
    def act(self) -> str:
        if self.moved_from:
            return "moved"
        if not self.is_new:
            return "changed"
        return "already existed" if self.job and self.job.get("existed") else "added"

    def finish(self, job: dict[str, Any]) -> None:
        self.job, self.error, self.document_id = job, job["error"], job["document_id"]

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("path", "source_path", "job", "document_id", "error")}
