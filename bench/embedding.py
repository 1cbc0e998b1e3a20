"""Embedding speed: kb against sentence-transformers on the same device.

Both run in turns within one process. On a CPU a round's figure is texts per second of CPU time (all threads), on a GPU
texts per second; the ratio is the median of the rounds' ratios. sentence-transformers runs in fp32, and in fp16 where
kb does. Texts of mixed lengths come in calls of several sizes: sentence-transformers pads a batch to its longest text,
so that the fewer it can sort, the more it computes in vain. Below the table stands how near the vectors are to those of
sentence-transformers in fp32 on the CPU.
Needs kb[engine] with the device's extra, and sentence-transformers:

    python -m bench.embedding --model MODEL_DIR --device cuda --precision fp16
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from sentence_transformers import SentenceTransformer

from kb.embed.models.prepare import fetch, prepare
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.onnx.session import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Embed = Callable[[list[str]], NDArray[np.float32]]
    Clock = Callable[[], float]

WORDS = (
    "river",
    "stone",
    "walking",
    "mountain",
    "quick",
    "light",
    "paper",
    "engine",
    "of",
    "the",
    "and",
    "with",
)
MIX = (5, 8, 12, 15, 20, 28, 40, 60, 90, 130, 180, 200, 220, 250)
CALLS = (32, 64, 256)
PEER_BATCH = {"cpu": 32, "cuda": 128, "rocm": 128}


def text(tokens: int, chance: random.Random) -> str:
    """Words that make `tokens` tokens, the two special ones included."""
    return " ".join(chance.choice(WORDS) for _ in range(tokens - 2))


def corpora(size: int) -> dict[str, list[list[str]]]:
    """Calls with `size` texts in all: of 200 tokens each, and of 5 to 250 tokens in calls of several sizes."""
    chance = random.Random(7)
    chunks = [text(200, chance) for _ in range(size)]
    mixed = [text(chance.choice(MIX), chance) for _ in range(size)]
    return {
        "200-token chunks": [chunks],
        **{f"mixed, {each} a call": split(mixed, each) for each in CALLS},
    }


def split(texts: list[str], each: int) -> list[list[str]]:
    """Calls of `each` texts."""
    return [texts[start : start + each] for start in range(0, len(texts), each)]


def rate(embed: Embed, calls: list[list[str]], clock: Clock) -> float:
    """Texts per second."""
    started = clock()
    for texts in calls:
        embed(texts)
    return sum(map(len, calls)) / (clock() - started)


def race(ours: Embed, theirs: Embed, calls: list[list[str]], rounds: int, clock: Clock) -> tuple[float, float, float]:
    """The median rates of both and their median ratio; a first round, to warm up, does not count."""
    pairs = [(rate(ours, calls, clock), rate(theirs, calls, clock)) for _ in range(rounds + 1)][1:]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(mine / other for mine, other in pairs),
    )


def peer(raw: Path, device: str, precision: str, window: int) -> Embed:
    """sentence-transformers on the same device; torch calls AMD's GPUs `cuda` too."""
    model = SentenceTransformer(str(raw), device="cpu" if device == "cpu" else "cuda")
    model.max_seq_length = window
    if precision == "fp16":
        model.half()
    return partial(model.encode, batch_size=PEER_BATCH[device], normalize_embeddings=True, show_progress_bar=False)


def compare(embedder: OnnxEmbedder, raw: Path, calls: list[list[str]]) -> None:
    """Print how near the vectors are to the reference's."""
    texts = ["", *chain.from_iterable(calls)]
    expected = peer(raw, "cpu", "fp32", embedder.spec.window)(texts)
    cosines = (embedder.embed_passages(texts) * expected).sum(axis=1)
    print(f"cosine to sentence-transformers, fp32, on the CPU: mean {cosines.mean():.7f}, least {cosines.min():.7f}")


def main() -> None:
    """Run the race and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="folder of the raw model; fetched when not given")
    parser.add_argument("--device", choices=("cpu", "cuda", "rocm"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "fp16", "bf16"), default="fp32")
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_cores())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock, per = (time.process_time, "CPU second") if options.device == "cpu" else (time.perf_counter, "second")
    with tempfile.TemporaryDirectory() as scratch:
        raw = options.model or fetch(Path(scratch, "raw"))
        files = prepare(raw, Path(scratch), options.precision)
        embedder = OnnxEmbedder(files, options.device, options.threads, cache=Path(scratch, "compiled"))
        theirs = peer(raw, options.device, options.precision, embedder.spec.window)
        print(
            f"{embedder.provider}, {embedder.spec.precision}, {options.threads} threads, {options.texts} texts,"
            f" {options.rounds} rounds; texts per {per}"
        )
        print(f"{'':24}{'kb':>8}{'sentence-transformers':>24}{'ratio':>8}")
        corpus = corpora(options.texts)
        for name, calls in corpus.items():
            mine, other, ratio = race(embedder.embed_passages, theirs, calls, options.rounds, clock)
            print(f"{name:24}{mine:8.1f}{other:24.1f}{ratio:7.2f}x", flush=True)
        compare(embedder, raw, list(corpus.values())[-1])


if __name__ == "__main__":
    main()
