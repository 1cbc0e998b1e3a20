"""Embedding speed: kb against sentence-transformers, per CPU second.

Both run fp32 on the same cores, in turns within one process. A round's figure is texts per second of CPU time
(all threads); the ratio is the median of the rounds' ratios. Texts of mixed lengths come in calls of several sizes:
sentence-transformers pads a batch to its longest text, so that the fewer it can sort, the more it computes in vain.
Needs kb[engine,cpu] and sentence-transformers:

    python bench/embedding.py --model MODEL_DIR
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from sentence_transformers import SentenceTransformer

from kb.embed.model import fetch, prepare
from kb.embed.onnx import OnnxEmbedder
from kb.embed.runtime import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable

    Embed = Callable[[list[str]], object]

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
PEER_BATCH = 32


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


def rate(embed: Embed, calls: list[list[str]]) -> float:
    """Texts per second of CPU time."""
    started = time.process_time()
    for texts in calls:
        embed(texts)
    return sum(map(len, calls)) / (time.process_time() - started)


def race(ours: Embed, theirs: Embed, calls: list[list[str]], rounds: int) -> tuple[float, float, float]:
    """The median rates of both and their median ratio; a first round, to warm up, does not count."""
    pairs = [(rate(ours, calls), rate(theirs, calls)) for _ in range(rounds + 1)][1:]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(mine / other for mine, other in pairs),
    )


def main() -> None:
    """Run the race and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="folder of the raw model; fetched when not given")
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_cores())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        raw = options.model or fetch(Path(scratch, "raw"))
        embedder = OnnxEmbedder(prepare(raw, Path(scratch)), "cpu", options.threads)
        peer = SentenceTransformer(str(raw), device="cpu")
        peer.max_seq_length = embedder.window
        print(f"{options.threads} threads, {options.texts} texts, {options.rounds} rounds; texts per CPU second")
        print(f"{'':24}{'kb':>8}{'sentence-transformers':>24}{'ratio':>8}")
        for name, calls in corpora(options.texts).items():
            ours, theirs, ratio = race(
                embedder.embed,
                lambda texts: peer.encode(
                    texts, batch_size=PEER_BATCH, normalize_embeddings=True, show_progress_bar=False
                ),
                calls,
                options.rounds,
            )
            print(f"{name:24}{ours:8.1f}{theirs:24.1f}{ratio:7.2f}x", flush=True)


if __name__ == "__main__":
    main()
