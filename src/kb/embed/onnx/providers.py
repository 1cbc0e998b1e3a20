"""The devices for a model, their precisions, and suitable settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kb.api.errors import ModelError

OPENVINO_BF16 = '{"CPU": {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": "%d"}}'
PRECISION_HINTS = {
    "fp16": " (a CPU converts it to fp32 and back, which is only slower)",
    "int8": " (a GPU is faster in fp16)",
}
GPU_MEMORY = 4 << 30
"""The maximum GPU memory for one session's arena, in bytes; a full batch needs an eighth of it."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device under one execution provider.

    A batch has at most `batch_tokens` tokens, padding included, and at most `padding` tokens of padding. Beyond that,
    another batch is cheaper.

    Args:
        precisions: the precisions that it computes in.
        lengths: the only sequence lengths that it receives, if each new shape needs a compilation.
        rows: the only batch sizes that it then receives.
    """

    name: str
    provider: str
    precisions: tuple[str, ...]
    batch_tokens: int
    padding: int
    lengths: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()

    @property
    def is_gpu(self) -> bool:
        """Whether it is not the CPU."""
        return self.name != "cpu"

    @property
    def max_rows(self) -> int | None:
        """The maximum number of texts in a batch; None for no limit."""
        return max(self.rows, default=None)

    def shape(self, rows: int, length: int) -> tuple[int, int]:
        """Return the shape of the arrays for `rows` texts of up to `length` tokens."""
        return _round_up(rows, self.rows), _round_up(length, self.lengths)


DEVICES = (
    Device("cuda", "CUDAExecutionProvider", ("fp32", "fp16"), batch_tokens=16_384, padding=4_096),
    Device(
        "rocm",
        "MIGraphXExecutionProvider",
        ("fp32", "fp16"),
        batch_tokens=16_384,
        padding=4_096,
        lengths=(32, 128, 256, 512),
        rows=(1, 16, 64),
    ),
    Device("cpu", "CPUExecutionProvider", ("fp32",), batch_tokens=768, padding=8),
    Device("cpu", "CPUExecutionProvider", ("int8",), batch_tokens=512, padding=0),  # see int8.py: no padding allowed
    Device("cpu", "OpenVINOExecutionProvider", ("bf16",), batch_tokens=768, padding=8),
)
"""In the order in which `auto` prefers them."""


def candidates(device_name: str, precision: str) -> list[Device]:
    """Return the possible devices for `device_name` (`auto`, `cpu`, `cuda` or `rocm`), in order of preference.

    Raises:
        ModelError: no such device computes in this precision.
    """
    named = [device for device in DEVICES if device_name in ("auto", device.name)]
    matching = [device for device in named if precision in device.precisions]
    if not matching:
        possible = " or ".join(dict.fromkeys(other for device in named for other in device.precisions))
        subject = "no device on this machine computes" if device_name == "auto" else f"{device_name} does not compute"
        raise ModelError(f"KB_PRECISION: {subject} in {precision}{PRECISION_HINTS.get(precision, '')}. Use {possible}.")
    return matching


def provider_options(device: Device, threads: int, cache: Path | None) -> dict[str, str]:
    """Return the options of an execution provider: `threads` for the CPU, and a folder for compiled models."""
    if device.name == "cuda":
        return {
            "gpu_mem_limit": str(GPU_MEMORY),
            # The default doubles each new allocation.
            "arena_extend_strategy": "kSameAsRequested",
            # TF32 has the mantissa of fp16, and fp32 must be the same on every device.
            "use_tf32": "0",
        }
    if device.name == "rocm":
        caching = {"migraphx_model_cache_dir": str(cache)} if cache else {}
        return {"migraphx_mem_limit": str(GPU_MEMORY), **caching}
    if device.provider == "OpenVINOExecutionProvider":
        return {"device_type": "CPU", "load_config": OPENVINO_BF16 % threads}
    return {}


def _round_up(number: int, choices: Sequence[int]) -> int:
    """Return the smallest of `choices` that is not less than `number`, or `number` itself."""
    return next((choice for choice in choices if choice >= number), number)
