"""The number of examples for a property."""

from __future__ import annotations

import os

IS_FULL = bool(os.environ.get("KB_TEST_FULL"))


def examples(count):
    """Return the full number of examples, or a third of it in the fast suite."""
    return count if IS_FULL else max(1, count // 3)
