"""A model in fp16, for GPUs.

Importing this takes a third of a second (`onnx`): it is imported to convert the model, not to run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto

FP32_OPERATORS = [*DEFAULT_OP_BLOCK_LIST, "ReduceSum", "LpNormalization"]
"""Operators that compute in fp32 as before; the sum over a long text's tokens is one."""


def to_fp16(model: Path) -> ModelProto:
    """Return the graph with weights and arithmetic in fp16; its inputs and its output stay as they are."""
    half = OnnxModel(convert_float_to_float16(onnx.load(model), keep_io_types=True, op_block_list=FP32_OPERATORS))
    half.topological_sort()
    onnx.checker.check_model(half.model)
    return half.model
