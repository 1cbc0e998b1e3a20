"""A model in int8, for CPUs: the linear layers multiply integers, and a text's vector depends only on that text.

Weights have one scale per column. The input rows of a layer are rounded in one of two ways:

- Most share one scale, computed from kb's own texts (`calibration.txt`). Before that, channels with large values are
  divided, and their weights multiplied, by factors that balance both ("SmoothQuant", Xiao and others, 2022).
- The wide rows between the two layers of a feed-forward network have a few values that are many times larger than the
  others. Therefore each row has its own scale.

The attention between them is one operator, and the table of words is in half precision; all else stays in fp32.
docs/adr/0011-devices.md has the decision, docs/benchmarks.md the figures. The import takes a third of a second
(`onnx`), so this module is imported only to convert the model, not to run it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer

from kb.api.errors import ModelError

Floats = NDArray[np.float32]

MICROSOFT: Final = "com.microsoft"

SMOOTHING: Final = 0.7
"""The part of the rounding difficulty that moves from a layer's rows to its weights, between 0 and 1."""

MARGIN: Final = 1.1
"""The factor by which a scale exceeds the largest value in the calibration texts."""

STEPS: Final = 255
ZERO: Final = 128
ZERO_ONE_SIDED: Final = 16
"""The zero point of a row with its own scale, and of such a row with few negative values, which need fewer steps."""

ONE_SIDED: Final = 0.25
"""The negative values of such a row reach less than this share of its largest value."""

LEAST_COSINE: Final = 0.98
"""The lowest accepted cosine between vectors in int8 and fp32."""

FOLDER: Final = "session.model_external_initializers_file_folder_path"


@dataclass(frozen=True)
class Range:
    """The smallest and the largest value of each channel."""

    low: Floats
    high: Floats

    @property
    def largest(self) -> Floats:
        """The largest absolute value of each channel, never 0."""
        return np.maximum(np.maximum(-self.low, self.high), np.float32(1e-5))


def to_int8(model: Path, tokenizer: Path, window: int) -> ModelProto:
    """Return the graph with its linear layers in int8; its inputs and its output stay the same.

    Its attention ignores padding: all texts of a batch must have the same length.

    Raises:
        ModelError: the vectors differ too much from the fp32 model's.
    """
    texts = list(_calibration(tokenizer, window))
    quantized = onnx.load(model)
    _fuse_attention(quantized.graph)
    _Quantizer(quantized, _ranges(model, texts)).quantize()
    sessions = InferenceSession(model), _session(quantized)
    pairs = [[session.run(["embedding"], text)[0] for session in sessions] for text in texts]
    least = min(float((one * other).sum()) for one, other in pairs)
    if least < LEAST_COSINE:
        raise ModelError(
            f"KB_PRECISION: in int8, the vectors of the model in {model.parent} differ too much from fp32"
            f" (cosine {least:.3f}). Set KB_PRECISION=fp32."
        )
    return quantized


def _calibration(tokenizer: Path, window: int) -> Iterator[dict[str, NDArray[np.int64]]]:
    """Yield calibration texts as the model reads them: each line, and the whole text in windows."""
    loaded = Tokenizer.from_file(str(tokenizer))
    loaded.no_padding()
    loaded.enable_truncation(window)
    text = files("kb.embed.models").joinpath("calibration.txt").read_text(encoding="utf-8")
    words = text.split()
    long = (" ".join(words[start : start + window]) for start in range(0, len(words), window))
    for piece in ["", *text.splitlines(), *long]:
        ids = np.array([loaded.encode(piece).ids], np.int64)
        yield {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def _ranges(model: Path, texts: Sequence[dict[str, Any]]) -> dict[str, Range]:
    """Return the range of each input of linear layers, by its name in the graph."""
    observed = onnx.load(model, load_external_data=False)
    names = list(dict.fromkeys(node.input[0] for node in _linear(observed)))
    observed.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = _session(observed, model.parent)
    ranges: dict[str, Range] = {}
    for text in texts:
        for name, values in zip(names, session.run(names, text), strict=True):
            rows = values.reshape(-1, values.shape[-1])
            low, high = rows.min(axis=0), rows.max(axis=0)
            seen = ranges.get(name, Range(low, high))
            ranges[name] = Range(np.minimum(seen.low, low), np.maximum(seen.high, high))
    return ranges


def _session(model: ModelProto, folder: Path | None = None) -> InferenceSession:
    options = SessionOptions()
    if folder:
        options.add_session_config_entry(FOLDER, str(folder))
    return InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _linear(model: ModelProto) -> list[NodeProto]:
    """Return the nodes that multiply rows with a matrix of weights."""
    matrices = {initializer.name for initializer in model.graph.initializer if len(initializer.dims) == 2}
    return [node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in matrices]


def _is_table(constant: TensorProto | None) -> bool:
    """Whether a constant contains vectors of words or of positions."""
    return constant is not None and constant.data_type == TensorProto.FLOAT and len(constant.dims) == 2


def _have_nodes(graph: GraphProto, nodes: Sequence[NodeProto], constants: Mapping[str, TensorProto]) -> None:
    """Set a graph's nodes, without unused ones, and the constants that they read."""
    remaining = list(nodes)
    while True:
        used = {name for node in remaining for name in node.input} | {output.name for output in graph.output}
        needed = [node for node in remaining if node.output[0] in used]
        if len(needed) == len(remaining):
            break
        remaining = needed
    del graph.node[:]
    graph.node.extend(remaining)
    read = [constant for name, constant in constants.items() if name in used]
    del graph.initializer[:]
    graph.initializer.extend(read)


def _fuse_attention(graph: GraphProto) -> None:
    """Fuse attention into one operator, part by part; attention in another form than kb's stays unchanged."""
    made_by = {node.output[0]: node for node in graph.node}
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    constants = {initializer.name: initializer for initializer in graph.initializer}
    fused: dict[str, NodeProto] = {}
    for softmax in (node for node in graph.node if node.op_type == "Softmax"):
        with suppress(LookupError, ValueError):
            scores = made_by[_path(made_by, softmax.input[0], "Add", "Div")]
            context = readers[softmax.output[0]][0]
            factors = scores.input[0], scores.input[1], context.input[1]
            inputs = [_path(made_by, factor, "Transpose", "Reshape") for factor in factors]
            shape = numpy_helper.to_array(constants[made_by[made_by[factors[0]].input[0]].input[1]])
            joined = readers[readers[context.output[0]][0].output[0]][0]
            fused[joined.output[0]] = helper.make_node(
                "MultiHeadAttention", inputs, joined.output, domain=MICROSOFT, num_heads=int(shape[2])
            )
    _have_nodes(graph, [fused.get(node.output[0], node) for node in graph.node], constants)


def _path(made_by: Mapping[str, NodeProto], name: str, *operators: str) -> str:
    """Return the input of the first operator in a chain of these operators that ends in a value.

    Raises:
        LookupError: other operators made the value.
    """
    for operator in operators:
        node = made_by[name]
        if node.op_type != operator:
            raise LookupError(operator)
        name = node.input[0]
    return name


@dataclass(frozen=True)
class WeightRows:
    """Rounded rows by name: the rows, their scale and their zero point.

    `smoothing` contains the divisor of each channel, `own_scales` the scale of each row if the rows have their own.
    """

    name: str
    scale: str
    zero: str
    smoothing: Floats
    own_scales: str | None = None


class _Quantizer:
    """Rewrites a model in place."""

    def __init__(self, model: ModelProto, ranges: dict[str, Range]) -> None:
        self._model = model
        self._ranges = ranges
        self._graph = model.graph
        self._constants = {initializer.name: initializer for initializer in self._graph.initializer}
        self._readers: dict[str, list[NodeProto]] = defaultdict(list)
        for node in self._graph.node:
            for name in node.input:
                self._readers[name].append(node)
        self._products = [node for node in self._graph.node if node.op_type == "Mul"]
        self._nodes: list[NodeProto] = []
        self._rows: dict[str, WeightRows] = {}

    def quantize(self) -> None:
        """Replace the linear layers, and halve the tables."""
        linear = {node.output[0] for node in _linear(self._model)}
        fused: set[str] = set()
        for node in self._graph.node:
            if node.output[0] in linear:
                fused.add(self._multiply(node))
            elif node.op_type == "Gather" and _is_table(self._constants.get(node.input[0])):
                self._look_up(node)
            elif self._is_sum_of_tokens(node):
                self._add_up(node)
            elif node.output[0] not in fused:
                self._nodes.append(node)
        _have_nodes(self._graph, self._nodes, self._constants)
        self._model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))

    def _multiply(self, node: NodeProto) -> str:
        """Multiply in integers, and add the bias; return the output of the last replaced node."""
        rows = self._rows.get(node.input[0]) or self._round(node.input[0])
        self._rows[node.input[0]] = rows
        weight = numpy_helper.to_array(self._constants[node.input[1]]) * rows.smoothing[:, None]
        scales = np.maximum(np.abs(weight).max(axis=0), np.finfo(np.float32).tiny) / 127
        rounded = self._constant(f"{node.input[1]} rounded", np.round(weight / scales).astype(np.int8))
        factors = rows.name, rounded, rows.scale, self._constant(f"{node.input[1]} scales", scales), rows.zero
        if rows.own_scales:
            product = self._add("MatMulIntegerToFloat", *factors, domain=MICROSOFT)
            self._add("Mul", product, rows.own_scales, output=node.output[0])
            return str(node.output[0])
        bias, output = self._bias(str(node.output[0]))
        self._add("MatMulIntegerToFloat", *factors, "", bias, output=output, domain=MICROSOFT)
        return output

    def _bias(self, product: str) -> tuple[str, str]:
        """Return the constant added to a product with no other reader, and the sum's name; "" if it has none."""
        readers = self._readers[product]
        if len(readers) == 1 and readers[0].op_type == "Add":
            [other] = [name for name in readers[0].input if name != product] or [""]
            if other in self._constants and len(self._constants[other].dims) == 1:
                return other, readers[0].output[0]
        return "", product

    def _round(self, name: str) -> WeightRows:
        """Round the rows that linear layers read."""
        read_by = [node for node in _linear(self._model) if node.input[0] == name]
        weights = [numpy_helper.to_array(self._constants[node.input[1]]) for node in read_by]
        if all(weight.shape[0] > weight.shape[1] for weight in weights):
            return self._round_by_row(name)
        seen = self._ranges[name]
        largest_weights = np.maximum(np.max([np.abs(weight).max(axis=1) for weight in weights], axis=0), 1e-5)
        smoothing = (seen.largest**SMOOTHING / largest_weights ** (1 - SMOOTHING)).astype(np.float32)
        low, high = (MARGIN * float(limit) for limit in ((seen.low / smoothing).min(), (seen.high / smoothing).max()))
        low, high = min(low, 0.0), max(high, 0.0)
        scale = self._constant(f"{name} scale", np.float32((high - low) / STEPS))
        zero = self._constant(f"{name} zero", np.uint8(round(-low / (high - low) * STEPS)))
        smoothed = self._add("Mul", name, self._constant(f"{name} smoothing", 1 / smoothing))
        return WeightRows(self._add("QuantizeLinear", smoothed, scale, zero), scale, zero, smoothing)

    def _round_by_row(self, name: str) -> WeightRows:
        """Round each row with its own scale."""
        seen = self._ranges[name]
        lowest, highest = float(-seen.low.min()), float(seen.high.max())
        is_one_sided = lowest < ONE_SIDED * highest
        zero = ZERO_ONE_SIDED if is_one_sided else ZERO
        steps = STEPS - zero
        # This leaves enough steps for negative values.
        least = MARGIN * lowest * steps / zero if is_one_sided else 1e-9
        largest = self._add("ReduceMax", name if is_one_sided else self._add("Abs", name), axes=(-1,), keepdims=1)
        largest = self._add("Max", largest, self._constant(f"{name} least", np.float32(least)))
        steps_there = self._constant(f"steps {steps}", np.float32(steps))
        stretched = self._add("Mul", name, self._add("Div", steps_there, largest))
        one, zero_there = self._constant("one", np.float32(1)), self._constant(f"zero {zero}", np.uint8(zero))
        scales = self._add("Div", largest, steps_there)
        rounded = self._add("QuantizeLinear", stretched, one, zero_there)
        return WeightRows(rounded, one, zero_there, np.ones_like(seen.high), scales)

    def _look_up(self, node: NodeProto) -> None:
        """Look up a row in a table of half precision."""
        table = numpy_helper.to_array(self._constants[node.input[0]]).astype(np.float16)
        half = self._add("Gather", self._constant(f"{node.input[0]} half", table), node.input[1])
        self._add("Cast", half, output=node.output[0], to=TensorProto.FLOAT)

    def _is_sum_of_tokens(self, node: NodeProto) -> bool:
        """Whether a node sums the masked vectors of a text's tokens."""
        if node.op_type != "ReduceSum" or len(node.input) < 2 or node.input[1] not in self._constants:
            return False
        axes = numpy_helper.to_array(self._constants[node.input[1]])
        is_flat = any(attribute.name == "keepdims" and attribute.i == 0 for attribute in node.attribute)
        return is_flat and axes.tolist() == [1] and any(node.input[0] in other.output for other in self._products)

    def _add_up(self, node: NodeProto) -> None:
        """Sum the vectors of tokens with a product, because ReduceSum uses another order for a single text."""
        ones = self._add("Unsqueeze", "attention_mask", self._constant("axis 1", np.array([1], np.int64)))
        ones = self._add("Cast", ones, to=TensorProto.FLOAT)
        total = self._add("MatMul", ones, node.input[0])
        self._add("Squeeze", total, self._constant("axis 1", np.array([1], np.int64)), output=node.output[0])

    def _add(self, operator: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: Any) -> str:  # noqa: ANN401
        """Append a node with one output, and return that output's name."""
        output = output or f"int8 {len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def _constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """Store a tensor under a name, and return the name."""
        self._constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name
