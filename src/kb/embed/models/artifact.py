"""A model in the form that the engine runs: a folder with `model.onnx`, `tokenizer.json` and `manifest.json`.

The graph takes `input_ids` and `attention_mask`, int64 of shape (batch, sequence), and gives `embedding`, float32 of
shape (batch, dimensions), each row of length 1. The manifest says of what it was made, by which converter, and what
the two files hash to. Hashing them costs each start 60 ms, and nothing else would notice a damaged weight.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from kb.embed.models.fetch import NAME, TOKENIZER, WEIGHTS, sha256
from kb.files import sync

if TYPE_CHECKING:
    from pathlib import Path

FP32 = "fp32"
DIMENSIONS = 384
WINDOW = 256
CONVERTER = 1
"""Raise it whenever the conversion changes: a model converted by another one is made anew."""

ONNX, MANIFEST = "model.onnx", "manifest.json"
IMPLIED = {"dimensions": DIMENSIONS, "window": WINDOW}
"""What a manifest leaves out where it is the default model's."""


class Unusable(Exception):
    """Why a folder holds no model that can be used, in words."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a model is.

    Args:
        sources: the SHA-256 of the weights, and of other files, that it was made of.
        dimensions: the length of a vector.
        window: the most tokens of one text that it reads.
    """

    model: str = NAME
    precision: str = FP32
    converter: int = CONVERTER
    sources: dict[str, str] = field(default_factory=dict)
    dimensions: int = DIMENSIONS
    window: int = WINDOW

    @property
    def digest(self) -> str:
        """The SHA-256 of the weights."""
        return self.sources[WEIGHTS]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A verified model, ready to be loaded; `precision` is what it is run in."""

    onnx: Path
    tokenizer: Path
    manifest: Manifest
    precision: str


def read_form(folder: Path) -> ModelFiles:
    """The model in `folder`.

    Raises:
        Unusable: there is none, it is damaged, or another version of the converter made it.
    """
    try:
        kept = json.loads((folder / MANIFEST).read_bytes())
        hashes = _hashes(folder)
    except (OSError, ValueError):
        raise Unusable("a file is missing or unreadable") from None
    try:
        good = kept.pop("files") == hashes and kept["converter"] == CONVERTER and bool(kept["sources"][WEIGHTS])
        manifest = Manifest(**kept)
    except (AttributeError, KeyError, TypeError):
        good = False
    if not good:
        raise Unusable("it is damaged, or was made by another version of kb")
    return ModelFiles(folder / ONNX, folder / TOKENIZER, manifest, manifest.precision)


def write_form(folder: Path, onnx: bytes, tokenizer: Path, manifest: Manifest) -> None:
    """Write a model into the new `folder`, down to the disk."""
    folder.mkdir()
    (folder / ONNX).write_bytes(onnx)
    shutil.copyfile(tokenizer, folder / TOKENIZER)
    said = {name: value for name, value in asdict(manifest).items() if IMPLIED.get(name) != value}
    (folder / MANIFEST).write_text(json.dumps(said | {"files": _hashes(folder)}, indent=2) + "\n", encoding="utf-8")
    for path in (*folder.iterdir(), folder):
        sync(path)


def _hashes(folder: Path) -> dict[str, str]:
    return {name: sha256(folder / name) for name in (ONNX, TOKENIZER)}
