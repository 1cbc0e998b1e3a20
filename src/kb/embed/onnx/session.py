"""ONNX Runtime: imported here alone, and sessions that run where they were asked to."""

from __future__ import annotations

import ctypes
import os
from functools import partial
from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

from kb.api.errors import ModelError
from kb.embed.artifact import ModelFiles
from kb.embed.onnx.providers import Device, provider_options
from kb.embed.onnx.requirements import Machine, cpu_flags

CPU = "CPUExecutionProvider"

EXACT = "session.x64quantprecision"
"""Where a CPU has no instructions for products of integers, sums of two would otherwise be cut off at 16 bits. Where it
has them, this takes half as long again."""

SPIN = "20"
"""For how many microseconds a thread looks for its next task before it sleeps."""

LOAD_ERRORS = (
    state.EPFail,
    state.Fail,
    state.InvalidArgument,
    state.InvalidGraph,
    state.InvalidProtobuf,
    state.NoSuchFile,
    state.NotImplemented,
    state.RuntimeException,
)
"""They have no common base but Exception."""


def open_session(
    files: ModelFiles, device: Device, machine: Machine, threads: int, cache: Path | None = None
) -> onnxruntime.InferenceSession:
    """Load a model on `device`, using `threads` cores; `cache` is a folder for what is compiled.

    Raises:
        ModelError: the device cannot be used, the model cannot be loaded, or it would run elsewhere than asked.
    """
    if fault := machine.fault(device):
        raise ModelError(f"KB_DEVICE: {device.name} cannot be used: {fault}.")
    if cache and device.lengths:
        cache.mkdir(parents=True, exist_ok=True)
    providers = [(device.provider, provider_options(device, threads, cache))]
    try:
        # It would otherwise print the error and go on, on the CPU.
        options = _options(threads, multiplies_int8=machine.multiplies_int8)
        session = onnxruntime.InferenceSession(files.onnx, options, providers=providers, enable_fallback=0)
    except LOAD_ERRORS as error:
        if device.provider == CPU:
            raise ModelError(f"The model {files.onnx} cannot be loaded: {' '.join(str(error).split())}") from error
        raise _refusal(device, machine, " ".join(str(error).split())) from error
    # A provider that fails to load leaves the session to the CPU without a word.
    if session.get_providers()[0] != device.provider:
        raise _refusal(device, machine, f"ONNX Runtime took {session.get_providers()[0]} instead of {device.provider}")
    return session


def _refusal(device: Device, machine: Machine, reason: str) -> ModelError:
    return ModelError(f"KB_DEVICE: {device.name} cannot be used: {machine.library_fault(device) or reason}.")


def detect_machine() -> Machine:
    """Return what ONNX Runtime was built with and what is plugged in here."""
    return Machine(
        providers=onnxruntime.get_available_providers(),
        libraries=Path(onnxruntime.__file__).parent / "capi",
        # As ONNX Runtime loads them: the provider's library finds the shared one among the global ones.
        load=partial(ctypes.CDLL, mode=ctypes.RTLD_GLOBAL),
        preload=getattr(onnxruntime, "preload_dlls", lambda: None),
        cpu_flags=cpu_flags(),
    )


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _options(threads: int, *, multiplies_int8: bool) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    if not multiplies_int8:
        options.add_session_config_entry(EXACT, "1")
    # A query's operators take less time than a thread needs to wake; one that looks for long takes a core from others.
    options.add_session_config_entry("session.intra_op.spin_duration_us", SPIN)
    return options
