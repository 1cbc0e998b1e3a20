"""Any sentence-transformers model in the form that the engine runs. Needs the extra `export`."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from kb.api.errors import ModelError
from kb.embed.models.artifact import Manifest, read_form, write_form
from kb.embed.models.fetch import TOKENIZER, WEIGHTS, in_one_line, sha256
from kb.embed.onnx.embedder import OnnxEmbedder

if TYPE_CHECKING:
    from kb.embed.models.artifact import ModelFiles

log = logging.getLogger(__name__)

OPSET = 17
LEAST_COSINE = 0.9999
NO_WINDOW = 1 << 20
USUAL_WINDOW = 512
SAMPLES = (
    "Where do I put the key?",
    "",
    "The cat sits on the mat. " * 12,
    "def f(x): return {'a': x}  # 0xFF",
    "Die Katze sitzt auf der Matte; кошка сидит на коврике; 猫がマットの上に座っている 🐈",
    "river stone light engine paper " * 120,
)


class _Sentence(torch.nn.Module):  # type: ignore[misc] # it is not there when types are checked
    """The model from token ids and their mask to vectors of length 1."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Vectors of shape (batch, dimensions)."""
        features = self.model({"input_ids": input_ids, "attention_mask": attention_mask})
        return torch.nn.functional.normalize(features["sentence_embedding"], dim=-1)


def export(name: str, folder: Path) -> ModelFiles:
    """Write the model `name` (a folder, or a name on the model hub) into the new `folder`, and compare both.

    Raises:
        ModelError: there is no such model, it cannot be exported, its vectors differ, or the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ModelError(f"The folder {folder} is not empty: name another one.")
    model = _load(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        made = Path(scratch, "made")
        _write(model, name.rstrip("/").rpartition("/")[2], made)
        _compare(model, read_form(made))
        folder.mkdir(exist_ok=True)
        made.replace(folder)
    return read_form(folder)


def _load(name: str) -> SentenceTransformer:
    try:
        model = SentenceTransformer(name, device="cpu", model_kwargs={"attn_implementation": "eager"})
    except (OSError, ValueError) as error:
        raise ModelError(f"The model {name} cannot be loaded: {in_one_line(error)}") from error
    if not hasattr(model.tokenizer, "backend_tokenizer"):
        raise ModelError(f"The model {name} has no tokenizer of the kind that kb reads (tokenizer.json).")
    if any(model.prompts.values()):
        log.warning("%s asks for words before each text (%s), which kb does not add.", name, ", ".join(model.prompts))
    return model.float().eval()


def _write(model: SentenceTransformer, name: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer = Path(scratch, TOKENIZER)
        model.tokenizer.backend_tokenizer.save(str(tokenizer))
        manifest = Manifest(
            model=name,
            sources={WEIGHTS: _digest(model), TOKENIZER: sha256(tokenizer)},
            dimensions=_dimensions(model),
            window=_window(model),
        )
        write_form(folder, _graph(model), tokenizer, manifest)


def _graph(model: SentenceTransformer) -> bytes:
    """The model as ONNX."""
    buffer = io.BytesIO()
    tokens = torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0]])
    names = ["input_ids", "attention_mask"]
    try:
        # It warns of its age, and of shapes it may have fixed: the comparison afterwards is what tells.
        with torch.no_grad(), warnings.catch_warnings(action="ignore"):
            torch.onnx.export(
                _Sentence(model),
                (tokens, (tokens > 0).long()),
                buffer,
                dynamo=False,  # the other exporter fixes shapes in many of these models
                opset_version=OPSET,
                input_names=names,
                output_names=["embedding"],
                dynamic_axes={**{each: {0: "batch", 1: "sequence"} for each in names}, "embedding": {0: "batch"}},
            )
    except (RuntimeError, TypeError, ValueError) as error:
        raise ModelError(f"The model cannot be exported: {in_one_line(error)}") from error
    return buffer.getvalue()


def _compare(model: SentenceTransformer, files: ModelFiles) -> None:
    """Check that what was written gives the vectors of the model."""
    expected = model.encode(list(SAMPLES), prompt="", normalize_embeddings=True)
    least = float(np.sum(OnnxEmbedder(files, "cpu").embed(SAMPLES) * expected, axis=1).min())
    if not least >= LEAST_COSINE:  # a NaN is not, either
        raise ModelError(
            f"The exported model's vectors differ from those of sentence-transformers (cosine {least:.5f})."
        )


def _digest(model: SentenceTransformer) -> str:
    """The SHA-256 of all weights and of how they are put together: the same whenever the model is exported."""
    digest = hashlib.sha256()
    parts = [[type(part).__name__, getattr(part, "pooling_mode", None)] for part in model]
    digest.update(json.dumps(parts, default=str).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _dimensions(model: SentenceTransformer) -> int:
    return int(model.encode("", prompt="").shape[0])


def _window(model: SentenceTransformer) -> int:
    """The most tokens of a text; where the model says nothing, what most can read."""
    window = model.max_seq_length or model.tokenizer.model_max_length
    return int(window) if window and window < NO_WINDOW else USUAL_WINDOW
