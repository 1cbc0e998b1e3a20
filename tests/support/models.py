"""The model in other precisions."""

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


def quantized(files, folder, precision):
    """The model in fewer bits, made by a process that ends: it takes half a gigabyte."""
    source = files.onnx.parent
    subprocess.run([sys.executable, "-c", QUANTIZE, source, folder, precision], check=True)
    return prepare(source, folder, precision)


def size(files):
    """How many bytes the graph and the weights take."""
    return sum(path.stat().st_size for path in files.onnx.parent.glob("model.onnx*"))
