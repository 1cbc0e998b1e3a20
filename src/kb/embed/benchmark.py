"""The speed of a model on this machine."""

import statistics
import time
from collections.abc import Callable
from itertools import count

import onnxruntime

from kb.embed.onnx.providers import DEVICES
from kb.embed.onnx.session import available_cores, detect_machine
from kb.embed.protocol import Embedder

Embed = Callable[[list[str]], object]

WORDS = ("the", "river", "carried", "stones", "past", "the", "old", "mill", "where", "her", "letters", "waited")
CHUNK_WORDS, CHUNKS = 198, 64
NOTE_WORDS, NOTES = 18, 256
QUERY_WORDS = 6
ROUGH = 16


def describe(embedder: Embedder) -> dict[str, object]:
    """Return the model, its device, and the reasons against each other GPU, by name."""
    spec, machine = embedder.spec, detect_machine()
    others = [device for device in DEVICES if device.name not in ("cpu", embedder.device)]
    faults = {device.name: machine.fault(device) or machine.library_fault(device) for device in others}
    return {
        "device": embedder.device,
        "provider": embedder.provider,
        "precision": spec.precision,
        "model": spec.name,
        "dimensions": spec.dimensions,
        "window": spec.window,
        "digest": spec.digest,
        "runtime": onnxruntime.__version__,
        "cores": available_cores(),
        "not_used": {name: fault for name, fault in faults.items() if fault},
    }


def measure(embedder: Embedder, seconds: float) -> dict[str, float]:
    """Return the chunks of 200 tokens and notes of 20 embedded per second, and the median milliseconds of a query.

    Takes about `seconds` in all, at least one round of each; with 0 a round has few texts and gives a rough figure.
    """
    share, part = seconds / 3, 1 if seconds else ROUGH
    return {
        "chunks_per_second": round(_rate(embedder.embed_passages, CHUNK_WORDS, CHUNKS // part, share), 1),
        "notes_per_second": round(_rate(embedder.embed_passages, NOTE_WORDS, NOTES // part, share), 1),
        "query_ms": round(1000 * statistics.median(_times(embedder.embed_queries, QUERY_WORDS, 1, share)), 2),
    }


def passages_per_second(embedder: Embedder) -> float:
    """Return roughly how many chunks of 200 tokens are embedded per second; this takes about half a second."""
    return _rate(embedder.embed_passages, CHUNK_WORDS, CHUNKS // ROUGH, 0)


def _rate(embed: Embed, words: int, texts: int, seconds: float) -> float:
    """Return the texts per second, as the median of the rounds."""
    return texts / statistics.median(_times(embed, words, texts, seconds))


def _times(embed: Embed, words: int, texts: int, seconds: float) -> list[float]:
    """Return the seconds of each round, without the first, which compiles and allocates."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    for number in count():
        batch = [_text(words, number + offset) for offset in range(texts)]
        started = time.perf_counter()
        embed(batch)
        times.append(time.perf_counter() - started)
        if number and time.perf_counter() > end:
            break
    return times[1:]


def _text(words: int, start: int) -> str:
    return " ".join(WORDS[(start + offset) % len(WORDS)] for offset in range(words))
