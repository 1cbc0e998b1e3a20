"""The model at work."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kb.api.errors import ModelError
from kb.embed.artifact import load_model
from kb.embed.onnx.embedder import OnnxEmbedder, batches
from kb.embed.onnx.providers import DEVICES

MANY = [f"word {'and ' * number}" for number in range(60)]
TEXTS = ["The cat sits on the mat.", "", "Where do I put the key?", "word " * 300, "猫がマットの上に座っている", "🐈"]


@pytest.mark.requirement("S-4")
def test_it_says_what_it_is(embedder):
    assert (embedder.spec.name, embedder.spec.dimensions, embedder.spec.window) == ("all-MiniLM-L6-v2", 384, 256)
    assert (embedder.spec.precision, embedder.device) == ("fp32", "cpu")
    assert embedder.provider == "CPUExecutionProvider"


def test_every_text_becomes_a_vector_of_length_one(embedder):
    vectors = embedder.embed_passages(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 384), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_become_no_vectors(embedder):
    assert embedder.embed_passages([]).shape == (0, 384)


def test_vectors_come_in_the_order_of_their_texts_whatever_stands_beside_them(embedder):
    texts = [*TEXTS, *reversed(TEXTS), *(f"word {'and ' * number}" for number in range(40))]
    alone = np.vstack([embedder.embed_passages([text]) for text in texts])
    assert np.abs(embedder.embed_passages(texts) - alone).max() < 1e-5


def test_what_means_the_same_is_near(embedder):
    cat, key, feline = embedder.embed_passages(
        ["The cat sits on the mat.", "Where is my key?", "A kitten rests on a rug."]
    )
    assert cat @ feline > cat @ key + 0.3


def test_a_text_is_read_as_far_as_the_window_and_no_further(embedder):
    body = "river " * 253
    within, same_within, beyond, elsewhere = embedder.embed_passages(
        [f"{body} stone", f"{body} stone light", f"{body} stone engine", f"{body} engine"]
    )
    assert within == pytest.approx(beyond, abs=1e-5)
    assert within == pytest.approx(same_within, abs=1e-5)
    assert np.abs(within - elsewhere).max() > 1e-4


@pytest.fixture
def with_manifest(model_files):
    """The default model under another manifest."""
    return lambda **changes: OnnxEmbedder(
        replace(model_files, manifest=replace(model_files.manifest, **changes)), "cpu"
    )


@pytest.mark.requirement("S-4")
@pytest.mark.slow
def test_queries_and_passages_are_read_after_their_prefixes(embedder, with_manifest):
    prefixed = with_manifest(query_prefix="query: ", passage_prefix="passage: ")
    for prefix, embed in (("query: ", prefixed.embed_queries), ("passage: ", prefixed.embed_passages)):
        assert embed(TEXTS) == pytest.approx(embedder.embed_passages([prefix + text for text in TEXTS]), abs=1e-5)
    assert (prefixed.spec.query_prefix, prefixed.spec.passage_prefix) == ("query: ", "passage: ")


def test_without_prefixes_a_query_is_read_as_a_passage_is(embedder):
    assert np.array_equal(embedder.embed_queries(TEXTS), embedder.embed_passages(TEXTS))


@pytest.mark.parametrize("changes", [{"window": 17}, {"window": 40, "query_prefix": "query " * 30}])
def test_a_window_that_holds_no_chunk_stops_the_start(with_manifest, changes):
    with pytest.raises(ModelError, match=r"The model all-MiniLM-L6-v2 reads \d+ tokens, \d+ of them for its prefix"):
        with_manifest(**changes)


def test_tokens_are_counted_beyond_the_window(embedder):
    assert [embedder.count_tokens(text) for text in ("", "river", "river " * 1000)] == [2, 3, 1002]


def test_of_a_text_beyond_the_window_the_beginning_is_read_as_the_tokenizer_itself_cuts_it(embedder, model_files):
    cutting = Tokenizer.from_file(str(model_files.tokenizer))
    cutting.no_padding()
    cutting.enable_truncation(embedder.spec.window)
    for text in ("river " * 1000, "a " * 254, "a " * 255, " ".join(TEXTS) * 40):
        read = cutting.encode(text)
        shortened = text[: max(end for _, end in read.offsets)]
        assert np.array_equal(embedder.embed_passages([text]), embedder.embed_passages([shortened]))


@pytest.mark.requirement("S-6")
@pytest.mark.slow
def test_vectors_are_the_same_to_the_last_bit_on_one_core_and_on_several(model_files):
    one, three = (OnnxEmbedder(model_files, "cpu", threads) for threads in (1, 3))
    assert np.array_equal(three.embed_passages(MANY), one.embed_passages(MANY))
    for text in TEXTS:
        expected = one.embed_queries([text])
        assert np.array_equal(three.embed_queries([text]), expected)
        assert np.array_equal(three.embed_queries([text], alone=False), expected)


@pytest.mark.slow
def test_several_batches_are_computed_by_a_thread_for_each_core_and_one_by_who_asks(model_files):
    threads = []
    embedder = OnnxEmbedder(
        model_files, "cpu", 3, on_batch=lambda *_: threads.append(threading.current_thread().name.rpartition("_")[0])
    )
    embedder.embed_passages(MANY)
    assert len(threads) > 3
    assert {*threads} == {"kb-model"}
    threads.clear()
    embedder.embed_passages(["Where is the key?"])
    embedder.embed_queries(["Where is the key?"])
    embedder.embed_queries(["Where is the key?"], alone=False)
    assert len(threads) == 3
    assert "kb-model" not in threads


@pytest.mark.rare
@pytest.mark.parametrize("change", [shutil.rmtree, lambda folder: (folder / "model.onnx").write_bytes(b"another")])
def test_a_model_whose_files_were_changed_or_removed_goes_on_as_it_is(model_files, tmp_path, caplog, change):
    folder = shutil.copytree(model_files.onnx.parent, tmp_path / "model")
    embedder = OnnxEmbedder(load_model(folder), "cpu", 2)
    expected = embedder.embed_queries(["Where is the key?"])
    change(folder)
    assert np.array_equal(embedder.embed_queries(["Where is the key?"], alone=False), expected)
    assert np.abs(embedder.embed_passages([*MANY, "Where is the key?"])[-1] - expected[0]).max() < 1e-5
    assert "was changed or removed while kb used it" in caplog.text


@pytest.mark.slow
def test_several_threads_get_what_one_gets(embedder):
    expected = embedder.embed_passages(TEXTS)
    with ThreadPoolExecutor(4) as threads:
        for vectors in threads.map(embedder.embed_passages, [TEXTS] * 12):
            assert np.abs(vectors - expected).max() < 1e-6


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.provider)
@given(lengths=st.lists(st.integers(2, 256)))
def test_batches_hold_every_text_once_and_keep_to_their_limits(device, lengths):
    made = list(batches(lengths, device))
    assert sorted(index for batch in made for index in batch) == list(range(len(lengths)))
    for batch in made:
        padded = len(batch) * max(lengths[index] for index in batch)
        assert padded <= device.batch_tokens
        assert padded - sum(lengths[index] for index in batch) <= device.padding
        assert not device.rows or len(batch) <= max(device.rows)


@pytest.mark.requirement("S-6")
def test_the_runtime_does_not_report_to_its_makers(model_files, tmp_path):
    folder = str(model_files.onnx.parent)
    code = (
        "from pathlib import Path; from kb.embed.models.prepare import prepare; from kb.embed.onnx.embedder import OnnxEmbedder;"
        f"OnnxEmbedder(prepare(Path({folder!r}), Path('/nowhere')), 'cpu').embed_passages(['x'])"
    )
    # Not this process's environment: the runtime keeps quiet where it believes that it is being tested.
    subprocess.run([sys.executable, "-c", code], env={"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []  # it would keep a name for this machine, and what it has to say


def test_a_file_that_is_no_model_stops_the_start(model_files, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match="cannot load"):
        OnnxEmbedder(replace(model_files, onnx=tmp_path / "model.onnx"), "cpu")
