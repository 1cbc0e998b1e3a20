"""What documents' properties say of them."""

from __future__ import annotations

from typing import NamedTuple


class Properties(NamedTuple):
    """The title and the date that a document gives itself."""

    title: str | None = None
    date: str | None = None
