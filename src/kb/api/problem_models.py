"""The reply of a request that failed."""

from __future__ import annotations

from pydantic import BaseModel


class Problem(BaseModel):
    """An error (RFC 9457). `errors` lists up to 20 wrong fields, and `more_errors` counts the others."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None
    more_errors: int | None = None
