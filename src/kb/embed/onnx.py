"""The embedding model on ONNX Runtime."""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from kb.contract.errors import ModelError

# From 1.29 ONNX Runtime reports to its makers unless it is told not to before it is loaded (requirement S-6).
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from kb.embed.model import ModelFiles

    OnBatch = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class Device:
    """Where a model can run, and what suits it there.

    A batch has at most `batch_tokens` tokens, padding included, and at most `padding` of padding: beyond
    that, another batch is cheaper.
    """

    provider: str
    batch_tokens: int
    padding: int


DEVICES: Mapping[str, Device] = {
    "cuda": Device("CUDAExecutionProvider", batch_tokens=32_768, padding=4_096),
    "rocm": Device("MIGraphXExecutionProvider", batch_tokens=32_768, padding=4_096),
    "cpu": Device("CPUExecutionProvider", batch_tokens=768, padding=8),
}
"""In the order in which `auto` prefers them."""

LOAD_ERRORS = (
    runtime.EPFail,
    runtime.Fail,
    runtime.InvalidArgument,
    runtime.InvalidGraph,
    runtime.InvalidProtobuf,
    runtime.NoSuchFile,
    runtime.NotImplemented,
    runtime.RuntimeException,
)
"""They have no common base but Exception."""


class OnnxEmbedder:
    """all-MiniLM-L6-v2 on a device: `auto`, `cpu`, `cuda` or `rocm`. Safe to call from several threads.

    `threads` is how many cores one call uses on the CPU; all that the process may use when not given. `on_batch` is
    told of each batch how many texts were in it and how many seconds it took.

    Raises:
        ModelError: The device is not there, or the files cannot be loaded.
    """

    def __init__(
        self,
        files: ModelFiles,
        device: str = "auto",
        threads: int | None = None,
        *,
        on_batch: OnBatch = lambda *_: None,
    ) -> None:
        self._files = files
        self._on_batch = on_batch
        self._device = choose_device(device)
        self._session = open_session(files.onnx, self._device, threads or available_cores())
        self._counter = _tokenizer(files.tokenizer)
        self._reader = _tokenizer(files.tokenizer)
        self._reader.enable_truncation(files.window)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._files.name

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._files.dimensions

    @property
    def window(self) -> int:
        """The most tokens of one text that the model reads, its special tokens included."""
        return self._files.window

    @property
    def precision(self) -> str:
        """The arithmetic, such as `fp32`."""
        return self._files.precision

    @property
    def device(self) -> str:
        """Where it runs: `cpu`, `cuda` or `rocm`."""
        return self._device

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
        for batch in batches([len(ids) for ids in tokens], DEVICES[self._device]):
            vectors[batch] = self._run([tokens[index] for index in batch])
        return vectors

    def _run(self, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """The vectors of a batch of token ids."""
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        begun = perf_counter()
        (vectors,) = self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})
        self._on_batch(len(rows), perf_counter() - begun)
        return vectors  # type: ignore[no-any-return]


def batches(lengths: Sequence[int], device: Device) -> Iterator[list[int]]:
    """Split texts of these lengths into batches of their indexes, the shortest first, like with like."""
    batch: list[int] = []
    real = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padded = length * (len(batch) + 1)
        if batch and (padded > device.batch_tokens or padded - real - length > device.padding):
            yield batch
            batch, real = [], 0
        batch.append(index)
        real += length
    if batch:
        yield batch


def choose_device(wanted: str) -> str:
    """The device that `wanted` (`auto`, `cpu`, `cuda` or `rocm`) stands for in this build of ONNX Runtime.

    Raises:
        ModelError: This build of ONNX Runtime has no such device.
    """
    available = onnxruntime.get_available_providers()
    for name, device in DEVICES.items():
        if wanted in ("auto", name) and device.provider in available:
            return name
    raise ModelError(
        f"KB_DEVICE: the installed ONNX Runtime does not support '{wanted}' (it has {', '.join(available)})."
    )


def open_session(model: Path, device: str, threads: int) -> onnxruntime.InferenceSession:
    """Load `model` on `device` (`cpu`, `cuda` or `rocm`), using `threads` cores.

    Raises:
        ModelError: The model cannot be loaded, or would run elsewhere than asked.
    """
    provider = DEVICES[device].provider
    if device == "cuda" and hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    try:
        session = onnxruntime.InferenceSession(model, _options(threads), providers=[provider])
    except LOAD_ERRORS as error:
        raise ModelError(f"The model {model} cannot be loaded: {' '.join(str(error).split())}") from error
    if session.get_providers()[0] != provider:
        raise ModelError(f"KB_DEVICE: ONNX Runtime cannot use '{device}' on this machine; 'cpu' would work.")
    return session


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # Threads that spin between operators burn a core and gain nothing measurable.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _tokenizer(path: Path) -> Tokenizer:
    """The model's tokenizer, without the truncation at 128 tokens and the padding that its file asks for."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
