"""A file on its way into the knowledge base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    """

    path: str
    source_path: str
    tags: Sequence[str] = ()
    job: dict[str, Any] | None = None
    document_id: int | None = None
    error: str | None = None
    is_known_error: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Whether the engine had it already."""
        return self.job is None and self.error is None and self.document_id is not None

    @property
    def is_news(self) -> bool:
        """Whether something became of it that was not reported before."""
        return not (self.is_unchanged or self.is_known_error)

    def finish(self, job: dict[str, Any]) -> None:
        """Note what became of its job."""
        self.job, self.error, self.document_id = job, job["error"], job["document_id"]

    def to_json(self) -> dict[str, Any]:
        """Return what --json prints."""
        return {name: getattr(self, name) for name in ("path", "source_path", "job", "document_id", "error")}
