"""Databases of any size: passages of real sentences, drawn with a seed, with vectors composed of their vectors."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from bench.collection import collection
from kb.store.default_space import DEFAULT_SPACE
from kb.store.rows import ChunkPosition, Content, NewChunk
from kb.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from kb.embed.protocol import Embedder
    from kb.store.protocol import Store

COLLECTIONS = ("scifact", "cranfield", "locomo_turns")
SENTENCES = 20_000
ADJACENT, CHOSEN = 3, 1
"""A passage is so many sentences that follow each other, and so many of anywhere: about 100 tokens."""

NOISE = 0.2
"""How long the noise in a passage's vector is, which has the length 1."""

CHUNKS = 10
"""How many passages a document has."""

SHARES = {"50 %": 2, "10 %": 10, "1 %": 100, "0.1 %": 1000}
"""One document in this number has the tag."""

BATCH = 100
END = re.compile(r"(?<=[.?!])\s+")


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences with their vectors, shape (n, dimensions)."""

    texts: list[str]
    vectors: NDArray[np.float32]


def load_sentences(embedder: Embedder, cache: Path) -> Sentences:
    """Return the sentences that passages are made of; they are embedded once."""
    texts = list(islice(_sentences(), SENTENCES))
    if not cache.exists():
        np.save(cache, embedder.embed_passages(texts))
    return Sentences(texts, np.load(cache))


def queries() -> list[str]:
    """Return the collections' queries, in a drawn order."""
    texts = [query["text"] for name in COLLECTIONS for query in collection(name).queries.values()]
    return [texts[place] for place in np.random.default_rng(1).permutation(len(texts))]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A document: which sentences each of its passages is made of, shape (CHUNKS, 4), and the passages' vectors."""

    sentences: NDArray[np.int64]
    vectors: NDArray[np.float32]


def fill(database: Path, sentences: Sentences, chunks: int) -> None:
    """Make a database of so many passages."""
    with closing(SqliteStore(database, DEFAULT_SPACE)) as store:
        write(store, sentences, chunks)


def write(store: Store, sentences: Sentences, chunks: int) -> None:
    """Write so many passages into an empty store."""
    write_documents(store, ((texts_of(sentences, each), each.vectors) for each in drawn(sentences, chunks // CHUNKS)))


def write_documents(store: Store, documents: Iterable[tuple[list[str], NDArray[np.float32]]]) -> None:
    """Write documents, each given as its passages and their vectors, into an empty store."""
    numbered = enumerate(documents)
    while batch := list(islice(numbered, BATCH)):
        with store.write() as tx:
            for number, (texts, vectors) in batch:
                tx.documents.add(_content(number, texts, vectors), f"/{number}", tags_of(number))


def tags_of(number: int) -> list[str]:
    """Return the tags of a document."""
    return [f"share {share}" for share, every in SHARES.items() if number % every == 0]


def _sentences() -> Iterator[str]:
    """Yield the sentences of the collections' documents, of each collection in turn, as they follow each other."""
    shelves = [list(collection(name).documents.values()) for name in COLLECTIONS]
    order = np.random.default_rng(0).permutation(sum(map(len, shelves)))
    documents = [document for shelf in shelves for document in shelf]
    for place in order:
        yield from (text for text in END.split(documents[place]["text"]) if 20 < len(text) < 400)


def drawn(sentences: Sentences, count: int) -> Iterator[Drawn]:
    """Draw so many documents."""
    numbers = np.random.default_rng(2)
    for _ in range(count):
        start = int(numbers.integers(SENTENCES - ADJACENT * CHUNKS))
        first = start + ADJACENT * np.arange(CHUNKS)[:, None] + np.arange(ADJACENT)
        places = np.hstack([first, numbers.integers(SENTENCES, size=(CHUNKS, CHOSEN))])
        vectors = sentences.vectors[places].mean(1)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors += numbers.normal(scale=NOISE / vectors.shape[1] ** 0.5, size=vectors.shape).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        yield Drawn(places, vectors)


def texts_of(sentences: Sentences, document: Drawn) -> list[str]:
    """Return the passages of a document."""
    return [" ".join(sentences.texts[place] for place in row) for row in document.sentences]


def _content(number: int, texts: list[str], vectors: NDArray[np.float32]) -> Content:
    chunks = [NewChunk(text, "", ChunkPosition(1, 1, 0, len(text))) for text in texts]
    return Content("note", texts[0][:60], f"{number}", chunks, vectors)
