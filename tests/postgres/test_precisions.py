"""Engines of several precisions side by side over one database in PostgreSQL."""

from __future__ import annotations

import shutil

import pytest

from kb.client.client import EngineClient
from tests.support.postgres import database_url

pytestmark = pytest.mark.postgres


async def test_an_engine_in_int8_and_one_in_fp32_find_what_the_other_added(
    start_server, model_files, int8_files, tmp_path
):
    shared = {"KB_DATABASE_URL": database_url(tmp_path)}
    shutil.copytree(int8_files.onnx.parent, tmp_path / "one" / "models" / int8_files.onnx.parent.name)
    with (
        start_server(tmp_path / "one", KB_PRECISION="int8", **shared) as first,
        start_server(tmp_path / "two", KB_PRECISION="fp32", **shared) as second,
    ):
        async with EngineClient(first.url) as one, EngineClient(second.url) as other:
            assert [(await each.status())["model"]["precision"] for each in (one, other)] == ["int8", "fp32"]
            for engine, fact in ((one, "The ferry leaves at seven."), (other, "The key is under the mat.")):
                await engine.add_note(text=fact, wait=60)
            for engine in (one, other):
                for query, fact in (("when does the boat go", "The ferry"), ("how do I unlock the door", "The key")):
                    [found] = (await engine.search(query=query, vec_only=True, top=1))["results"]
                    assert found["text"].startswith(fact)
            assert sum((await one.status())["precisions"].values()) == 2
