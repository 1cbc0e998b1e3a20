"""The model in use and in other precisions, in short processes, which free their memory at the end."""

from __future__ import annotations

import subprocess
import sys

from kb.embed.models.prepare import prepare

QUANTIZE = """
import sys
from pathlib import Path
from kb.embed.models.prepare import prepare
prepare(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
"""


EMBED = """
import json, sys
from pathlib import Path
import numpy as np
from kb.embed.artifact import load_model
from kb.embed.onnx.embedder import OnnxEmbedder
model, folder, kept, turns, queries = sys.argv[1:]
texts = {
    name: [json.loads(line)["text"] for line in Path(folder, f"{name}.jsonl").read_text().splitlines()[:int(count)]]
    for name, count in (("corpus", turns), ("queries", queries))
}
embedder = OnnxEmbedder(load_model(Path(model)), "cpu")
vectors = embedder.embed_passages(texts["corpus"]), embedder.embed_queries(texts["queries"])
np.savez(kept, turns=vectors[0], queries=vectors[1])
"""


def embed_file(files, folder, kept, *, turns, queries):
    """Keep the vectors of so many texts of a collection, made by a process that ends: its memory ends with it."""
    arguments = files.onnx.parent, folder, kept, turns, queries
    subprocess.run([sys.executable, "-c", EMBED, *map(str, arguments)], check=True)


def quantized(files, folder, precision):
    """The model in fewer bits, made by a process that ends: it takes half a gigabyte."""
    source = files.onnx.parent
    subprocess.run([sys.executable, "-c", QUANTIZE, source, folder, precision], check=True)
    return prepare(source, folder, precision)


def size(files):
    """The bytes of the graph and the weights."""
    return sum(path.stat().st_size for path in files.onnx.parent.glob("model.onnx*"))


class WrappedModel:
    """The real model, with some attributes changed by a test."""

    def __init__(self, embedder):
        self._embedder = embedder

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    @property
    def current(self):
        return self
