"""Converts a model that sentence-transformers saved, without torch.

A folder of such a model has `config.json`, `tokenizer.json`, `model.safetensors`, and in `modules.json` what follows
the encoder: a pooling, dense layers, and the scaling to length 1. kb writes BERT and XLM-RoBERTa itself; for other
encoders, it needs the graph that was published with them, `onnx/model.onnx`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kb.api.errors import ModelError
from kb.embed.artifact import TOKENIZER, WEIGHTS, ModelFiles, ModelManifest, load_model, save_model, sha256

if TYPE_CHECKING:
    from onnx import ModelProto

    from kb.embed.models.bert import Architecture, Dense

CONFIG, MODULES, PROMPTS = "config.json", "modules.json", "config_sentence_transformers.json"
PUBLISHED: Final = "onnx/model.onnx"
LIMITS: Final = ("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")

OF_ROBERTA: Final = ("xlm-roberta", "roberta", "camembert")
"""Encoders whose first token has the place behind that of padding."""

ACTIVATIONS: Final = ("gelu", "relu")
QUERY_PROMPTS, PASSAGE_PROMPTS = ("query",), ("document", "passage", "corpus")
UNLIMITED: Final = 1 << 20
OLD_POOLING: Final = "pooling_mode_"


class Unsupported(Exception):
    """What a model has that kb does not write."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """A model's folder as far as it is read: `modules` are the kinds and folders of its parts."""

    folder: Path
    config: Mapping[str, Any]
    prompts: Mapping[str, Any]
    modules: list[tuple[str, Path]]

    @property
    def is_published_as_graph(self) -> bool:
        return not (self.folder / WEIGHTS).exists()

    @property
    def weights(self) -> list[Path]:
        """The files of weights."""
        own = [self.folder / WEIGHTS]
        if self.is_published_as_graph:
            own = [path for name in (PUBLISHED, f"{PUBLISHED}_data") if (path := self.folder / name).exists()]
        return [*own, *(folder / WEIGHTS for folder in self.of_kind("Dense"))]

    def of_kind(self, kind: str) -> list[Path]:
        return [folder for name, folder in self.modules if name == kind]


def is_model(folder: Path) -> bool:
    """Whether a folder looks like a model that sentence-transformers saved."""
    return (folder / CONFIG).is_file() and any((folder / name).is_file() for name in (WEIGHTS, PUBLISHED))


def convert(folder: Path, target: Path, name: str) -> ModelFiles:
    """Convert the model in `folder` into the new folder `target`.

    Raises:
        ModelError: a file is missing or damaged, or kb does not write such a model.
    """
    try:
        encoder = _encoder(folder)
        architecture = _architecture(encoder, name)
        model = _graph(encoder, architecture)
    except Unsupported as error:
        raise ModelError(
            f"kb cannot convert the model in {folder}: {error}. 'kb model export' may convert it, with torch."
        ) from None
    except KeyError as error:
        raise ModelError(f"kb cannot convert the model in {folder}: it has no {error}.") from None
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"kb cannot read the model in {folder}: {error}") from error
    save_model(target, model, folder / TOKENIZER, _manifest(encoder, architecture))
    return load_model(target)


def _graph(encoder: Encoder, architecture: Architecture) -> ModelProto:
    import onnx

    from kb.embed.models import bert  # slow to import

    if encoder.is_published_as_graph:
        return bert.around(onnx.load(encoder.folder / PUBLISHED), architecture)
    weights = {_short(key): tensor for key, tensor in bert.read_safetensors(encoder.folder / WEIGHTS).items()}
    rows = weights["embeddings.word_embeddings.weight"].shape
    if rows != (encoder.config["vocab_size"], encoder.config["hidden_size"]):
        raise Unsupported(f"its weights do not have the shape that {CONFIG} gives")
    return bert.build(weights, architecture)


def _encoder(folder: Path) -> Encoder:
    parts = _read(folder / MODULES) if (folder / MODULES).is_file() else None
    if not parts:
        raise Unsupported(f"it has no {MODULES}, which says how its vectors are made")
    modules = [(part["type"].rpartition(".")[2], folder / part["path"]) for part in parts]
    return Encoder(folder, _read(folder / CONFIG), _optional(folder / PROMPTS), modules)


def _architecture(encoder: Encoder, name: str) -> Architecture:
    from kb.embed.models.bert import Architecture

    config = encoder.config
    if not encoder.is_published_as_graph:
        _check_encoder(config)
    if encoder.prompts.get("similarity_fn_name") == "dot" and not encoder.of_kind("Normalize"):
        raise Unsupported("it compares vectors that are not of length 1 by dot")
    dense = [_dense(folder) for folder in encoder.of_kind("Dense")]
    width = int(dense[-1].matrix.shape[0] if dense else config["hidden_size"])
    return Architecture(
        name=name,
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        width=config["hidden_size"],
        epsilon=config.get("layer_norm_eps", 0.0),
        first_place=config["pad_token_id"] + 1 if config["model_type"] in OF_ROBERTA else 0,
        activation=config.get("hidden_act", ""),
        pooling=_pooling(encoder),
        dense=dense,
        dimensions=min(encoder.prompts.get("truncate_dim") or width, width),
    )


def _check_encoder(config: Mapping[str, Any]) -> None:
    kind = config.get("model_type")
    if kind not in ("bert", *OF_ROBERTA):
        raise Unsupported(f"it is a {kind}, and not a BERT or an XLM-RoBERTa")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise Unsupported("its positions are relative")
    if config["hidden_act"] not in ACTIVATIONS:
        raise Unsupported(f"its activation is {config['hidden_act']}")


def _pooling(encoder: Encoder) -> str:
    """Return how the vectors of the tokens become one, after checking that nothing else happens to them."""
    from kb.embed.models.bert import POOLINGS

    kinds = [kind for kind, _ in encoder.modules]
    known = ["Transformer", "Pooling", *["Dense"] * kinds.count("Dense"), *["Normalize"] * kinds.count("Normalize")]
    if kinds != known or kinds.count("Normalize") > 1:
        raise Unsupported(f"it has the parts {', '.join(kinds)}")
    [folder] = encoder.of_kind("Pooling")
    config = _read(folder / CONFIG)
    named = [
        key.removeprefix(OLD_POOLING).removesuffix("_tokens").removesuffix("_token")
        for key, is_on in config.items()
        if key.startswith(OLD_POOLING) and is_on is True
    ]
    mode = config.get("pooling_mode") or "+".join(named)
    if mode not in POOLINGS:
        raise Unsupported(f"its pooling is {mode}")
    if config.get("include_prompt") is False and any(_prefixes(encoder)):
        raise Unsupported("its pooling leaves out the prompt")
    return str(mode)


def _dense(folder: Path) -> Dense:
    from kb.embed.models import bert

    config, weights = _read(folder / CONFIG), bert.read_safetensors(folder / WEIGHTS)
    activation = config.get("activation_function", "torch.nn.modules.activation.Tanh").rpartition(".")[2]
    if activation not in bert.ACTIVATIONS:
        raise Unsupported(f"a dense layer has the activation {activation}")
    return bert.Dense(weights["linear.weight"], weights.get("linear.bias"), activation)


def _manifest(encoder: Encoder, architecture: Architecture) -> ModelManifest:
    query_prefix, passage_prefix = _prefixes(encoder)
    full = architecture.dense[-1].matrix.shape[0] if architecture.dense else architecture.width
    return ModelManifest(
        model=architecture.name,
        sources={WEIGHTS: _digest(encoder, architecture), TOKENIZER: sha256(encoder.folder / TOKENIZER)},
        dimensions=architecture.dimensions,
        window=_window(encoder, architecture),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        pooling=architecture.pooling,
        normalize=bool(encoder.of_kind("Normalize")),
        truncate_dim=architecture.dimensions if architecture.dimensions < full else None,
    )


def _digest(encoder: Encoder, architecture: Architecture) -> str:
    """Return the SHA-256 of all weights and of what they are used for."""
    files = [sha256(path) for path in encoder.weights]
    activations = [dense.activation for dense in architecture.dense]
    used = [architecture.pooling, architecture.dimensions, architecture.activation, architecture.epsilon, activations]
    return hashlib.sha256(json.dumps([files, used]).encode()).hexdigest()


def _prefixes(encoder: Encoder) -> tuple[str, str]:
    """Return the prompts for queries and for passages; prompts with other names are ignored."""
    prompts = encoder.prompts.get("prompts") or {}
    query, passage = (next(filter(None, map(prompts.get, names)), "") for names in (QUERY_PROMPTS, PASSAGE_PROMPTS))
    return query, passage


def _window(encoder: Encoder, architecture: Architecture) -> int:
    """Return the most tokens of a text that the model reads, special ones included."""
    places = int(encoder.config["max_position_embeddings"]) - architecture.first_place
    return min([places, *(limit for limit in _limits(encoder.folder) if limit < UNLIMITED)])


def _limits(folder: Path) -> Iterator[int]:
    for name, key in LIMITS:
        if limit := _optional(folder / name).get(key):
            yield int(limit)


def _short(key: str) -> str:
    """Return the name of a weight without the name of the encoder around it."""
    for prefix in ("bert.", "roberta."):
        key = key.removeprefix(prefix)
    return key


def _optional(path: Path) -> Mapping[str, Any]:
    return _read(path) if path.is_file() else {}


def _read(path: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads(path.read_bytes())
