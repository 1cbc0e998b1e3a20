"""The embedding model on ONNX Runtime."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

from kb.api.errors import ModelError
from kb.embed.artifact import ModelFiles
from kb.embed.onnx.providers import DEVICES, Device, candidates
from kb.embed.onnx.requirements import Machine
from kb.embed.onnx.session import CPU, RUNTIME_ERRORS, available_cores, detect_machine, fault_in, open_session
from kb.embed.onnx.substitute import Substitute
from kb.embed.protocol import Likeness, ModelSpec

OnBatch = Callable[[int, float], None]
Batch = Sequence[Sequence[int]]

log = logging.getLogger(__name__)

MOST_AT_ONCE = 8
"""The maximum number of batches computed at once, each with about 30 MB. More cores are divided among the batches."""

GPU_BATCHES = 2
"""The maximum number of batches on a GPU at once: while one is computed, the next one is copied. More would take more
memory, because another thread cannot use freed memory at once.
"""
SMALL_BATCH = 512
"""The maximum number of tokens of a batch, such as a query, that need not wait for others."""

Part = TypeVar("Part")
Result = TypeVar("Result")

MIN_TOKENS = 16
"""The minimum number of tokens of a text that a model must read in addition to its prefix."""


class OnnxEmbedder:
    """A model on a device: `auto`, `cpu`, `cuda` or `rocm`. Safe to call from several threads.

    `threads` is the number of CPU cores, by default all that the process may use. A single query uses all of them;
    several batches run in parallel, each on one core. `cache` is a folder for compiled models, `machine` the machine to
    run on, by default this one. `on_batch` is called after each batch with its number of texts and its seconds. If a
    GPU fails later, the CPU computes with the files `on_cpu`, by default the same ones if a CPU can use them.

    Raises:
        ModelError: The device is missing, the files cannot be loaded, or the window is too small.
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
        on_cpu: ModelFiles | None = None,
    ) -> None:
        self._on_batch = on_batch
        machine, cores = machine or detect_machine(), threads or available_cores()
        before = files.stamps()
        self._device, self._session = select_device(files, device, machine, cores, cache)
        chosen = self._device  # a reference to self in open_on would keep the sessions until garbage collection

        def open_on(count: int) -> InferenceSession:
            if files.stamps() != before:  # its vectors might differ
                raise ModelError(f"The model {files.onnx} was changed or removed while kb used it. Restart the engine.")
            return open_session(files, chosen, machine, count)

        is_spread = chosen.provider == CPU and cores > 1
        self._core_pool = CorePool(open_on, cores, self._session) if is_spread else None
        self._gpu_batches = threading.BoundedSemaphore(GPU_BATCHES) if chosen.is_gpu else None
        self._substitute = _substitute_for(chosen, on_cpu or files, cores, machine, on_batch)
        self._tokenizer = _load_tokenizer(files.tokenizer)
        self._tail = _special_tokens_behind(self._tokenizer)
        self.spec = _spec(files, self._tokenizer.num_special_tokens_to_add(is_pair=False))
        self._check_window()

    @property
    def current(self) -> OnnxEmbedder:
        """The embedder itself: its model never changes."""
        return self

    @property
    def models(self) -> Sequence[OnnxEmbedder]:
        return [self]

    @property
    def device(self) -> str:
        """The device: `cpu`, `cuda` or `rocm`; `cpu` also while a GPU fails."""
        return "cpu" if self._is_substituted else self._device.name

    @property
    def provider(self) -> str:
        return CPU if self._is_substituted else str(self._session.get_providers()[0])

    @property
    def _is_substituted(self) -> bool:
        return self._substitute is not None and self._substitute.is_needed

    def count_tokens(self, text: str) -> int:
        [encoding] = self._tokenizer.encode_batch_fast([text])
        return len(encoding)

    def token_starts(self, text: str) -> list[int]:
        return [start for start, _ in self._tokenizer.encode(text, add_special_tokens=False).offsets]

    def embed_queries(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), each of length 1, in the order of `texts`.

        A long text is cut to the part that fits into the window after the prefix. Unless `alone`, the CPU uses one core
        and leaves the others to other work; the vectors are the same.
        """
        return self._embed(self.spec.query_prefix, texts, alone=alone)

    def embed_passages(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        return self._embed(self.spec.passage_prefix, texts, alone=alone)

    def _embed(self, prefix: str, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        prefixed = [prefix + text for text in texts] if prefix else list(texts)
        tokens = [self._truncated(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(prefixed)]
        if self._substitute is None:
            return self._vectors(tokens, alone=alone)
        if not self._substitute.is_needed:
            try:
                return self._vectors(tokens, alone=alone)
            except RUNTIME_ERRORS as error:
                self._substitute.report(fault_in(error))
        return self._substitute.model()._vectors(tokens, alone=alone)

    def _vectors(self, tokens: Sequence[list[int]], *, alone: bool) -> NDArray[np.float32]:
        vectors = np.empty((len(tokens), self.spec.dimensions), np.float32)
        places = [*batches([len(ids) for ids in tokens], self._device)]
        places.reverse()  # the shortest batches run last
        rows = [[tokens[index] for index in batch] for batch in places]
        for batch, computed in zip(places, self._computed(rows, alone=alone), strict=True):
            vectors[batch] = computed
        return vectors

    def _computed(self, rows: Sequence[Batch], *, alone: bool) -> Iterable[NDArray[np.float32]]:
        """Yield the vectors of batches."""
        if self._core_pool and len(rows) > 1:
            return self._core_pool.map(self._run, rows)
        session = self._session if alone or not self._core_pool else self._core_pool.session
        return (self._run(session, batch) for batch in rows)

    def _truncated(self, ids: list[int]) -> list[int]:
        """Return the ids that fit into the window, including the special tokens at the end."""
        window = self.spec.window
        return ids if len(ids) <= window else ids[: window - self._tail] + ids[len(ids) - self._tail :]

    def _run(self, session: InferenceSession, rows: Batch) -> NDArray[np.float32]:
        """Return the vectors of a batch of token ids."""
        ids = np.zeros(self._device.shape(len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        mask[:, 0] = 1  # rows that only fill the shape also need a token for their mean
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        vectors: NDArray[np.float32]
        with self._gpu_batches if self._gpu_batches and ids.size > SMALL_BATCH else nullcontext():
            start = perf_counter()
            (vectors,) = session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})
        self._on_batch(len(rows), perf_counter() - start)
        return vectors[: len(rows)]

    def _check_window(self) -> None:
        spec = self.spec
        for prefix in (spec.query_prefix, spec.passage_prefix):
            overhead = self.count_tokens(prefix)
            if spec.window - overhead < MIN_TOKENS:
                raise ModelError(
                    f"The model {spec.name} reads {spec.window} tokens, {overhead} of them for its prefix and special"
                    f" tokens: kb needs {MIN_TOKENS} more for a text."
                )


def select_device(
    files: ModelFiles, device_name: str, machine: Machine, threads: int, cache: Path | None
) -> tuple[Device, InferenceSession]:
    """Return the device that `device_name` means on this machine, and a session on it.

    `auto` skips a device that cannot be used, and logs a warning if ONNX Runtime was built for it.

    Raises:
        ModelError: no such device can be used, or the model cannot be loaded.
    """
    refusals: list[str] = []
    for device in candidates(device_name, files.precision):
        try:
            return device, open_session(files, device, machine, threads, cache)
        except ModelError as error:
            refusals.append(error.detail)
            if device_name == "auto" and device.provider in machine.providers:
                log.warning("%s", error.detail)
    raise ModelError(refusals[-1] if device.name == "cpu" else " ".join(refusals))


def _substitute_for(
    device: Device, files: ModelFiles, threads: int, machine: Machine, on_batch: OnBatch
) -> Substitute[OnnxEmbedder] | None:
    """Return the model on the CPU for when a GPU fails; None if no CPU computes in its precision."""
    if not device.is_gpu or not any(each.provider == CPU and files.precision in each.precisions for each in DEVICES):
        return None
    before = files.stamps()

    def open_model() -> OnnxEmbedder:
        if files.stamps() != before:
            raise ModelError(f"The model {files.onnx} was changed or removed while it was in use.")
        return OnnxEmbedder(files, "cpu", threads, machine=machine, on_batch=on_batch)

    return Substitute(device.name, open_model)


def _load_tokenizer(path: Path) -> Tokenizer:
    """Load the model's tokenizer, without the truncation and the padding that its file sets."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _special_tokens_behind(tokenizer: Tokenizer) -> int:
    """Return the number of special tokens after a text."""
    mask = tokenizer.encode("a").special_tokens_mask
    return mask[::-1].index(0)


def _spec(files: ModelFiles, special_tokens: int) -> ModelSpec:
    manifest = files.manifest
    return ModelSpec(
        name=manifest.model,
        digest=manifest.digest,
        precision=files.precision,
        dimensions=manifest.dimensions,
        window=manifest.window,
        special_tokens=special_tokens,
        query_prefix=manifest.query_prefix,
        passage_prefix=manifest.passage_prefix,
        likeness=Likeness(*manifest.likeness),
    )


def batches(lengths: Sequence[int], device: Device) -> Iterator[list[int]]:
    """Split texts of these lengths into batches of their indexes, shortest first, with similar lengths together."""
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padded = length * (len(batch) + 1)
        full = len(batch) == device.max_rows or padded > device.batch_tokens
        if batch and (full or padded - tokens - length > device.padding):
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += length
    if batch:
        yield batch


class CorePool:
    """A session on one core, opened on first use, and a thread for each core.

    Cores that share a batch wait for each other at every operator, and for any core that another thread took. With
    enough work, each core is more productive with its own batch.

    Args:
        open_session: opens a session on a number of cores.
        shared: the session on all cores, used if no other session can be opened.
    """

    def __init__(self, open_session: Callable[[int], InferenceSession], cores: int, shared: InferenceSession) -> None:
        cores_each = -(-cores // MOST_AT_ONCE)
        self._open = partial(open_session, cores_each)
        self._opening = threading.Lock()
        self._session: InferenceSession | None = None
        self._shared = shared
        self._threads = ThreadPoolExecutor(cores // cores_each, "kb-model")

    @property
    def session(self) -> InferenceSession:
        """The session, which any number of threads may run."""
        with self._opening:
            if self._session is None:
                try:
                    self._session = self._open()
                except ModelError as error:
                    log.warning("ingestion and many searches take longer until the next start: %s", error.detail)
                    self._session = self._shared
            return self._session

    def map(self, run: Callable[[InferenceSession, Part], Result], batches: Sequence[Part]) -> Iterator[Result]:
        return self._threads.map(partial(run, self.session), batches)
