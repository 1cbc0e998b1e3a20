"""kb device and kb model, which work without a server."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from kb.api.errors import NotReembedding
from kb.client.client import EngineClient
from tests.conftest import without_settings
from tests.support.fork_server import run


@pytest.mark.requirement("S-4")
def test_device_shows_what_was_found_and_measures_it(outside, here):
    ended = outside("device", "--seconds", "0", env=here)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = dict(line.split("  ", 1) for line in ended.stdout.splitlines())
    assert lines["device"].strip().startswith("cpu (CPUExecutionProvider, ONNX Runtime ")
    assert lines["model"].strip() == "all-MiniLM-L6-v2, 384 dimensions, window 256, fp32"
    assert "install 'kb-local[cuda]'" in lines["not cuda"]
    assert lines["passages of 200 tokens"].strip().endswith(" per second")
    assert lines["one query"].strip().endswith(" ms")
    assert not (outside.folder / "data").exists()


@pytest.mark.rare
def test_device_tells_scripts_the_same_as_json(outside, here):
    found = json.loads(outside("device", "--seconds", "0", "--json", env=here).stdout)
    assert (found["device"], found["precision"], found["dimensions"]) == ("cpu", "fp32", 384)
    assert found["digest"].startswith("53aa51172d14")
    assert found["chunks_per_second"] > 0
    assert found["query_ms"] > 0
    assert set(found["not_used"]) == {"cuda", "rocm"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"KB_DEVICE": "cuda"}, "kb: KB_DEVICE: kb cannot use cuda: the installed ONNX Runtime has only"),
        ({"KB_DEVICE": "cpu", "KB_PRECISION": "fp16"}, "kb: KB_PRECISION: cpu does not compute in fp16"),
        ({"KB_DEVICE": "abacus"}, "kb: KB_DEVICE: "),
    ],
)
def test_device_says_in_one_line_why_a_device_is_not_taken(outside, here, settings, words):
    ended = outside("device", env=here | settings)
    assert ended.returncode in (2, 8)
    assert ended.stderr.startswith(words)
    assert ended.stderr.count("\n") == 1


def test_export_says_what_has_to_be_installed(outside, here):
    ended = outside("model", "export", "any", env=here)
    if "not installed" not in ended.stderr:
        pytest.skip("it is installed here; tests/reference has it at work")
    assert ended.returncode == 8
    assert "kb-local[export]" in ended.stderr


FACTS = ("The key is under the mat.", "The ferry leaves at seven.", "Bees dance to show the way to flowers.")


@pytest.mark.slow
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
            assert "the vectors come from" not in server.log.read_text()
            if precision == "int8":
                shown = outside("status", env=outside.environment | {"KB_ENGINE_URL": server.url})
                assert "50% fp32, 50% int8" in shown.stdout, shown
    assert status["precisions"] == {"fp32": 2, "int8": 1}


@pytest.mark.parametrize(
    ("command", "settings", "reason"),
    [
        ("worker", {}, "KB_DATABASE_URL: 'kb worker' needs PostgreSQL"),
        ("serve", {"KB_WORKERS": "0"}, "KB_WORKERS: 0 is only for PostgreSQL"),
        ("serve", {"KB_WORKERS": "2"}, "KB_WORKERS: "),
    ],
)
def test_a_database_in_a_file_has_the_worker_of_its_engine(tmp_path, command, settings, reason):
    environment = without_settings() | settings
    arguments = [sys.executable, "-m", "kb_cli.main", command, "--port", "0", "--data-dir", str(tmp_path / "data")]
    ended = run(arguments, env=environment)
    assert ended.returncode == 2
    assert reason in ended.stderr.splitlines()[-1]
    assert not (tmp_path / "data" / "kb.db").exists()
