"""Which device is taken, what it is told, and what is said where something is missing.

The machine is a stand-in: the providers that ONNX Runtime would have, the libraries that could be loaded, a folder of
devices. What decides is our own.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from kb.api.errors import ModelError
from kb.embed import benchmark as measure
from kb.embed.models.prepare import prepare
from kb.embed.onnx import session as runtime
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.onnx.providers import DEVICES, candidates, provider_options
from kb.embed.onnx.requirements import Machine
from kb.embed.onnx.session import detect_machine
from tests.support.models import quantized, size

CPU = "CPUExecutionProvider"
CUDA, ROCM, PLAIN, INT8, OPENVINO = DEVICES
NOBODY = 65534


class Driver:
    """NVIDIA's, as far as it is asked: what it answers to cuInit, and the CUDA that it supports."""

    def __init__(self, answer=0, version=13_010):
        self.answer, self.version = answer, version

    def cuInit(self, _flags):  # noqa: N802
        return self.answer

    def cuDriverGetVersion(self, version):  # noqa: N802
        ctypes.cast(version, ctypes.POINTER(ctypes.c_int))[0] = self.version
        return 0


def machine_with(provider, loadable=None, **rest):
    """A machine whose ONNX Runtime has `provider`; of libraries it has those in `loadable`, by file name."""
    loadable = loadable or {}

    def load(name):
        if (library := loadable.get(Path(name).name)) is None:
            raise OSError(f"{Path(name).name}: cannot open shared object file")
        return library

    return Machine([provider, CPU], Path("/capi"), load, **rest)


@contextmanager
def without_rights():
    """As a user who is not root."""
    if os.geteuid():
        yield
        return
    importlib.import_module("grp")  # that user may not read where Python is
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def dev():
    """A folder of devices that every user can look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "dri").mkdir(mode=0o755)
        yield Path(folder)


@pytest.mark.requirement("S-4")
@pytest.mark.parametrize(
    ("wanted", "precision", "providers"),
    [
        ("auto", "fp32", ["CUDAExecutionProvider", "MIGraphXExecutionProvider", CPU]),
        ("auto", "fp16", ["CUDAExecutionProvider", "MIGraphXExecutionProvider"]),
        ("auto", "bf16", ["OpenVINOExecutionProvider"]),
        ("auto", "int8", [CPU]),
        ("cpu", "fp32", [CPU]),
        ("cuda", "fp16", ["CUDAExecutionProvider"]),
        ("rocm", "fp32", ["MIGraphXExecutionProvider"]),
    ],
)
def test_each_device_has_its_provider_for_a_precision(wanted, precision, providers):
    assert [device.provider for device in candidates(wanted, precision)] == providers


@pytest.mark.parametrize(
    ("wanted", "precision", "words"),
    [
        (
            "cpu",
            "fp16",
            "cpu does not compute in fp16 (a CPU converts it to fp32 and back, which is only slower). Use fp32 or int8 or bf16",
        ),
        ("cuda", "bf16", "cuda does not compute in bf16. Use fp32 or fp16"),
        ("cuda", "int8", "cuda does not compute in int8 (a GPU is faster in fp16). Use fp32 or fp16"),
    ],
)
def test_a_precision_that_a_device_does_not_have_is_refused_with_those_it_has(wanted, precision, words):
    with pytest.raises(ModelError) as refused:
        candidates(wanted, precision)
    assert refused.value.detail.startswith("KB_PRECISION: ")
    assert words in refused.value.detail


@pytest.mark.parametrize(
    "device", [device for device in DEVICES if device not in (PLAIN, INT8)], ids=lambda each: each.provider
)
def test_a_build_without_the_provider_names_the_extra_that_has_it(device):
    fault = machine_with(CPU).fault(device)
    assert "only CPUExecutionProvider" in fault
    assert {
        "cuda": "kb-local[cuda]",
        "rocm": "kb-local[rocm]",
        "cpu": "kb-local[openvino]",
    }[device.name] in fault


@pytest.mark.parametrize(
    ("loadable", "words"),
    [
        ({}, "the NVIDIA driver is not installed (libcuda.so.1: cannot open shared object file): install it"),
        ({"libcuda.so.1": Driver(100)}, "the NVIDIA driver cannot start (error 100: no GPU): check nvidia-smi"),
        ({"libcuda.so.1": Driver(999)}, "error 999: see the output of nvidia-smi"),
        (
            {"libcuda.so.1": Driver(version=12_040)},
            "the NVIDIA driver supports CUDA 12.4, but kb needs CUDA 13: install a newer",
        ),
    ],
)
def test_a_cuda_driver_that_does_not_do_is_told_apart(loadable, words):
    assert words in machine_with(CUDA.provider, loadable).fault(CUDA)


def test_a_cuda_driver_that_does_is_no_fault():
    assert machine_with(CUDA.provider, {"libcuda.so.1": Driver()}).fault(CUDA) is None


def test_a_library_of_the_provider_that_is_missing_is_named_with_what_has_it():
    fault = machine_with(ROCM.provider, {"libonnxruntime_providers_shared.so": object()}).library_fault(ROCM)
    assert fault.startswith("a library is missing (libonnxruntime_providers_migraphx.so: cannot open")
    assert "install ROCm 7" in fault


def test_what_keeps_the_model_from_other_devices_is_told_also_if_it_is_a_library(monkeypatch, embedder):
    machine = machine_with(CUDA.provider, {"libcuda.so.1": Driver()})
    monkeypatch.setattr(measure, "detect_machine", lambda: machine)
    told = measure.describe(embedder)["not_used"]
    assert told["cuda"].startswith("a library is missing (libonnxruntime_providers_shared.so: cannot open")
    assert "kb-local[rocm]" in told["rocm"]


def test_an_amd_gpu_needs_its_driver(dev):
    assert f"the AMD driver is not loaded ({dev / 'kfd'} does not exist)" in machine_with(ROCM.provider, dev=dev).fault(
        ROCM
    )
    (dev / "kfd").touch()
    assert f"({dev / 'dri' / 'renderD128'} does not exist)" in machine_with(ROCM.provider, dev=dev).fault(ROCM)
    (dev / "dri" / "renderD129").touch()
    assert machine_with(ROCM.provider, dev=dev).fault(ROCM) is None


@pytest.mark.parametrize("closed", ["kfd", "dri/renderD128"])
def test_an_amd_gpu_that_this_user_may_not_use_names_the_group(dev, closed):
    for name in ("kfd", "dri/renderD128"):
        (dev / name).touch()
        (dev / name).chmod(0o000 if name == closed else 0o666)
    with without_rights():
        fault = machine_with(ROCM.provider, dev=dev).fault(ROCM)
    number = (dev / closed).stat().st_gid
    assert f"this user is not allowed to open {dev / closed}, which belongs to the group" in fault
    assert f"{number})" in fault
    assert "KB_RENDER_GID" in fault


def test_a_cpu_without_bf16_is_refused_and_one_with_it_is_not():
    machine = machine_with(OPENVINO.provider, cpu_flags=frozenset(["avx2"]))
    assert "this CPU does not compute in bf16" in machine.fault(OPENVINO)
    assert replace(machine, cpu_flags=frozenset(["avx512_bf16"])).fault(OPENVINO) is None
    assert replace(machine, cpu_flags=None).fault(OPENVINO) is None


def test_cuda_keeps_to_an_arena_and_to_fp32(tmp_path):
    options = provider_options(CUDA, 2, tmp_path)
    assert options == {"gpu_mem_limit": str(4 << 30), "arena_extend_strategy": "kSameAsRequested", "use_tf32": "0"}


def test_what_rocm_compiles_is_kept_in_the_folder_given(tmp_path):
    assert provider_options(ROCM, 2, tmp_path)["migraphx_model_cache_dir"] == str(tmp_path)
    assert "migraphx_model_cache_dir" not in provider_options(ROCM, 2, None)


def test_openvino_is_told_the_precision_and_the_threads(tmp_path):
    assert '"bf16"' in provider_options(OPENVINO, 3, tmp_path)["load_config"]
    assert '"INFERENCE_NUM_THREADS": "3"' in provider_options(OPENVINO, 3, tmp_path)["load_config"]


class Session:
    """What ONNX Runtime gives when a provider's library does not load: a session on the CPU, without a word."""

    def get_providers(self):
        return [CPU]


@pytest.fixture
def seen(monkeypatch):
    """What ONNX Runtime was asked for, in order; each session falls back to the CPU."""
    calls = []

    def open_session(model, options, providers, **rest):
        calls.append(("session", providers[0][0], rest))
        return Session()

    monkeypatch.setattr(runtime.onnxruntime, "InferenceSession", open_session)
    return calls


@pytest.mark.requirement("S-4")
def test_a_session_that_fell_back_to_the_cpu_stops_the_start_with_the_library_that_is_missing(model_files, seen):
    loadable = {"libcuda.so.1": Driver(), "libonnxruntime_providers_shared.so": object()}
    with pytest.raises(ModelError) as refused:
        OnnxEmbedder(model_files, "cuda", machine=machine_with(CUDA.provider, loadable))
    assert refused.value.detail.startswith("KB_DEVICE: kb cannot use cuda: a library is missing")
    assert "libonnxruntime_providers_cuda.so" in refused.value.detail
    assert "kb-local[cuda]" in refused.value.detail


def test_a_session_that_fell_back_for_no_known_reason_stops_the_start_all_the_same(model_files, seen):
    loadable = {name: object() for name in ("libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so")}
    machine = machine_with(CUDA.provider, loadable | {"libcuda.so.1": Driver()})
    with pytest.raises(ModelError, match="ONNX Runtime chose CPUExecutionProvider instead of CUDAExecutionProvider"):
        OnnxEmbedder(model_files, "cuda", machine=machine)


def test_cudas_libraries_are_loaded_before_the_session_is_opened(model_files, seen):
    machine = machine_with(CUDA.provider, {"libcuda.so.1": Driver()}, preload=lambda: seen.append("preloaded"))
    with pytest.raises(ModelError):
        OnnxEmbedder(model_files, "cuda", machine=machine)
    assert seen == ["preloaded", ("session", "CUDAExecutionProvider", {"enable_fallback": 0})]


def test_what_the_preloading_prints_stays_out_of_what_scripts_read(capsys):
    machine = machine_with(CUDA.provider, {"libcuda.so.1": Driver()}, preload=lambda: print("Failed to load"))
    assert machine.fault(CUDA) is None
    assert capsys.readouterr() == ("", "")


def test_detect_machine_preloads_with_what_onnx_runtime_has_for_it():
    assert detect_machine().preload is onnxruntime.preload_dlls


@pytest.mark.parametrize(("provider", "name"), [(CUDA.provider, "cuda"), (ROCM.provider, "rocm")])
def test_auto_says_what_it_passes_over_and_takes_the_cpu(model_files, caplog, dev, provider, name):
    embedder = OnnxEmbedder(model_files, machine=machine_with(provider, dev=dev))
    assert (embedder.device, embedder.provider) == ("cpu", CPU)
    assert [record.message.startswith(f"KB_DEVICE: kb cannot use {name}: the ") for record in caplog.records] == [True]


def test_auto_says_nothing_of_devices_that_the_build_is_not_for(model_files, caplog):
    assert OnnxEmbedder(model_files, machine=machine_with("AzureExecutionProvider")).device == "cpu"
    assert caplog.records == []


def test_auto_in_half_precision_has_no_cpu_to_fall_back_to(model_files, dev):
    half = replace(model_files, precision="fp16")
    with pytest.raises(ModelError, match=r"KB_DEVICE: kb cannot use cuda.* KB_DEVICE: kb cannot use rocm"):
        OnnxEmbedder(half, machine=machine_with(CPU, dev=dev))


@pytest.mark.slow
def test_fixed_shapes_give_the_same_vectors(model_files, embedder):
    texts = ["", "river", "word " * 300, *(f"word {'and ' * number}" for number in range(0, 140, 7))]
    fixed = OnnxEmbedder(model_files, "cpu")
    few_rows = replace(ROCM, rows=(1, 4, 8), batch_tokens=2_048)  # less memory; the session stays on the CPU
    fixed._device = few_rows
    shapes = []
    run = fixed._session.run
    fixed._session = type(
        "Seen", (), {"run": lambda _, names, feed: shapes.append(feed["input_ids"].shape) or run(names, feed)}
    )()
    assert np.abs(fixed.embed_passages(texts) - embedder.embed_passages(texts)).max() < 1e-5
    assert {rows for rows, _ in shapes} <= set(few_rows.rows)
    assert {length for _, length in shapes} <= set(ROCM.lengths)


@pytest.fixture(scope="module")
def half(model_files, tmp_path_factory):
    return quantized(model_files, tmp_path_factory.mktemp("half"), "fp16")


@pytest.mark.requirement("S-4")
@pytest.mark.slow
def test_half_precision_is_half_the_size_and_means_the_same(half, model_files, embedder):
    assert size(half) < 0.51 * size(model_files)
    texts = [
        "",
        "🐈",
        "Where do I put the key?",
        "river stone " * 200,
        *(f"word {'and ' * number}" for number in range(50)),
    ]
    on_cpu = OnnxEmbedder(replace(half, precision="fp32"), "cpu")  # no CPU is offered it; its numbers are the same
    assert np.sum(on_cpu.embed_passages(texts) * embedder.embed_passages(texts), axis=1).min() > 0.999


@pytest.mark.rare
def test_half_precision_is_made_once(half, model_files):
    before = half.onnx.stat().st_mtime_ns
    again = prepare(model_files.onnx.parent, half.onnx.parents[2], "fp16")
    assert (again, again.onnx.stat().st_mtime_ns) == (half, before)


def test_bf16_is_the_same_files(model_files, tmp_path):
    assert prepare(model_files.onnx.parent, tmp_path, "bf16") == replace(model_files, precision="bf16")


@pytest.mark.rare
def test_a_model_in_half_precision_is_taken_as_it_is_and_not_turned_back(half, tmp_path):
    assert prepare(half.onnx.parent, tmp_path).precision == "fp16"
    with pytest.raises(ModelError, match=r"KB_PRECISION: .*is in fp16, but kb converts only fp32 models to fp32"):
        prepare(half.onnx.parent, tmp_path, "fp32")
