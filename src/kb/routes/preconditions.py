"""What a request's If-Match headers demand."""

from __future__ import annotations

from fastapi import Request


def hashes_in(request: Request) -> set[str] | None:
    """Return what a request's If-Match headers name; None if anything will do."""
    if_match = ",".join(request.headers.getlist("if-match"))
    hashes = {tag.strip().strip('"') for tag in if_match.split(",")}
    return None if "*" in hashes else hashes
