"""Cases of one rule that seldom fail alone: the fast suite tries a few of them, the full tier all."""

from __future__ import annotations

import pytest


def mostly_rare(cases, fast=1):
    """The cases for `parametrize`, all but the first ones marked as rare. A tuple is a case of several arguments."""
    return [case if place < fast else _rare(case) for place, case in enumerate(cases)]


def _rare(case):
    if hasattr(case, "marks"):  # from `pytest.param`
        return case._replace(marks=[*case.marks, pytest.mark.rare])
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.rare)
