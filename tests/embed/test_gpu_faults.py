"""What kb does if a GPU fails, at the start and later.

ONNX Runtime's session is a stand-in that computes on the CPU and fails as those of a real GPU did.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as state

from kb.api.errors import ModelError
from kb.embed.benchmark import describe
from kb.embed.onnx import session as runtime
from kb.embed.onnx import substitute
from kb.embed.onnx.embedder import GPU_BATCHES, OnnxEmbedder
from kb.embed.onnx.requirements import Machine
from kb.embed.onnx.substitute import RETRY_SECONDS
from tests.embed.test_devices import CPU, CUDA, Driver, machine_with
from tests.support.models import quantized
from tests.support.rare_cases import mostly_rare

pytestmark = pytest.mark.slow  # each test opens further sessions of the model

TEXTS = ["river", "a key under the mat", "stone " * 300]
OUT_OF_MEMORY = state.Fail(
    "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Add node. Name:'' Status Message:"
    " bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*)"
    " Available memory of 387501568 is smaller than requested bytes of 390168576"
)
LOST = state.Fail(
    "[ONNXRuntimeError] : 1 : FAIL : CUDA failure 719: unspecified launch failure ; GPU=0 ; hostname=vm ; line=91"
)


def anew(error):
    """Return an equal error: one that is kept would keep the sessions in its traceback."""
    return type(error)(*error.args)


class Gpu:
    """The GPU: whether and how it fails, and how many batches it has computed at once."""

    def __init__(self):
        self.error = None
        self.opening_error = None
        self.runs = self.busy = self.busiest = 0
        self.lock = threading.Lock()

    def session(self, on_cpu):
        """Return a session of ONNX Runtime on this GPU."""
        if self.opening_error:
            raise anew(self.opening_error)
        return GpuSession(self, on_cpu)


class GpuSession:
    def __init__(self, gpu, on_cpu):
        self.gpu, self.on_cpu = gpu, on_cpu

    def get_providers(self):
        return [CUDA.provider, CPU]

    def run(self, names, feed):
        with self.gpu.lock:
            self.gpu.runs += 1
            self.gpu.busy += 1
            self.gpu.busiest = max(self.gpu.busiest, self.gpu.busy)
        try:
            time.sleep(0.01)
            if self.gpu.error:
                raise anew(self.gpu.error)
            return self.on_cpu.run(names, feed)
        finally:
            with self.gpu.lock:
                self.gpu.busy -= 1


@pytest.fixture
def gpu(monkeypatch):
    there, real = Gpu(), onnxruntime.InferenceSession

    def open_session(model, options, providers, **rest):
        if providers[0][0] != CUDA.provider:
            return real(model, options, providers=providers, **rest)
        return there.session(real(model, options, providers=[CPU]))

    monkeypatch.setattr(runtime.onnxruntime, "InferenceSession", open_session)
    return there


@pytest.fixture
def clock(monkeypatch):
    """The time of what waits before it tries the GPU again."""
    now = [1000.0]
    monkeypatch.setattr(substitute.Substitute.__init__, "__defaults__", (lambda: now[0],))
    return now


def on_gpu(files, **rest):
    return OnnxEmbedder(files, "cuda", 2, machine=machine_with(CUDA.provider, {"libcuda.so.1": Driver()}), **rest)


@pytest.mark.parametrize(
    ("error", "words"),
    mostly_rare(
        [
            (OUT_OF_MEMORY, "Available memory of 387501568 is smaller than requested bytes of 390168576"),
            (LOST, "CUDA failure 719: unspecified launch failure"),
            (
                RuntimeError(
                    "cuda_call.cc:154 [with ERRTYPE = cudaError; bool THRW = true] CUDA failure 2: out of memory ; GPU=0"
                ),
                "CUDA failure 2: out of memory",
            ),
            (state.Fail("something\n else"), "something else"),
        ]
    ),
)
def test_the_cpu_computes_while_the_gpu_fails_and_the_log_says_why(gpu, model_files, embedder, caplog, error, words):
    ours = on_gpu(model_files)
    assert (ours.device, ours.provider) == ("cuda", CUDA.provider)
    gpu.error = error
    assert np.abs(ours.embed_passages(TEXTS) - embedder.embed_passages(TEXTS)).max() < 1e-6
    assert np.abs(ours.embed_queries(TEXTS) - embedder.embed_queries(TEXTS)).max() < 1e-6
    assert (ours.device, ours.provider) == ("cpu", CPU)
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.message.startswith(f"cuda failed ({words}): the CPU computes instead")


def test_a_gpu_that_failed_is_left_alone_for_a_while_and_then_used_again(gpu, model_files, caplog, clock):
    ours = on_gpu(model_files)
    gpu.error = OUT_OF_MEMORY
    ours.embed_passages(["a"])
    tried = gpu.runs
    gpu.error = None
    clock[0] += RETRY_SECONDS - 1
    ours.embed_passages(["b"])
    assert (gpu.runs, ours.device) == (tried, "cpu")
    clock[0] += 2
    ours.embed_passages(["c"])
    assert (gpu.runs, ours.device) == (tried + 1, "cuda")
    assert len(caplog.records) == 1


def test_half_precision_is_computed_in_full_precision_on_the_cpu(gpu, model_files, embedder, tmp_path):
    half = quantized(model_files, tmp_path, "fp16")
    ours = on_gpu(half, on_cpu=model_files)
    gpu.error = LOST
    assert np.abs(ours.embed_passages(TEXTS) - embedder.embed_passages(TEXTS)).max() < 1e-6


def test_half_precision_without_other_files_fails_with_the_gpu(gpu, model_files, tmp_path):
    ours = on_gpu(quantized(model_files, tmp_path, "fp16"))
    gpu.error = LOST
    with pytest.raises(state.Fail):
        ours.embed_passages(TEXTS)


def test_files_that_were_changed_in_the_meantime_are_not_computed_with(gpu, model_files, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in model_files.onnx.parent.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    ours = on_gpu(replace(model_files, onnx=folder / model_files.onnx.name))
    (folder / model_files.onnx.name).touch()
    gpu.error = LOST
    with pytest.raises(ModelError, match="was changed or removed while it was in use"):
        ours.embed_passages(TEXTS)


@pytest.mark.parametrize(
    "error", [OUT_OF_MEMORY, RuntimeError("[with X = y; T = z] CUDNN failure 4000: INTERNAL ; GPU=0")]
)
def test_a_gpu_that_cannot_open_the_model_is_refused_and_auto_takes_the_cpu(gpu, model_files, caplog, error):
    gpu.opening_error = error
    loadable = dict.fromkeys(("libcuda.so.1",), Driver()) | {
        name: object() for name in ("libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so")
    }
    machine = machine_with(CUDA.provider, loadable)
    with pytest.raises(ModelError, match=r"KB_DEVICE: kb cannot use cuda: (Available memory|CUDNN failure 4000)"):
        OnnxEmbedder(model_files, "cuda", machine=machine)
    assert OnnxEmbedder(model_files, machine=machine).device == "cpu"
    assert "kb cannot use cuda" in caplog.text


def test_a_gpu_that_opens_the_model_and_cannot_compute_is_refused_too(gpu, model_files, caplog):
    gpu.error = state.Fail("CUDA failure 209: no kernel image is available for execution on the device ; GPU=0")
    with pytest.raises(ModelError, match=r"kb cannot use cuda: no results .CUDA failure 209: no kernel image"):
        on_gpu(model_files)
    machine = machine_with(CUDA.provider, {"libcuda.so.1": Driver()})
    assert OnnxEmbedder(model_files, machine=machine).device == "cpu"


def test_few_large_batches_are_on_a_gpu_at_once(gpu, model_files, embedder):
    ours, texts = on_gpu(model_files), ["river " * 90] * 6
    with ThreadPoolExecutor(6) as pool:
        [vectors, *_] = pool.map(lambda _: ours.embed_passages(texts), range(6))
    assert gpu.busiest == GPU_BATCHES
    assert np.abs(vectors - embedder.embed_passages(texts)).max() < 1e-6


def test_a_query_does_not_wait_for_large_batches(gpu, model_files):
    ours = on_gpu(model_files)
    for _ in range(GPU_BATCHES):
        ours._gpu_batches.acquire()  # as two threads that compute for long
    assert ours.embed_queries(["river"]).shape == (1, 384)


def test_the_cpu_is_never_said_to_be_missing(gpu, model_files, monkeypatch):
    machine = Machine([CUDA.provider, CPU], Path("/capi"), lambda _: Driver())
    monkeypatch.setattr("kb.embed.benchmark.detect_machine", lambda: machine)
    assert set(describe(on_gpu(model_files))["not_used"]) == {"rocm"}
