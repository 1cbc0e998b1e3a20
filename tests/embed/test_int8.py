"""The model in int8: the quality of its vectors, and the machines that use it by default."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from kb.api.errors import ModelError
from kb.embed import open as opening
from kb.embed.artifact import MANIFEST, load_model
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.onnx.requirements import INT8_FLAGS
from kb.embed.onnx.session import detect_machine
from kb.embed.open import open_embedder
from tests.support.models import quantized, size

pytestmark = pytest.mark.slow

TEXTS = (
    "",
    "42",
    "Where do I put the key?",
    "The ferryman's dog took no notice of the heron in the reeds.",
    "Der Zug nach Norden hält nur, wenn jemand winkt; иначе он едет дальше. 終点は海です 🚂",
    "| pump | bar | °C |\n| 7 | 4.1 | 61 |\nassert pump['bar'] < 5  # 0xFF",
    "river stone engine paper " * 120,
)


@pytest.fixture(scope="module")
def rounded(int8_files):
    return OnnxEmbedder(int8_files, "cpu", 2)


@pytest.fixture
def capable(monkeypatch):
    """A machine whose CPU multiplies integers, whatever this one is."""
    machine = replace(detect_machine(), cpu_flags=INT8_FLAGS)
    monkeypatch.setattr(opening, "detect_machine", lambda: machine)


@pytest.fixture
def folder(model_files, int8_files, tmp_path):
    """The model's folder with the one in int8 inside, as in the images."""
    shutil.copytree(model_files.onnx.parent, tmp_path / "model")
    shutil.copytree(int8_files.onnx.parent, tmp_path / "model" / "int8")
    return tmp_path / "model"


@pytest.mark.requirement("S-4")
def test_int8_is_much_smaller_and_means_nearly_the_same(rounded, int8_files, model_files, embedder):
    assert size(int8_files) < 0.4 * size(model_files)
    assert (rounded.spec.precision, rounded.spec.digest) == ("int8", embedder.spec.digest)
    cosines = np.sum(rounded.embed_passages(TEXTS) * embedder.embed_passages(TEXTS), axis=1)
    assert cosines.min() > 0.99, cosines


def test_a_vector_is_the_same_to_the_last_bit_alone_and_in_any_batch_on_one_core_and_on_several(rounded):
    other = "The mill by the river grinds no corn but keeps its wheel and its swallows. "
    shared, single = rounded._session, rounded._core_pool.session
    for text in TEXTS:
        alone = rounded.embed_queries([text])
        assert np.array_equal(rounded.embed_queries([text], alone=False), alone)
        [ids] = [rounded._truncated(each.ids) for each in rounded._tokenizer.encode_batch_fast([text])]
        for rows in (2, 7, 64 if len(ids) < 50 else 5):
            [filler] = [each.ids for each in rounded._tokenizer.encode_batch_fast([other * 30])]
            batch = [ids, *[filler[number : number + len(ids)] for number in range(rows - 1)]]
            for session in (shared, single):
                assert np.array_equal(rounded._run(session, batch)[:1], alone)
                assert np.array_equal(rounded._run(session, batch[::-1])[-1:], alone)
    together = rounded.embed_passages([*TEXTS, *TEXTS[::-1]])
    assert np.array_equal(together[: len(TEXTS)], together[len(TEXTS) :][::-1])
    assert np.array_equal(together[: len(TEXTS)], np.vstack([rounded.embed_passages([text]) for text in TEXTS]))


@pytest.mark.usefixtures("capable")
@pytest.mark.parametrize(
    ("device", "precision", "begun_in", "runs_in"),
    [
        ("auto", "auto", None, "int8"),
        ("cpu", "auto", "int8", "int8"),
        ("cpu", "auto", "fp16", "int8"),
        ("auto", "auto", "fp32", "fp32"),
        ("cpu", "fp32", None, "fp32"),
        ("cpu", "int8", "fp32", "int8"),
    ],
)
def test_a_new_database_begins_in_int8_and_one_in_fp32_goes_on_in_it(
    folder, tmp_path, device, precision, begun_in, runs_in
):
    opened = open_embedder(folder, tmp_path / "data", device, precision, begun_in)
    assert opened.spec.precision == runs_in
    assert not (tmp_path / "data").exists()


def test_a_cpu_without_the_instructions_stays_with_fp32(folder, tmp_path, monkeypatch):
    for flags in (None, frozenset(), frozenset(("avx2", "avx512f"))):
        machine = replace(detect_machine(), cpu_flags=flags)
        monkeypatch.setattr(opening, "detect_machine", lambda machine=machine: machine)
        assert open_embedder(folder, tmp_path / "data", "cpu", "auto").spec.precision == "fp32"


@pytest.mark.usefixtures("capable")
def test_a_model_that_was_not_measured_stays_with_fp32(folder, tmp_path):
    manifest = (folder / MANIFEST).read_text()
    digest = load_model(folder).manifest.digest
    (folder / MANIFEST).write_text(manifest.replace(digest, "ab" * 32))
    assert open_embedder(folder, tmp_path / "data", "cpu", "auto").spec.precision == "fp32"


@pytest.mark.usefixtures("capable")
def test_without_the_converter_a_new_database_begins_in_fp32_and_the_log_says_why(
    model_files, tmp_path, monkeypatch, caplog
):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "kb.embed.models.int8", raising=False)
    with caplog.at_level(logging.INFO, "kb.embed.open"):
        opened = open_embedder(model_files.onnx.parent, tmp_path, "cpu", "auto")
    assert opened.spec.precision == "fp32"
    assert (
        "the model runs in fp32: KB_PRECISION: the conversion of the model to int8 needs the package onnx"
        in caplog.text
    )
    with pytest.raises(ModelError, match="needs the package onnx"):
        open_embedder(model_files.onnx.parent, tmp_path, "cpu", "int8")


OTHERWISE = """
import sys
from pathlib import Path
import numpy as np
from kb.embed.models import int8
int8.LEAST_COSINE = 1.1
int8._calibration = lambda *_: [{name: np.ones((1, 9), np.int64) for name in ("input_ids", "attention_mask")}]
int8.to_int8(Path(sys.argv[1]), Path(sys.argv[2]), 256)
"""


def test_a_model_whose_vectors_come_out_otherwise_is_not_run_in_int8(model_files):
    """In a process of its own: a conversion takes half a gigabyte."""
    command = [sys.executable, "-c", OTHERWISE, model_files.onnx, model_files.tokenizer]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert re.search(r"ModelError: .* differ too much .*Set KB_PRECISION=fp32", ended.stderr), ended.stderr


@pytest.mark.rare
def test_one_that_an_earlier_version_made_is_made_again(int8_files, model_files, tmp_path):
    old = tmp_path / "models" / int8_files.onnx.parent.name
    shutil.copytree(int8_files.onnx.parent, old)
    manifest = (old / MANIFEST).read_text()
    (old / MANIFEST).write_text(manifest.replace('"converter": 2', '"converter": 1'))
    assert quantized(model_files, tmp_path, "int8").manifest == int8_files.manifest
