"""kb device and kb model, which work without a server."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def here(model_files, tmp_path):
    return {"KB_MODEL_DIR": str(model_files.onnx.parent), "KB_DATA_DIR": str(tmp_path / "data")}


@pytest.mark.requirement("S-4")
def test_device_shows_what_was_found_and_measures_it(outside, here):
    ended = outside("device", "--seconds", "0", env=here)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = dict(line.split("  ", 1) for line in ended.stdout.splitlines())
    assert lines["device"].strip().startswith("cpu (CPUExecutionProvider, ONNX Runtime ")
    assert lines["model"].strip() == "all-MiniLM-L6-v2, 384 dimensions, window 256, fp32"
    assert "install 'kb-local[engine,gateway,web,cuda]'" in lines["not cuda"]
    assert lines["passages of 200 tokens"].strip().endswith(" a second")
    assert lines["one query"].strip().endswith(" ms")
    assert not (outside.folder / "data").exists()


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
        ({"KB_DEVICE": "cuda"}, "kb: KB_DEVICE: cuda cannot be used: the installed ONNX Runtime has only"),
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
    assert "kb-local[engine,gateway,web,cpu,export]" in ended.stderr
