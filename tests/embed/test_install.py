"""Models come from the hub, from a mirror, from a folder or from a packed file, whole or not at all."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kb.api.errors import ModelError
from kb.embed import open as opening
from kb.embed.artifact import load_model, write_manifest
from kb.embed.models import hub as hub_module
from kb.embed.models.catalogue import catalogue
from kb.embed.models.install import check_known, install, installed, pack
from kb.embed.models.prepare import in_precision
from kb.embed.models.sentence_transformer import convert
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.onnx.requirements import INT8_FLAGS
from kb.embed.onnx.session import detect_machine
from kb.embed.open import open_model
from kb.repair.measure_model import MeasuredModel
from kb.settings import Settings
from tests.support.disks import small_disk
from tests.support.model_hub import model_hub
from tests.support.small_models import WIDTH, WORDS, write_small_model

NAME = "someone/small-model"
TEXTS = ["the key is under the mat", "my flat", ""]


@pytest.fixture
def raw(tmp_path):
    return write_small_model(tmp_path / "raw")


@pytest.fixture
def hub(raw, monkeypatch):
    monkeypatch.setattr(hub_module, "PAUSE_SECONDS", 0)
    with model_hub(raw) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def weights_asked(hub):
    return [begin for name, begin in hub.asked if name == "model.safetensors"]


def test_a_model_of_the_hub_is_the_one_in_the_folder(hub, raw, tmp_path):
    from_hub = install(NAME, tmp_path / "data")
    from_folder = install(str(raw), tmp_path / "other")
    assert from_hub.manifest.digest == from_folder.manifest.digest
    assert from_hub.manifest.model == "small-model"
    assert from_hub.manifest.query_prefix == "where "
    ours = [OnnxEmbedder(each, "cpu").embed_passages(TEXTS) for each in (from_hub, from_folder)]
    assert np.array_equal(*ours)
    assert np.allclose(np.linalg.norm(ours[0], axis=1), 1)
    before = len(hub.asked)
    assert install(NAME, tmp_path / "data").manifest == from_hub.manifest
    assert len(hub.asked) == before


def test_a_download_that_breaks_five_times_goes_on_where_it_ended(hub, raw, tmp_path):
    hub.breaks = [1000, 2000, 3000, 1, 500]
    hub.refuses = 1
    assert install(NAME, tmp_path / "data").manifest.dimensions == WIDTH
    assert weights_asked(hub) == [0, 1000, 3000, 6000, 6001, 6501]


def test_a_download_that_was_given_up_goes_on_the_next_time(hub, tmp_path):
    hub.breaks = [700] * hub_module.ATTEMPTS
    with pytest.raises(ModelError, match=r"kb cannot download model\.safetensors of someone/small-model"):
        install(NAME, tmp_path / "data")
    assert list(installed(tmp_path / "data" / "models")) == []
    begun = 700 * hub_module.ATTEMPTS
    install(NAME, tmp_path / "data")
    assert weights_asked(hub)[-1] == begun


def test_a_hub_behind_a_proxy_is_asked_through_it(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("http_proxy", hub.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert install(NAME, tmp_path / "data").manifest.model == "small-model"
    assert hub.hosts == {"hub.invalid"}


def test_a_server_without_ranges_is_asked_for_all_of_it(hub, tmp_path):
    hub.knows_ranges, hub.breaks = False, [1000]
    install(NAME, tmp_path / "data")
    assert len(weights_asked(hub)) == 2


def test_other_weights_than_announced_are_refused_and_forgotten(hub, raw, tmp_path):
    hub.wrong = b"x" * 5000
    with pytest.raises(ModelError, match="its SHA-256 is") as refused:
        install(NAME, tmp_path / "data")
    assert "\n" not in refused.value.detail
    assert weights_asked(hub) == [0]
    assert list(installed(tmp_path / "data" / "models")) == []
    hub.wrong = None
    install(NAME, tmp_path / "data")


def test_a_beginning_of_other_weights_is_fetched_again(hub, tmp_path):
    part = tmp_path / "data" / "models" / ".downloads" / "small-model" / "model.safetensors.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"of another day")
    install(NAME, tmp_path / "data")
    assert weights_asked(hub) == [14, 0]


def test_what_is_fetched_first_is_pinned_and_another_file_is_refused_later(hub, raw, tmp_path):
    hub.announces = False
    install(NAME, tmp_path / "data")
    shutil.rmtree(next((tmp_path / "data" / "models").glob("small-model-*")))
    pins = json.loads((tmp_path / "data" / "models" / "pins.json").read_bytes())
    assert {key.partition("@main/")[2] for key in pins} >= {"model.safetensors", "tokenizer.json", "config.json"}
    hub.wrong = (raw / "model.safetensors").read_bytes()[:-4] + b"\0\0\0\0"
    with pytest.raises(ModelError, match="its SHA-256 is"):
        install(NAME, tmp_path / "data")


def test_a_disk_without_room_is_refused_before_anything_is_fetched(hub, tmp_path):
    with small_disk(tmp_path / "disk", 4) as disk, pytest.raises(ModelError, match="MB free, but the model needs"):
        install("multilingual-e5-small", disk)
    assert hub.asked == []


@pytest.mark.parametrize(
    "wanted",
    ["intfloat/multilingual-e5-small", f"{hub_module.HUB}/intfloat/multilingual-e5-small", "Multilingual-E5-Small"],
)
def test_a_model_of_the_catalogue_is_known_by_any_of_its_names(tmp_path, wanted):
    assert check_known(wanted, tmp_path) == catalogue()["multilingual-e5-small"]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("no-such-model", "kb does not know 'no-such-model'"),
        ("../raw", "kb does not know '../raw'"),
        ("/etc", "contains neither a converted model"),
        ("someone/other", "cannot download"),
    ],
)
def test_what_is_no_model_is_named(hub, tmp_path, wanted, words):
    hub.folder = tmp_path
    with pytest.raises(ModelError, match=re.escape(words)):
        install(wanted, tmp_path / "data")


def test_a_hub_cannot_name_files_outside_of_the_folder(hub, raw, tmp_path):
    parts = [{"path": "../../../outside", "type": "x.Pooling"}]
    (raw / "modules.json").write_text(json.dumps(parts))
    with pytest.raises(ModelError, match="which kb refuses"):
        install(NAME, tmp_path / "data")


def test_a_packed_model_is_the_same_on_another_machine(raw, tmp_path):
    files = install(str(raw), tmp_path / "data")
    pack(files, tmp_path / "small.kbmodel")
    with pytest.raises(ModelError, match="cannot write"):
        pack(files, tmp_path / "small.kbmodel")
    there = install(str(tmp_path / "small.kbmodel"), tmp_path / "other")
    assert there.manifest == files.manifest
    assert there.onnx.is_relative_to(tmp_path / "other")


@pytest.mark.parametrize("name", ["{0}/mine", "../../mine", "..\\mine"])
def test_a_packed_model_cannot_take_the_place_of_another_folder(raw, tmp_path, name):
    files = install(str(raw), tmp_path / "data")
    mine = tmp_path / f"mine-{files.manifest.digest[:12]}"
    mine.mkdir()
    (mine / "letter").touch()
    write_manifest(files.onnx.parent, replace(files.manifest, model=name.format(tmp_path)))
    pack(files, tmp_path / "small.kbmodel")
    with pytest.raises(ModelError, match="refuses a model called"):
        install(str(tmp_path / "small.kbmodel"), tmp_path / "other")
    assert [each.name for each in mine.iterdir()] == ["letter"]


@pytest.mark.parametrize("at", [10, 5000])
def test_a_packed_model_that_was_changed_is_refused(raw, tmp_path, at):
    pack(install(str(raw), tmp_path / "data"), tmp_path / "small.kbmodel")
    packed = bytearray((tmp_path / "small.kbmodel").read_bytes())
    packed[at] ^= 1
    (tmp_path / "small.kbmodel").write_bytes(packed)
    with pytest.raises(ModelError):
        install(str(tmp_path / "small.kbmodel"), tmp_path / "other")
    assert list(installed(tmp_path / "other" / "models")) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "t5"}, "it is a t5"),
        ({"hidden_act": "silu"}, "its activation is silu"),
        ({"vocab_size": 7}, "do not have the shape"),
        ({"num_hidden_layers": 2}, "it has no 'encoder.layer.1"),
    ],
)
def test_a_model_that_kb_cannot_write_is_refused_with_the_reason(tmp_path, changes, words):
    with pytest.raises(ModelError, match=words):
        install(str(write_small_model(tmp_path / "raw", **changes)), tmp_path / "data")


def test_an_encoder_of_another_kind_comes_with_its_published_graph(tmp_path):
    raw = write_small_model(tmp_path / "raw", model_type="modernbert")
    table = np.random.default_rng(0).standard_normal((len(WORDS), WIDTH)).astype(np.float32)
    (raw / "model.safetensors").unlink()
    (raw / "onnx").mkdir()
    ids, mask, types = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["a", "b"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["types", "axis"], ["kinds"]),
        helper.make_node("Add", ["words", "kinds"], ["last_hidden_state"]),
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["a", "b", WIDTH])
    held = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([2]), "axis")]
    graph = helper.make_graph(nodes, "published", [ids, mask, types], [output], held)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), raw / "onnx/model.onnx"
    )
    embedder = OnnxEmbedder(install(str(raw), tmp_path / "data"), "cpu")
    [made] = embedder.embed_passages(["key mat"])
    mean = table[[2, 4, 5, 3]].mean(axis=0)
    assert np.allclose(made, mean / np.linalg.norm(mean), atol=1e-6)


def test_a_converted_model_is_read_as_it_was_written(raw, tmp_path):
    files = convert(raw, tmp_path / "converted", "small")
    assert load_model(tmp_path / "converted") == files
    (tmp_path / "converted" / "model.onnx.data").write_bytes(b"")
    with pytest.raises(ModelError, match="damaged"):
        install(str(tmp_path / "converted"), tmp_path / "data")


def test_the_catalogue_says_all_of_each_model():
    for name, entry in catalogue().items():
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.repository), name
        assert all((entry.languages, entry.dimensions, entry.licence, entry.megabytes, entry.quality, entry.work)), name
        assert entry.source.startswith("https://")
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in entry.files.values())


def test_a_model_in_the_folder_of_an_image_is_not_fetched(hub, tmp_path, model_files):
    files = install("all-MiniLM-L6-v2", tmp_path / "data", model_dir=model_files.onnx.parent)
    assert files.onnx == model_files.onnx
    assert hub.asked == []


@pytest.mark.parametrize(("suits_int8", "precision"), [(True, "int8"), (False, "fp32"), (None, "fp32")])
def test_a_model_runs_in_int8_by_itself_if_it_was_measured_to_rank_as_well(
    raw, tmp_path, monkeypatch, suits_int8, precision
):
    machine = replace(detect_machine(), cpu_flags=INT8_FLAGS)
    monkeypatch.setattr(opening, "detect_machine", lambda: machine)
    files = install(str(raw), tmp_path)
    write_manifest(files.onnx.parent, replace(files.manifest, suits_int8=suits_int8))
    measured = install("raw", tmp_path)
    opened = open_model(measured, tmp_path, "cpu", "auto", None, lambda *_: None)
    assert opened.spec.precision == precision
    if suits_int8 is False:
        with pytest.raises(ModelError, match="'kb model measure' found that raw ranks worse in int8"):
            open_model(measured, tmp_path, "cpu", "int8", None, lambda *_: None)


def documents_of(count):
    """So many texts of the words that the small model knows, each in another order."""
    known = WORDS[4:]
    return {
        f"d{number}": ("", " ".join(known[(place * (number + 2) + number) % len(known)] for place in range(24)))
        for number in range(count)
    }


def test_what_was_measured_on_given_documents_is_kept_with_the_model(raw, tmp_path, model_files):
    documents = documents_of(12)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "all-MiniLM-L6-v2").symlink_to(model_files.onnx.parent)
    model = MeasuredModel(str(raw), Settings(data_dir=tmp_path), documents)
    for precision in ("fp32", "int8"):
        ranking = model.rank(precision, ["key mat", "my flat"], 5)
        assert [len(set(keys)) for keys in ranking.keys] == [5, 5]
        assert all(key in documents for keys in ranking.keys for key in keys)
        assert ranking.pace > 0
    before = model.files.manifest.likeness
    model.keep(suits_int8=True)
    kept = install("raw", tmp_path)
    assert kept.manifest.suits_int8 is True
    assert len(kept.manifest.likeness) == 4
    assert kept.manifest.likeness != before
    made = tmp_path / "models" / "raw-int8" / "model.onnx"
    stamp = made.stat().st_mtime_ns
    assert in_precision(kept, tmp_path / "models", "int8").manifest.likeness == kept.manifest.likeness
    assert made.stat().st_mtime_ns == stamp, "it is not converted again"


def test_few_documents_say_whether_int8_suits_a_model_and_leave_its_cosines_to_the_texts_of_kb(
    raw, tmp_path, model_files
):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "all-MiniLM-L6-v2").symlink_to(model_files.onnx.parent)
    model = MeasuredModel(str(raw), Settings(data_dir=tmp_path), documents_of(3))
    model.rank("fp32", ["key"], 5)
    before = install("raw", tmp_path).manifest
    model.keep(suits_int8=True)
    assert install("raw", tmp_path).manifest == replace(before, suits_int8=True)
