"""The model that the settings name, in the precision of the database."""

from __future__ import annotations

from kb.api.errors import ModelError
from kb.embed.onnx.embedder import OnBatch
from kb.embed.open import open_embedder
from kb.embed.protocol import Embedder
from kb.ingest.active_model import open_model_for
from kb.settings import Settings
from kb.store.default_space import DEFAULT_SPACE
from kb.store.open import backend
from kb.store.rows import VectorSpace


def open_named_model(settings: Settings, on_batch: OnBatch = lambda *_: None) -> tuple[Embedder, VectorSpace | None]:
    """Return the model that the settings name, and the vector space of their database, if it has vectors.

    If they name none, it is the model of the database, if that is found, and otherwise the default one.

    Raises:
        ModelError: the model, the device or the precision cannot be used.
    """
    in_use = backend(settings).space_in_use(settings)
    if in_use is None or in_use == DEFAULT_SPACE or settings.model_dir:
        return _open(settings, in_use, on_batch), in_use
    try:
        return open_model_for(in_use, settings, on_batch), in_use
    except ModelError as missing:
        try:
            return _open(settings, in_use, on_batch), in_use
        except ModelError:
            raise missing from None


def _open(settings: Settings, in_use: VectorSpace | None, on_batch: OnBatch) -> Embedder:
    where = settings.model_dir, settings.data_dir, settings.device
    return open_embedder(*where, settings.precision, in_use.precision if in_use else None, on_batch)
