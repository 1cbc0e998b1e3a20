"""Engines of several precisions over one database, one after the other."""

from __future__ import annotations

import shutil

import pytest

from kb.api.errors import NotReembedding
from kb.client.client import EngineClient

FACTS = ("The key is under the mat.", "The ferry leaves at seven.", "Bees dance to show the way to flowers.")


@pytest.mark.requirement("E-8")
async def test_engines_in_fp32_and_in_int8_serve_one_database_without_making_a_vector_again(
    start_server, outside, model_files, int8_files, tmp_path
):
    data = tmp_path / "data"
    shutil.copytree(int8_files.onnx.parent, data / "models" / int8_files.onnx.parent.name)
    for precision, fact in zip(("fp32", "int8", "fp32"), FACTS, strict=True):
        with start_server(data, KB_PRECISION=precision) as server:
            async with EngineClient(server.url) as api:
                await api.add_note(text=fact, wait=60)
                status = await api.status()
                assert status["model"]["precision"] == precision
                for each in FACTS[: FACTS.index(fact) + 1]:
                    [first] = (await api.search(query=each, vec_only=True, top=1))["results"]
                    assert first["text"] == each
                with pytest.raises(NotReembedding, match="already"):
                    await api.reembed("start")
            assert "the vectors are of" not in server.log.read_text()
            if precision == "int8":
                shown = outside("status", env=outside.environment | {"KB_ENGINE_URL": server.url})
                assert "50% fp32, 50% int8" in shown.stdout, shown
    assert status["precisions"] == {"fp32": 2, "int8": 1}
