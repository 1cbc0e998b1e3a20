"""The If-Match headers of requests."""

from __future__ import annotations

from fastapi import Request


def hashes_in(request: Request) -> set[str] | None:
    """Return the hashes in a request's If-Match headers; None if they allow any (`*`)."""
    if_match = ",".join(request.headers.getlist("if-match"))
    hashes = {tag.strip().strip('"') for tag in if_match.split(",")}
    return None if "*" in hashes else hashes
