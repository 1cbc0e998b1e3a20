"""Opens the embedder that the settings select."""

import logging
from pathlib import Path

from kb.api.errors import ModelError
from kb.embed.artifact import FP32, INT8, WEIGHTS, ModelFiles
from kb.embed.models.fetch import SOURCES
from kb.embed.models.prepare import find_model, in_precision
from kb.embed.onnx.embedder import OnBatch, OnnxEmbedder
from kb.embed.onnx.providers import candidates
from kb.embed.onnx.session import detect_machine

log = logging.getLogger(__name__)

AUTO = "auto"


def open_embedder(
    model_dir: Path | None,
    data_dir: Path,
    device: str,
    precision: str,
    begun_in: str | None = None,
    on_batch: OnBatch = lambda *_: None,
) -> OnnxEmbedder:
    """Return the model on its device.

    Args:
        model_dir: the folder of the model, if it is not the default one in the data folder.
        device: the device, or `auto`.
        precision: the precision, or `auto`.
        begun_in: the precision of the vectors in the database, if it has any; if that is fp32, `auto` keeps it.
        on_batch: called after each batch.

    Raises:
        ModelError: the model or the device cannot be used, or not in this precision.
    """
    if precision != AUTO:
        candidates(device, precision)  # raises before anything is downloaded
    return open_model(find_model(model_dir, data_dir), data_dir, device, precision, begun_in, on_batch)


def open_model(
    files: ModelFiles, data_dir: Path, device: str, precision: str, begun_in: str | None, on_batch: OnBatch
) -> OnnxEmbedder:
    """Return a model that was found, on its device. The rest is as in `open_embedder`."""

    def opened(chosen: ModelFiles) -> OnnxEmbedder:
        return OnnxEmbedder(chosen, device, cache=data_dir / "compiled", on_batch=on_batch, on_cpu=files)

    if precision != AUTO:
        return opened(in_precision(files, data_dir / "models", precision))
    if not _suits_int8(files, device, begun_in):
        return opened(files)
    if any(
        candidate.name != "cpu" and candidate.provider in detect_machine().providers
        for candidate in candidates(device, FP32)
    ):
        model = opened(files)
        if model.device != "cpu":
            return model
    try:
        return opened(in_precision(files, data_dir / "models", INT8))
    except ModelError as error:
        log.info("the model runs in %s: %s", files.precision, error.detail)
        return opened(files)


def _suits_int8(files: ModelFiles, device: str, begun_in: str | None) -> bool:
    """Return whether the model was measured in int8, and this machine and database suit int8."""
    if files.manifest.digest != SOURCES[WEIGHTS] and not files.manifest.suits_int8:
        return False
    is_fp32 = files.precision == FP32
    return is_fp32 and device in (AUTO, "cpu") and begun_in != FP32 and detect_machine().multiplies_int8
