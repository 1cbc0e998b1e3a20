"""Sessions of ONNX Runtime that run on the requested device."""

import ctypes
import os
import re
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

from kb.api.errors import ModelError
from kb.embed.artifact import ModelFiles
from kb.embed.onnx.providers import Device, provider_options
from kb.embed.onnx.requirements import Machine, cpu_flags

CPU = "CPUExecutionProvider"

EXACT = "session.x64quantprecision"
"""Without it, a CPU without instructions for products of integers would cut off sums of two at 16 bits. On other CPUs,
the option makes inference take 1.5 times as long.
"""

GPU_FAULT = re.compile(
    r"(?:CUDA|CUBLAS|CUDNN|CURAND) failure [^;]+"
    r"|Available memory of \d+ is smaller than requested bytes of \d+"
    r"|Failed to allocate memory for requested buffer of size \d+"
)
"""The reason in an error of a GPU, among pages of C++."""

SPIN = "20"
"""The microseconds that a thread looks for its next task before it sleeps."""

RUNTIME_ERRORS = (
    state.EPFail,
    state.Fail,
    state.InvalidArgument,
    state.InvalidGraph,
    state.InvalidProtobuf,
    state.NoSuchFile,
    state.NotImplemented,
    state.RuntimeException,
    RuntimeError,  # a CUDA call that fails while a session is opened
)
"""Their only common base is Exception."""


def open_session(
    files: ModelFiles, device: Device, machine: Machine, threads: int, cache: Path | None = None
) -> onnxruntime.InferenceSession:
    """Load a model on `device`, using `threads` cores; `cache` is a folder for compiled models.

    Raises:
        ModelError: the device or the model cannot be used, or the model would run on another device.
    """
    if fault := machine.fault(device):
        raise ModelError(f"KB_DEVICE: kb cannot use {device.name}: {fault}.")
    if cache and device.lengths:
        cache.mkdir(parents=True, exist_ok=True)
    providers = [(device.provider, provider_options(device, threads, cache))]
    try:
        # Otherwise it would print the error and continue on the CPU.
        options = _options(threads, multiplies_int8=machine.multiplies_int8)
        session = onnxruntime.InferenceSession(files.onnx, options, providers=providers, enable_fallback=0)
    except RUNTIME_ERRORS as error:
        if device.provider == CPU:
            raise ModelError(f"kb cannot load the model {files.onnx}: {fault_in(error)}") from error
        raise _refusal(device, machine, fault_in(error)) from error
    # If a provider fails to load, the session runs on the CPU without a warning.
    if session.get_providers()[0] != device.provider:
        raise _refusal(device, machine, f"ONNX Runtime chose {session.get_providers()[0]} instead of {device.provider}")
    if device.is_gpu:
        _try_out(session, device)
    return session


def fault_in(error: Exception) -> str:
    """Return the reason in an error of ONNX Runtime, in one line."""
    message = " ".join(str(error).split())
    found = GPU_FAULT.search(message)
    return found.group().strip() if found else message


def _try_out(session: onnxruntime.InferenceSession, device: Device) -> None:
    """Embed one short text: a GPU that is too old or has no free memory opens a session all the same.

    Raises:
        ModelError: the GPU cannot compute.
    """
    ids = np.ones(device.shape(1, 3), np.int64)
    try:
        session.run(["embedding"], {"input_ids": ids, "attention_mask": ids})
    except RUNTIME_ERRORS as error:
        raise ModelError(f"KB_DEVICE: kb cannot use {device.name}: no results ({fault_in(error)}).") from error


def _refusal(device: Device, machine: Machine, reason: str) -> ModelError:
    return ModelError(f"KB_DEVICE: kb cannot use {device.name}: {machine.library_fault(device) or reason}.")


def detect_machine() -> Machine:
    """Return the properties of this machine and of its ONNX Runtime."""
    return Machine(
        providers=onnxruntime.get_available_providers(),
        libraries=Path(onnxruntime.__file__).parent / "capi",
        # In ONNX Runtime's way: the provider's library finds the shared one among the global libraries.
        load=partial(ctypes.CDLL, mode=ctypes.RTLD_GLOBAL),
        preload=getattr(onnxruntime, "preload_dlls", lambda: None),
        cpu_flags=cpu_flags(),
    )


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _options(threads: int, *, multiplies_int8: bool) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    if not multiplies_int8:
        options.add_session_config_entry(EXACT, "1")
    # A query's operators take less time than a thread needs to wake, but a thread that spins long occupies a core.
    options.add_session_config_entry("session.intra_op.spin_duration_us", SPIN)
    return options
