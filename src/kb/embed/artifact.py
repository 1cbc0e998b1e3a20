"""A converted model: a folder with `model.onnx`, its weights, `tokenizer.json` and `manifest.json`.

The graph takes `input_ids` and `attention_mask`, int64 of shape (batch, sequence), and returns `embedding`, float32 of
shape (batch, dimensions), each row of length 1. The manifest names the model's sources, the version of the converter,
and the hashes of the other files. Hashing costs 60 ms per start, but otherwise nothing would detect a damaged weight.

The weights are in a separate file, which ONNX Runtime maps. Half of it is the table of words, which takes memory only
for the parts that are read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kb.filesystem import sync

if TYPE_CHECKING:
    from onnx import ModelProto

NAME = "all-MiniLM-L6-v2"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
FP32, INT8 = "fp32", "int8"
DIMENSIONS = 384
WINDOW = 256
CONVERTER = 1
INT8_CONVERTER = 2
"""Raise them if the conversion changes: models with another version are converted again."""

ONNX, DATA, MANIFEST = "model.onnx", "model.onnx.data", "manifest.json"
MIN_APART = 1024
"""The minimum number of bytes of a tensor that is stored in the file of weights."""

REQUIRED = ("model", "precision", "converter", "sources")
"""The fields that a manifest always contains; it omits others that equal the default model's."""


class InvalidArtifact(Exception):
    """The reason why a folder contains no usable model."""


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """The description of a model.

    Args:
        sources: the SHA-256 of its source weights and of other source files.
        dimensions: the length of a vector.
        window: the maximum number of tokens of one text that it reads.
        query_prefix: the text that it reads before each query.
        passage_prefix: the text that it reads before each passage.
        pooling: the way to combine the vectors of the tokens: `mean`, `cls`, ….
        normalize: whether the model itself scales its vectors to length 1; the graph does in any case.
        truncate_dim: the number of dimensions that the graph keeps, if not all.
        likeness: the numbers of its `Likeness`; none if it was not measured.
        suits_int8: whether it ranks as well in int8 as in fp32; None if that was not measured.
    """

    model: str = NAME
    precision: str = FP32
    converter: int = CONVERTER
    sources: dict[str, str] = field(default_factory=dict)
    dimensions: int = DIMENSIONS
    window: int = WINDOW
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: str = "mean"
    normalize: bool = True
    truncate_dim: int | None = None
    likeness: Sequence[float] = ()
    suits_int8: bool | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 of the weights."""
        return self.sources[WEIGHTS]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A verified model, ready to be loaded; `precision` is the precision that it runs in."""

    onnx: Path
    tokenizer: Path
    manifest: ModelManifest
    precision: str

    def stamps(self) -> list[tuple[int, int, int]]:
        """Return a value that changes if a loaded file is changed or removed."""
        stats = [path.stat() for path in (self.onnx, self.onnx.with_name(DATA)) if path.exists()]
        return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]


def converter_version(precision: str) -> int:
    return INT8_CONVERTER if precision == INT8 else CONVERTER


def load_model(folder: Path) -> ModelFiles:
    """Return the model in `folder`.

    Raises:
        InvalidArtifact: the model is missing or damaged, or another version of the converter made it.
    """
    try:
        recorded = json.loads((folder / MANIFEST).read_bytes())
        hashes = _hashes(folder)
    except (OSError, ValueError):
        raise InvalidArtifact("a file is missing or unreadable") from None
    try:
        intact = recorded.pop("files") == hashes
        manifest = ModelManifest(**recorded)
        valid = intact and manifest.converter == converter_version(manifest.precision) and bool(manifest.digest)
    except (AttributeError, KeyError, TypeError):
        valid = False
    if not valid:
        raise InvalidArtifact("it is damaged, or was made by another version of kb")
    return ModelFiles(folder / ONNX, folder / TOKENIZER, manifest, manifest.precision)


def save_model(folder: Path, model: ModelProto, tokenizer: Path, manifest: ModelManifest) -> None:
    """Write a model into the new `folder`, synced to disk."""
    import onnx  # slow, and not needed to run models

    folder.mkdir()
    onnx.save_model(model, folder / ONNX, save_as_external_data=True, location=DATA, size_threshold=MIN_APART)
    shutil.copymode(folder / ONNX, folder / DATA)  # otherwise only its owner could read it
    shutil.copyfile(tokenizer, folder / TOKENIZER)
    write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: ModelManifest) -> None:
    """Describe the model in `folder`, and sync all of it to disk."""
    defaults = asdict(ModelManifest())
    record = {name: value for name, value in asdict(manifest).items() if name in REQUIRED or value != defaults[name]}
    draft = folder / f"{MANIFEST}.new"
    draft.write_text(json.dumps(record | {"files": _hashes(folder)}, indent=2) + "\n", encoding="utf-8")
    draft.replace(folder / MANIFEST)
    for path in (*folder.iterdir(), folder):
        sync(path)


def _hashes(folder: Path) -> dict[str, str]:
    return {name: sha256(folder / name) for name in (ONNX, DATA, TOKENIZER)}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
