"""Checks whether this machine meets a device's requirements, with a remedy for missing ones."""

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.embed.onnx.providers import Device

CUDA = 13
"""The lowest version of CUDA that the NVIDIA driver must support; ONNX Runtime is built for it."""

CUDA_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
BUILDS = {
    "CUDAExecutionProvider": ("cuda", "onnxruntime-gpu"),
    "MIGraphXExecutionProvider": ("rocm", "onnxruntime-migraphx"),
    "OpenVINOExecutionProvider": ("openvino", "onnxruntime-openvino"),
}
"""The extra of kb and the build of ONNX Runtime in it. All builds have the same files, so the last one counts."""

PROVIDER_LIBRARIES = {"cuda": "libonnxruntime_providers_cuda.so", "rocm": "libonnxruntime_providers_migraphx.so"}
LIBRARY_REMEDIES = {
    "cuda": "install CUDA 13 and cuDNN 9, as 'kb-local[cuda]' does",
    "rocm": "install ROCm 7 with MIGraphX, or use a base image with them",
}
CUDA_ERRORS = {
    100: "no GPU",
    101: "the GPU does not exist",
    803: "the driver and its library are of different versions",
    804: "this driver's library does not support the GPU",
}
BF16_FLAGS = frozenset(("avx512_bf16", "amx_bf16"))
INT8_FLAGS = frozenset(("avx512_vnni", "avx_vnni", "amx_int8", "asimddp"))
"""Instructions of Intel, AMD and ARM that multiply and add integers in one step."""


@dataclass(frozen=True)
class Machine:
    """The installed software and the connected devices.

    Args:
        providers: the execution providers that the installed ONNX Runtime was built with.
        libraries: the folder of its libraries.
        load: loads a shared library, or raises OSError.
        preload: lets ONNX Runtime load CUDA and cuDNN from Python packages.
        dev: the folder of devices.
        cpu_flags: the CPU's features, as Linux names them; None if unknown.
    """

    providers: Sequence[str]
    libraries: Path
    load: Callable[[str], Any] = ctypes.CDLL
    preload: Callable[[], object] = lambda: None
    dev: Path = Path("/dev")
    cpu_flags: frozenset[str] | None = None

    def fault(self, device: Device) -> str | None:
        """Return why `device` cannot be used here, with the remedy, if this is known in advance; otherwise None."""
        if device.provider not in self.providers:
            extra, build = BUILDS[device.provider]
            return (
                f"the installed ONNX Runtime has only {', '.join(self.providers)}: install 'kb-local[{extra}]' in its"
                f" own environment, then run 'pip uninstall -y onnxruntime' and"
                f" 'pip install --force-reinstall --no-deps {build}'"
            )
        if device.name == "cuda":
            return self._cuda_fault()
        if device.name == "rocm":
            return self._rocm_fault()
        return self._bf16_fault() if "bf16" in device.precisions else None

    @property
    def multiplies_int8(self) -> bool:
        """Whether the CPU has instructions for products of integers; False if unknown."""
        return bool(self.cpu_flags and self.cpu_flags & INT8_FLAGS)

    def library_fault(self, device: Device) -> str | None:
        """Return the library that the provider lacks, with the remedy; None if it lacks none."""
        if device.name not in PROVIDER_LIBRARIES:
            return None
        try:
            for name in ("libonnxruntime_providers_shared.so", PROVIDER_LIBRARIES[device.name]):
                self.load(str(self.libraries / name))
        except OSError as error:
            return f"a library is missing ({error}): {LIBRARY_REMEDIES[device.name]}"
        return None

    def _cuda_fault(self) -> str | None:
        try:
            driver = self.load(CUDA_DRIVER)
        except OSError as error:
            return (
                f"the NVIDIA driver is not installed ({error}): install it,"
                " or give the container the GPU (make up-gpu, docker run --gpus all)"
            )
        version = ctypes.c_int()
        if code := driver.cuInit(0):
            reason = CUDA_ERRORS.get(code, "see the output of nvidia-smi")
            return f"the NVIDIA driver cannot start (error {code}: {reason}): check nvidia-smi and CUDA_VISIBLE_DEVICES"
        driver.cuDriverGetVersion(ctypes.byref(version))
        if version.value < CUDA * 1000:
            installed = f"{version.value // 1000}.{version.value % 1000 // 10}"
            return f"the NVIDIA driver supports CUDA {installed}, but kb needs CUDA {CUDA}: install a newer driver"
        with contextlib.redirect_stdout(None):  # it prints missing libraries, which may not matter
            self.preload()
        return None

    def _rocm_fault(self) -> str | None:
        renderers = sorted((self.dev / "dri").glob("renderD*")) or [self.dev / "dri" / "renderD128"]
        for path in (self.dev / "kfd", renderers[0]):
            try:
                os.close(os.open(path, os.O_RDWR))
            except FileNotFoundError:
                return (
                    f"the AMD driver is not loaded ({path} does not exist): load amdgpu,"
                    " or give the container the GPU (make up-rocm, docker run --device /dev/kfd --device /dev/dri)"
                )
            except PermissionError:
                return (
                    f"this user is not allowed to open {path}, which belongs to the group {_group(path)}: add the user"
                    " to the group (usermod -aG), or give the container its number (KB_RENDER_GID, KB_VIDEO_GID)"
                )
            except OSError as error:
                return f"kb cannot open {path} ({error.strerror}): see the output of rocminfo"
        return None

    def _bf16_fault(self) -> str | None:
        if self.cpu_flags is not None and not self.cpu_flags & BF16_FLAGS:
            return f"this CPU does not compute in bf16 (it has none of {', '.join(sorted(BF16_FLAGS))}): use fp32"
        return None


def cpu_flags() -> frozenset[str] | None:
    """Return the features of this machine's CPU, as Linux names them; None if unknown."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return frozenset(("asimddp",))  # every Apple CPU has it
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return frozenset(line.partition(":")[2].split())
    return None


def _group(path: Path) -> str:
    """Return the group of a device, by name and number."""
    number = path.stat().st_gid
    if sys.platform != "win32":
        import grp

        with contextlib.suppress(KeyError):
            return f"{grp.getgrgid(number).gr_name} ({number})"
    return str(number)
