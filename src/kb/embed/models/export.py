"""Export of sentence-transformers models to the format that the engine runs. Needs the extra `export`."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import ModelProto
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Dropout,
    LayerNorm,
    Normalize,
    Pooling,
    Transformer,
)

from kb.api.errors import ModelError
from kb.embed.artifact import TOKENIZER, WEIGHTS, ModelFiles, ModelManifest, load_model, save_model, sha256
from kb.embed.models.fetch import one_line
from kb.embed.onnx.embedder import OnnxEmbedder

log = logging.getLogger(__name__)

OPSET = 17
MIN_COSINE = 0.9999
UNLIMITED_WINDOW = 1 << 20
DEFAULT_WINDOW = 512
MODULES = (Transformer, Pooling, Dense, Normalize, LayerNorm, Dropout)
QUERY_PROMPTS = ("query",)
PASSAGE_PROMPTS = ("document", "passage", "corpus")
SAMPLES = (
    "Where do I put the key?",
    "",
    "The cat sits on the mat. " * 12,
    "def f(x): return {'a': x}  # 0xFF",
    "Die Katze sitzt auf der Matte; кошка сидит на коврике; 猫がマットの上に座っている 🐈",
    "river stone light engine paper " * 120,
)


class _UnitEncoder(torch.nn.Module):  # type: ignore[misc] # not installed for type checks
    """The model from token ids and their mask to vectors of length 1, truncated if the model says so."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        features = self.model({"input_ids": input_ids, "attention_mask": attention_mask})
        return torch.nn.functional.normalize(features["sentence_embedding"][:, : self.model.truncate_dim], dim=-1)


def export(name: str, folder: Path) -> ModelFiles:
    """Write the model `name` (a folder, or a name on the model hub) into the new `folder`, and compare both.

    Raises:
        ModelError: the model does not exist, kb cannot represent it, its window is too small for a chunk, the vectors
            differ, or the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ModelError(f"The folder {folder} is not empty. Choose another folder.")
    model = _load(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        artifact = Path(scratch, "artifact")
        _write(model, Path(name).name, artifact)
        _compare(model, load_model(artifact))
        folder.mkdir(exist_ok=True)
        artifact.replace(folder)
    return load_model(folder)


def _load(name: str) -> SentenceTransformer:
    try:
        model = SentenceTransformer(name, device="cpu", model_kwargs={"attn_implementation": "eager"})
    except (OSError, ValueError) as error:
        raise ModelError(f"kb cannot load the model {name}: {one_line(error)}") from error
    if fault := _fault(model):
        raise ModelError(f"The model {name} {fault}, which kb does not support. Use another model.")
    named = [prompt for prompt, text in model.prompts.items() if text]
    if named and not any(_prefixes(model)):
        log.warning("%s has prompts (%s), but not for queries or documents; kb adds none", name, ", ".join(named))
    return model.float().eval()


def _fault(model: SentenceTransformer) -> str | None:
    """Return the property of the model that kb cannot represent; None if it can represent all of it."""
    if unknown := [type(part).__name__ for part in model if not isinstance(part, MODULES)]:
        return f"has modules of the type {', '.join(unknown)}"
    if not isinstance(model[0], Transformer) or sum(isinstance(part, Pooling) for part in model) != 1:
        return "is not a single transformer with a single pooling"
    if not hasattr(model.tokenizer, "backend_tokenizer"):
        return "has no fast tokenizer (tokenizer.json)"
    if any((model[0].query_length, model[0].document_length, model[0].query_expansion)):
        return "reads queries and documents of different lengths"
    if any(_prefixes(model)) and not _pooling(model).include_prompt:
        return "excludes its prompts from the pooling"
    if model.similarity_fn_name != "cosine" and (model.truncate_dim or not _is_normalized(model)):
        return f"compares vectors that are not of length 1 by {model.similarity_fn_name}"
    return None


def _prefixes(model: SentenceTransformer) -> tuple[str, str]:
    """Return the prompts for queries and for passages; prompts with other names are ignored."""
    query, passage = (
        next(filter(None, (model.prompts.get(name) for name in names)), "")
        for names in (QUERY_PROMPTS, PASSAGE_PROMPTS)
    )
    return query, passage


def _pooling(model: SentenceTransformer) -> Pooling:
    return next(part for part in model if isinstance(part, Pooling))


def _is_normalized(model: SentenceTransformer) -> bool:
    return isinstance(model[-1], Normalize)


def _write(model: SentenceTransformer, name: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer = Path(scratch, TOKENIZER)
        model.tokenizer.backend_tokenizer.save(str(tokenizer))
        save_model(folder, _graph(model), tokenizer, _manifest(model, name, tokenizer))


def _manifest(model: SentenceTransformer, name: str, tokenizer: Path) -> ModelManifest:
    query_prefix, passage_prefix = _prefixes(model)
    mode = _pooling(model).pooling_mode
    with model.truncate_embeddings(None):
        dimensions = int(model.get_embedding_dimension())
    used_dimensions = min(model.truncate_dim or dimensions, dimensions)
    return ModelManifest(
        model=name,
        sources={WEIGHTS: _digest(model), TOKENIZER: sha256(tokenizer)},
        dimensions=used_dimensions,
        window=_window(model),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        pooling=mode if isinstance(mode, str) else "+".join(mode),
        normalize=_is_normalized(model),
        truncate_dim=used_dimensions if used_dimensions < dimensions else None,
    )


def _graph(model: SentenceTransformer) -> ModelProto:
    """Return the model as ONNX."""
    buffer = io.BytesIO()
    tokens = torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0]])
    names = ["input_ids", "attention_mask"]
    try:
        # It warns about its age and about fixed shapes; the comparison afterwards detects any real fault.
        with torch.no_grad(), warnings.catch_warnings(action="ignore"):
            torch.onnx.export(
                _UnitEncoder(model),
                (tokens, (tokens > 0).long()),
                buffer,
                dynamo=False,  # the other exporter fixes shapes in many of these models
                opset_version=OPSET,
                input_names=names,
                output_names=["embedding"],
                dynamic_axes={**{name: {0: "batch", 1: "sequence"} for name in names}, "embedding": {0: "batch"}},
            )
    except (RuntimeError, TypeError, ValueError) as error:
        raise ModelError(f"kb cannot export the model: {one_line(error)}") from error
    return onnx.load_model_from_string(buffer.getvalue())


def _compare(model: SentenceTransformer, files: ModelFiles) -> None:
    """Check that the exported model returns the vectors of the original."""
    embedder = OnnxEmbedder(files, "cpu")
    for prefix, embed in zip(_prefixes(model), (embedder.embed_queries, embedder.embed_passages), strict=True):
        expected = model.encode(list(SAMPLES), prompt=prefix, normalize_embeddings=True)
        cosine = float(np.sum(embed(SAMPLES) * expected, axis=1).min())
        if not cosine >= MIN_COSINE:  # also true for NaN
            raise ModelError(
                f"The exported model's vectors differ from the vectors of sentence-transformers (cosine {cosine:.5f})."
            )


def _digest(model: SentenceTransformer) -> str:
    """Return the SHA-256 of all weights and of their arrangement, which is the same for every export."""
    digest = hashlib.sha256()
    parts = [[type(part).__name__, _variant(part)] for part in model]
    digest.update(json.dumps(parts, default=str).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _variant(part: torch.nn.Module) -> object:
    """Return the behaviour of a module apart from its weights, if it is not the default of its kind."""
    if isinstance(part, Dense) and not isinstance(part.activation_function, torch.nn.Tanh):
        return type(part.activation_function).__name__
    return getattr(part, "pooling_mode", None)


def _window(model: SentenceTransformer) -> int:
    """Return the maximum number of tokens of a text; if the model does not say, the limit of most models."""
    window = model.max_seq_length or model.tokenizer.model_max_length
    return int(window) if window and window < UNLIMITED_WINDOW else DEFAULT_WINDOW
