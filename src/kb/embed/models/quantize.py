"""A model in fewer bits: fp16 for GPUs, int8 for CPUs.

Importing this takes a third of a second (`onnx`): it is imported to convert the model, not to run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray
    from onnx import ModelProto

FP32_OPERATORS = [*DEFAULT_OP_BLOCK_LIST, "ReduceSum", "LpNormalization"]
"""Operators that compute in fp32 as before; the sum over a long text's tokens is one."""


def to_fp16(model: Path) -> ModelProto:
    """Return the graph with weights and arithmetic in fp16; its inputs and its output stay as they are."""
    half = OnnxModel(convert_float_to_float16(onnx.load(model), keep_io_types=True, op_block_list=FP32_OPERATORS))
    half.topological_sort()
    onnx.checker.check_model(half.model)
    return half.model


BLOCK = 32
"""So many weights, and so many of a row's values, share a scale."""

MICROSOFT = "com.microsoft"


def to_int8(model: Path) -> ModelProto:
    """Return the graph with the weights of its linear layers in int8, multiplied as such with each row's own rounding.

    A text's vector does not depend on the texts beside it, as it does with `quantize_dynamic`. All else stays in fp32;
    that is a small part of the work.
    """
    loaded = onnx.load(model)
    graph = loaded.graph
    weights = {each.name: each for each in graph.initializer}
    nodes = [_quantized_linear(node, weights, graph) if _is_linear(node, weights) else node for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [each for each in graph.initializer if each.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    loaded.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return loaded


def _is_linear(node: onnx.NodeProto, weights: dict[str, onnx.TensorProto]) -> bool:
    return node.op_type == "MatMul" and node.input[1] in weights and weights[node.input[1]].dims[0] % BLOCK == 0


def _quantized_linear(
    node: onnx.NodeProto, weights: dict[str, onnx.TensorProto], graph: onnx.GraphProto
) -> onnx.NodeProto:
    """Return the operator that computes the same with rounded weights, which are put into the graph."""
    name = node.input[1]
    weight = numpy_helper.to_array(weights[name])
    for suffix, array in zip(("rounded", "scales"), quantize_blocks(weight), strict=True):
        graph.initializer.append(numpy_helper.from_array(array, f"{name} {suffix}"))
    return helper.make_node(
        "MatMulNBits",
        [node.input[0], f"{name} rounded", f"{name} scales"],
        node.output,
        name=node.name,
        domain=MICROSOFT,
        K=weight.shape[0],
        N=weight.shape[1],
        bits=8,
        block_size=BLOCK,
        accuracy_level=4,  # the other factor in int8, too
    )


def quantize_blocks(weight: NDArray[np.float32]) -> Iterator[NDArray[np.uint8 | np.float32]]:
    """Yield a matrix of shape (in, out) as uint8 around 128, of shape (out, in / BLOCK, BLOCK), and its scales."""
    blocks = weight.T.reshape(weight.shape[1], -1, BLOCK)
    scales = np.maximum(np.abs(blocks).max(axis=2, keepdims=True), np.finfo(np.float32).tiny) / 127
    yield (np.round(blocks / scales) + 128).astype(np.uint8)
    yield scales.reshape(weight.shape[1], -1).astype(np.float32)
