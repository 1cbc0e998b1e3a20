from __future__ import annotations

import asyncio
import shutil

import pytest

from tests.drill.failing_disk import build
from tests.drill.place import ON_POSTGRES, Place, fill


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The library that lets a disk fail."""
    made = build(tmp_path_factory.mktemp("library"))
    if made is None:
        pytest.skip("no C compiler")
    return made


@pytest.fixture(scope="session")
def whole_place(tmp_path_factory, model_files):
    """A place with documents, which the tests copy, and what an export of it has."""
    place = Place(tmp_path_factory.mktemp("whole"), model_files.onnx.parent)
    asyncio.run(fill(place))
    return place, place.state()


@pytest.fixture
def place(whole_place, tmp_path, library):
    """A place of its own, and what must be there at the end."""
    source, state = whole_place
    shutil.copytree(source.folder, tmp_path / "place")
    copied = Place(tmp_path / "place", source.model, library=library)
    if ON_POSTGRES:
        from tests.support.postgres import database_url

        database_url(copied.folder, copy_of=source.folder)
    return copied, state
