from __future__ import annotations

import pytest

from tests.crash.unsynced import build


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """The library that logs unsynced writes, so that a test can undo them."""
    library = build(tmp_path_factory.mktemp("shim"))
    if library is None:
        pytest.skip("no C compiler")
    return library
