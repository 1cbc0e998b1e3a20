"""Measure the speed of embedding: kb in several precisions and sentence-transformers, on the same device.

All run in turns within one process. On a CPU, a figure is texts per second of CPU time (all threads), on a GPU texts
per second. The ratio to the first column is the median of the rounds' ratios. sentence-transformers runs in fp32, if
it is installed. Texts of mixed lengths come in calls of several sizes, because sentence-transformers pads a batch to
its longest text: the fewer texts it can sort, the more computation is wasted. Queries come one by one. The last lines
compare the vectors with fp32. Needs kb[engine] with the device's extra:

    python -m bench.embedding --model MODEL_DIR --device cuda --precision fp32 fp16
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
QUERY_TOKENS = 17
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
        "queries": split([text(QUERY_TOKENS, chance) for _ in range(size)], 1),
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


def race(
    runners: dict[str, Embed], calls: list[list[str]], rounds: int, clock: Clock
) -> dict[str, tuple[float, float]]:
    """Return each one's median rate, and its median ratio to the first; a first round, to warm up, does not count."""
    found = [{name: rate(embed, calls, clock) for name, embed in runners.items()} for _ in range(rounds + 1)][1:]
    first = next(iter(runners))
    return {
        name: (
            statistics.median(each[name] for each in found),
            statistics.median(each[name] / each[first] for each in found),
        )
        for name in runners
    }


def peer(raw: Path, device: str, window: int, threads: int) -> Embed | None:
    """sentence-transformers on the same device, if it is installed; torch calls AMD's GPUs `cuda` too."""
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError:
        return None
    torch.set_num_threads(threads)
    model = SentenceTransformer(str(raw), device="cpu" if device == "cpu" else "cuda")
    model.max_seq_length = window
    return partial(model.encode, batch_size=PEER_BATCH[device], normalize_embeddings=True, show_progress_bar=False)


def main() -> None:
    """Run the race and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="folder of the model; fetched when not given")
    parser.add_argument("--device", choices=("cpu", "cuda", "rocm"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "fp16", "bf16", "int8"), nargs="+", default=["fp32", "int8"])
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_cores())
    options = parser.parse_args()
    clock, per = (time.process_time, "CPU second") if options.device == "cpu" else (time.perf_counter, "second")
    with tempfile.TemporaryDirectory() as scratch:
        raw = options.model or fetch(Path(scratch, "raw"))
        cache = Path(scratch, "compiled")
        embedders = {
            each: OnnxEmbedder(prepare(raw, Path(scratch), each), options.device, options.threads, cache=cache)
            for each in options.precision
        }
        passages: dict[str, Embed] = {name: each.embed_passages for name, each in embedders.items()}
        queries: dict[str, Embed] = {name: each.embed_queries for name, each in embedders.items()}
        window = next(iter(embedders.values())).spec.window
        if theirs := peer(raw, options.device, window, options.threads):
            passages["torch fp32"] = queries["torch fp32"] = theirs
        provider = next(iter(embedders.values())).provider
        print(f"{provider}, {options.threads} threads, {options.texts} texts, {options.rounds} rounds; texts per {per}")
        print(f"{'':24}" + "".join(f"{name:>20}" for name in passages))
        for name, calls in corpora(options.texts).items():
            found = race(queries if name == "queries" else passages, calls, options.rounds, clock)
            print(f"{name:24}" + "".join(f"{each:12.1f} {ratio:6.2f}x" for each, ratio in found.values()), flush=True)
        texts = ["", *chain.from_iterable(corpora(options.texts)["mixed, 64 a call"])]
        expected = next(iter(passages.values()))(texts)
        for name, embed in list(passages.items())[1:]:
            cosines = (embed(texts) * expected).sum(axis=1)
            print(f"cosine of {name} to {options.precision[0]}: mean {cosines.mean():.7f}, least {cosines.min():.7f}")


if __name__ == "__main__":
    main()
