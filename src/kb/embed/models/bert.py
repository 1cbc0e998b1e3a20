"""BERT and XLM-RoBERTa encoders as one ONNX graph, written from their weights.

The inputs are token ids and their mask, the output is one vector of length 1 per text, as sentence-transformers
computes it: the layers, the pooling of the last one (the masked mean or the first token), further dense layers, a cut.

The import takes a third of a second (`onnx`), so this module is imported only to convert a model, not to run it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from kb.embed.artifact import DIMENSIONS, NAME

Attribute: TypeAlias = int | float | tuple[int, ...]
Weights: TypeAlias = Mapping[str, NDArray[np.float32]]

OPSET = 17
IR_VERSION = 8
LEAST = float(np.finfo(np.float32).min)

ACTIVATIONS: Final = {"Identity": None, "Tanh": "Tanh", "ReLU": "Relu", "Sigmoid": "Sigmoid"}
"""The operators of what may follow a dense layer, by the names that PyTorch has for them."""

POOLINGS: Final = ("mean", "cls")
TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings")
TYPES: Final = "token_type_ids"


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer behind the pooling: its matrix as (out, in), its bias, and its activation's name in PyTorch."""

    matrix: NDArray[np.float32]
    bias: NDArray[np.float32] | None
    activation: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """The arrangement of an encoder's weights; the defaults are those of all-MiniLM-L6-v2.

    `first_place` is the row of the table of positions that belongs to the first token. `dimensions` is the length of
    the vectors, which are cut to it.
    """

    name: str = NAME
    layers: int = 6
    heads: int = 12
    width: int = DIMENSIONS
    epsilon: float = 1e-12
    first_place: int = 0
    activation: str = "gelu"
    pooling: str = "mean"
    dense: Sequence[Dense] = ()
    dimensions: int = DIMENSIONS


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of a safetensors file in float32: an eight-byte length, a JSON header, then the bytes."""
    raw = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(raw[:8].tobytes(), "little")
    header = json.loads(raw[8:start].tobytes())
    return {
        name: tensor.reshape(entry["shape"])
        for name, entry in header.items()
        if (tensor := _floats(raw[start:], entry)) is not None
    }


def _floats(raw: NDArray[np.uint8], entry: Mapping[str, Sequence[int]]) -> NDArray[np.float32] | None:
    """Return a tensor of the file; None if it has no floating-point numbers."""
    if "data_offsets" not in entry:
        return None
    begin, end = entry["data_offsets"]
    match entry["dtype"]:
        case "F32":
            return raw[begin:end].view("<f4")
        case "F16":
            return raw[begin:end].view("<f2").astype(np.float32)
        case "BF16":  # the upper half of a float32
            return (raw[begin:end].view("<u2").astype(np.uint32) << 16).view(np.float32)
    return None


def build(weights: Weights, architecture: Architecture | None = None) -> ModelProto:
    """Return the model as ONNX.

    Inputs `input_ids` and `attention_mask`, int64 of shape (batch, sequence); output `embedding`, float32 of
    shape (batch, dimensions), each row of length 1.

    Raises:
        KeyError: A weight is missing.
    """
    builder = _Builder(weights, architecture or Architecture())
    hidden = _embeddings(builder)
    bias = _mask_bias(builder)
    for layer in range(builder.of.layers):
        hidden = _layer(builder, hidden, bias, f"encoder.layer.{layer}")
    _finish(builder, _pool(builder, hidden))
    return helper.make_model(
        builder.graph(),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="kb",
    )


def around(published: ModelProto, architecture: Architecture) -> ModelProto:
    """Return a published graph of an encoder with the pooling and what follows it, in the form of `build`.

    Raises:
        KeyError: the graph does not return the vectors of the tokens.
    """
    graph = published.graph
    outputs = {output.name for output in graph.output}
    if not (tokens := next((name for name in TOKEN_OUTPUTS if name in outputs), None)):
        raise KeyError(f"output {' or '.join(TOKEN_OUTPUTS)}")
    builder = _Builder({}, architecture, "kb ")
    hidden = builder.add("Identity", tokens)
    if any(node.name == TYPES for node in graph.input):  # every text is of type 0
        graph.node.insert(0, helper.make_node("Sub", ["input_ids", "input_ids"], [TYPES]))
    _finish(builder, _pool(builder, hidden))
    written = builder.graph()
    graph.node.extend(written.node)
    graph.initializer.extend(written.initializer)
    for old, new in ((graph.input, written.input), (graph.output, written.output)):
        del old[:]
        old.extend(new)
    return published


class _Builder:
    """Collects the nodes and constants of a graph. Values are identified by name."""

    def __init__(self, weights: Weights, architecture: Architecture, prefix: str = "") -> None:
        self._prefix = prefix
        self.weights = weights
        self.of = architecture
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Attribute) -> str:
        """Append a node with one output, and return that output's name."""
        output = output or f"{self._prefix}{operator}_{len(self._nodes)}"
        node = helper.make_node(operator, inputs, [output])
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return output

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        """Store a tensor under `name`, once, and return the name."""
        name = f"{self._prefix}{name}"
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name: str) -> str:
        """Return an unchanged weight of the model."""
        return self.constant(name, self.weights[name])

    def number(self, name: str, value: float) -> str:
        """Return a single float32."""
        return self.constant(name, np.array([value], np.float32))

    def integers(self, *values: int) -> str:
        """Return a list of int64, the type of shapes and axes."""
        return self.constant(f"integers{values}", np.array(values, np.int64))

    def graph(self) -> GraphProto:
        """Return the graph from the model's inputs to its output."""
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", self.of.dimensions])
        return helper.make_graph(
            self._nodes, self.of.name, inputs, [output], initializer=list(self._constants.values())
        )


def _embeddings(builder: _Builder) -> str:
    """Return the sum of word, position and token type vectors, normalised.

    Positions are a slice of their table: ONNX Runtime's optimiser breaks a graph with Range and Gather here.
    """
    words = builder.add("Gather", builder.weight("embeddings.word_embeddings.weight"), "input_ids")
    length = builder.add("Shape", "input_ids", start=1, end=2)
    # Every text is of token type 0, whose single vector can therefore be added to all positions in advance.
    places = builder.constant(
        "positions",
        builder.weights["embeddings.position_embeddings.weight"][builder.of.first_place :]
        + builder.weights["embeddings.token_type_embeddings.weight"][0],
    )
    places = builder.add("Slice", places, builder.integers(0), length, builder.integers(0))
    return _layer_norm(builder, builder.add("Add", words, places), "embeddings.LayerNorm")


def _mask_bias(builder: _Builder) -> str:
    """Return the bias of attention scores, (batch, 1, 1, sequence): 0 for a token, the lowest float for padding."""
    mask = builder.add("Unsqueeze", "attention_mask", builder.integers(1, 2))
    return builder.add(
        "Where",
        builder.add("Cast", mask, to=TensorProto.BOOL),
        builder.number("zero", 0),
        builder.number("least", LEAST),
    )


def _layer(builder: _Builder, hidden: str, bias: str, name: str) -> str:
    """Return a transformer layer: attention, then two dense layers, each added to its input and normalised."""
    attended = _dense(
        builder, _attention(builder, hidden, bias, f"{name}.attention.self"), f"{name}.attention.output.dense"
    )
    hidden = _layer_norm(builder, builder.add("Add", attended, hidden), f"{name}.attention.output.LayerNorm")
    inner = _activation(builder, _dense(builder, hidden, f"{name}.intermediate.dense"))
    outer = _dense(builder, inner, f"{name}.output.dense")
    return _layer_norm(builder, builder.add("Add", outer, hidden), f"{name}.output.LayerNorm")


def _attention(builder: _Builder, hidden: str, bias: str, name: str) -> str:
    """Return the self-attention of all heads over (batch, sequence, dimensions)."""
    query = _heads(builder, _dense(builder, hidden, f"{name}.query"), (0, 2, 1, 3))
    key = _heads(builder, _dense(builder, hidden, f"{name}.key"), (0, 2, 3, 1))
    value = _heads(builder, _dense(builder, hidden, f"{name}.value"), (0, 2, 1, 3))
    scale = builder.number("scale", (builder.of.width // builder.of.heads) ** 0.5)
    scores = builder.add("Div", builder.add("MatMul", query, key), scale)
    weights = builder.add("Softmax", builder.add("Add", scores, bias), axis=-1)
    context = builder.add("Transpose", builder.add("MatMul", weights, value), perm=(0, 2, 1, 3))
    return builder.add("Reshape", context, builder.integers(0, 0, builder.of.width))


def _heads(builder: _Builder, values: str, order: tuple[int, ...]) -> str:
    """Split the last axis into heads and bring the four axes into `order`."""
    split = builder.add(
        "Reshape", values, builder.integers(0, 0, builder.of.heads, builder.of.width // builder.of.heads)
    )
    return builder.add("Transpose", split, perm=order)


def _dense(builder: _Builder, values: str, name: str) -> str:
    """Return a linear layer. PyTorch stores its matrix as (out, in)."""
    matrix = builder.constant(f"{name}.weight", builder.weights[f"{name}.weight"].T)
    return builder.add("Add", builder.add("MatMul", values, matrix), builder.weight(f"{name}.bias"))


def _layer_norm(builder: _Builder, values: str, name: str) -> str:
    """Return the layer normalisation over the last axis."""
    scale, shift = builder.weight(f"{name}.weight"), builder.weight(f"{name}.bias")
    return builder.add("LayerNormalization", values, scale, shift, axis=-1, epsilon=builder.of.epsilon)


def _activation(builder: _Builder, values: str) -> str:
    if builder.of.activation == "relu":
        return builder.add("Relu", values)
    return _gelu(builder, values)


def _gelu(builder: _Builder, values: str) -> str:
    """Return the exact GELU, x (1 + erf(x / √2)) / 2, written so that ONNX Runtime recognises and fuses it."""
    root, one, half = (builder.number(f"gelu {number}", number) for number in (2**0.5, 1.0, 0.5))
    erf = builder.add("Erf", builder.add("Div", values, root))
    return builder.add("Mul", builder.add("Mul", values, builder.add("Add", erf, one)), half)


def _pool(builder: _Builder, hidden: str) -> str:
    """Return a vector per text: that of its first token, or the mean over the tokens that are not padding."""
    if builder.of.pooling == "cls":
        first = builder.add("Gather", hidden, builder.integers(0), axis=1)
        return builder.add("Squeeze", first, builder.integers(1))
    mask = builder.add("Cast", builder.add("Unsqueeze", "attention_mask", builder.integers(2)), to=TensorProto.FLOAT)
    total = builder.add("ReduceSum", builder.add("Mul", hidden, mask), builder.integers(1), keepdims=0)
    count = builder.add("ReduceSum", mask, builder.integers(1), keepdims=0)
    return builder.add("Div", total, count)


def _finish(builder: _Builder, pooled: str) -> None:
    """Add the dense layers, cut the vector, and scale it to length 1: the graph's output."""
    length = builder.of.width
    for number, dense in enumerate(builder.of.dense):
        pooled = builder.add("MatMul", pooled, builder.constant(f"dense.{number}.weight", dense.matrix.T))
        if dense.bias is not None:
            pooled = builder.add("Add", pooled, builder.constant(f"dense.{number}.bias", dense.bias))
        if operator := ACTIVATIONS[dense.activation]:
            pooled = builder.add(operator, pooled)
        length = dense.matrix.shape[0]
    if builder.of.dimensions < length:
        pooled = builder.add(
            "Slice", pooled, builder.integers(0), builder.integers(builder.of.dimensions), builder.integers(1)
        )
    builder.add("LpNormalization", pooled, output="embedding", axis=-1, p=2)
