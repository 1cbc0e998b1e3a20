"""Vector spaces for tests of the store."""

from __future__ import annotations

from dataclasses import replace

from kb.store.default_space import DEFAULT_SPACE


def space(dimensions=384, **changes):
    """The default model's, but for what is given."""
    return replace(DEFAULT_SPACE, dimensions=dimensions, **changes)
