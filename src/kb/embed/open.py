"""From the settings to an embedder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.embed.models.prepare import prepare
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.onnx.providers import candidates

if TYPE_CHECKING:
    from pathlib import Path

    from kb.embed.onnx.embedder import OnBatch


def open_embedder(
    model_dir: Path | None, data_dir: Path, device: str, precision: str, on_batch: OnBatch = lambda *_: None
) -> OnnxEmbedder:
    """The model on its device; `on_batch` is told of each batch.

    Raises:
        ModelError: the model or the device cannot be used, or not in this precision.
    """
    if precision != "auto":
        candidates(device, precision)  # refuses before anything is fetched
    files = prepare(model_dir, data_dir, precision)
    return OnnxEmbedder(files, device, cache=data_dir / "compiled", on_batch=on_batch)
