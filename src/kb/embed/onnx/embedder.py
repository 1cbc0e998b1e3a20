"""The embedding model on ONNX Runtime."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from kb.api.errors import ModelError
from kb.embed.onnx.providers import candidates
from kb.embed.onnx.session import available_cores, open_session, this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

    from kb.embed.models.artifact import ModelFiles
    from kb.embed.onnx.providers import Device
    from kb.embed.onnx.requirements import Machine

    OnBatch = Callable[[int, float], None]

log = logging.getLogger(__name__)


class OnnxEmbedder:
    """A model on a device: `auto`, `cpu`, `cuda` or `rocm`. Safe to call from several threads.

    `threads` is how many cores one call uses on the CPU; all that the process may use when not given. `cache` is
    a folder for what is compiled, `machine` what it runs on; this one when not given. `on_batch` is told of each batch
    how many texts were in it and how many seconds it took.

    Raises:
        ModelError: The device is not there, or the files cannot be loaded.
    """

    def __init__(
        self,
        files: ModelFiles,
        device: str = "auto",
        threads: int | None = None,
        *,
        cache: Path | None = None,
        machine: Machine | None = None,
        on_batch: OnBatch = lambda *_: None,
    ) -> None:
        self._on_batch = on_batch
        self._manifest, self._precision = files.manifest, files.precision
        self._device, self._session = open_best(
            files, device, machine or this_machine(), threads or available_cores(), cache
        )
        self._counter = _tokenizer(files.tokenizer)
        self._reader = _tokenizer(files.tokenizer)
        self._reader.enable_truncation(files.manifest.window)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._manifest.model

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._manifest.dimensions

    @property
    def window(self) -> int:
        """The most tokens of one text that the model reads, its special tokens included."""
        return self._manifest.window

    @property
    def precision(self) -> str:
        """The arithmetic, such as `fp32`."""
        return self._precision

    @property
    def digest(self) -> str:
        """The SHA-256 of the weights."""
        return self._manifest.digest

    @property
    def device(self) -> str:
        """Where it runs: `cpu`, `cuda` or `rocm`."""
        return self._device.name

    @property
    def provider(self) -> str:
        """The execution provider that is really active, in ONNX Runtime's words."""
        return str(self._session.get_providers()[0])

    def count_tokens(self, text: str) -> int:
        """The number of tokens of `text`, special tokens included, without truncation."""
        return len(self._counter.encode(text))

    def token_starts(self, text: str) -> list[int]:
        """Where each token of `text` begins, in characters, special tokens excluded."""
        return [start for start, _ in self._counter.encode(text, add_special_tokens=False).offsets]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimensions), each of length 1, in the order of `texts`.

        Of a longer text only the first `window` tokens count.
        """
        tokens = [encoding.ids for encoding in self._reader.encode_batch_fast(list(texts))]
        vectors = np.empty((len(tokens), self.dimensions), np.float32)
        for batch in batches([len(ids) for ids in tokens], self._device):
            vectors[batch] = self._run([tokens[index] for index in batch])
        return vectors

    def _run(self, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """The vectors of a batch of token ids."""
        ids = np.zeros(self._device.shape(len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        mask[:, 0] = 1  # in rows that only fill the shape, so that there is something to take the mean of
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        begun = perf_counter()
        (vectors,) = self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})
        self._on_batch(len(rows), perf_counter() - begun)
        return vectors[: len(rows)]  # type: ignore[no-any-return]


def batches(lengths: Sequence[int], device: Device) -> Iterator[list[int]]:
    """Split texts of these lengths into batches of their indexes, the shortest first, like with like."""
    batch: list[int] = []
    real = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padded = length * (len(batch) + 1)
        full = len(batch) == device.most_rows or padded > device.batch_tokens
        if batch and (full or padded - real - length > device.padding):
            yield batch
            batch, real = [], 0
        batch.append(index)
        real += length
    if batch:
        yield batch


def open_best(
    files: ModelFiles, wanted: str, machine: Machine, threads: int, cache: Path | None
) -> tuple[Device, InferenceSession]:
    """The device that `wanted` stands for on this machine, and a session on it.

    `auto` passes over a device that cannot be used, and says so where ONNX Runtime was built for it.

    Raises:
        ModelError: no such device can be used, or the model cannot be loaded.
    """
    refusals: list[str] = []
    for device in candidates(wanted, files.precision):
        try:
            return device, open_session(files, device, machine, threads, cache)
        except ModelError as error:
            refusals.append(error.detail)
            if wanted == "auto" and device.provider in machine.providers:
                log.warning("%s", error.detail)
    raise ModelError(refusals[-1] if device.name == "cpu" else " ".join(refusals))


def _tokenizer(path: Path) -> Tokenizer:
    """The model's tokenizer, without the truncation at 128 tokens and the padding that its file asks for."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
