"""The model in use, which may change while the engine runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import ModelChanged, ModelError
from kb.embed.artifact import WEIGHTS, ModelFiles
from kb.embed.models.catalogue import catalogue
from kb.embed.models.fetch import SOURCES
from kb.embed.models.install import installed
from kb.embed.models.prepare import find_model
from kb.embed.onnx.embedder import OnBatch
from kb.embed.open import open_model
from kb.embed.protocol import Embedder, ModelSpec
from kb.settings import Settings
from kb.store.rows import VectorSpace

P = ParamSpec("P")
T = TypeVar("T")

ATTEMPTS: Final = 3


class ActiveModel:
    """The embedder in use. Work of several steps reads `current` once, because it may change after each step."""

    def __init__(self, embedder: Embedder) -> None:
        self.current = embedder
        self._next: Embedder | None = None

    @property
    def models(self) -> Sequence[Embedder]:
        return [self.current, *([self._next] if self._next else [])]

    def announce(self, embedder: Embedder | None) -> None:
        """Announce a model that may come into use; None for no other."""
        self._next = embedder

    def use(self, embedder: Embedder) -> None:
        self.current = embedder

    @property
    def spec(self) -> ModelSpec:
        """The specification of the model."""
        return self.current.spec

    @property
    def device(self) -> str:
        return self.current.device

    @property
    def provider(self) -> str:
        return self.current.provider

    def count_tokens(self, text: str) -> int:
        return self.current.count_tokens(text)

    def token_starts(self, text: str) -> list[int]:
        return self.current.token_starts(text)

    def embed_queries(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        return self.current.embed_queries(texts, alone=alone)

    def embed_passages(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        return self.current.embed_passages(texts, alone=alone)


def again_if_model_changed(act: Callable[P, T]) -> Callable[P, T]:
    """Return a function that repeats `act` if another model came into use before it could write."""

    @wraps(act)
    def attempt(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(ATTEMPTS):
            try:
                return act(*args, **kwargs)
            except ModelChanged:
                pass
        return act(*args, **kwargs)

    return attempt


def open_model_for(space: VectorSpace, settings: Settings, on_batch: OnBatch = lambda *_: None) -> Embedder:
    """Return the model of a vector space, wherever it is.

    Raises:
        ModelError: the model is not found, or cannot be used.
    """
    faults = list[str]()
    for files in _candidates(space, settings, faults):
        if (files.manifest.digest, files.manifest.model) == (space.digest, space.model):
            manifest = replace(files.manifest, query_prefix=space.query_prefix, passage_prefix=space.passage_prefix)
            model_files = replace(files, manifest=manifest)
            where, precision = settings.device, settings.precision
            embedder = open_model(model_files, settings.data_dir, where, precision, space.precision, on_batch)
            if VectorSpace.of(embedder.spec) == space:
                return embedder
    again = f", or fetch it with 'kb model use {space.model}'" if space.model in catalogue() else ""
    why = "".join(f" {fault}" for fault in faults)
    raise ModelError(f"kb cannot find the model {space}.{why} Set KB_MODEL_DIR to its folder{again}.")


def _candidates(space: VectorSpace, settings: Settings, faults: list[str]) -> Iterator[ModelFiles]:
    """Yield the models in the possible folders: the setting, the recorded folder, the data folder, the default.

    `faults` receives why a folder that exists has none.
    """
    recorded = [Path(space.folder)] if space.folder else []
    here = [
        files.onnx.parent
        for _, files in installed(settings.data_dir / "models")
        if files.manifest.digest == space.digest != SOURCES[WEIGHTS]
    ]
    folders = [settings.model_dir, *recorded, *here, None]
    for folder in dict.fromkeys(folders):
        if folder is None and space.digest != SOURCES[WEIGHTS]:
            continue  # the default model would be downloaded in vain
        try:
            yield find_model(folder, settings.data_dir)
        except ModelError as error:
            if folder and folder.exists():
                faults.append(error.detail.removeprefix("KB_MODEL_DIR: "))
