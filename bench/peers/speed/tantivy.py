"""The floor: tantivy's words, and every vector compared by numpy in memory, with nothing around them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from bench.peers.speed.passages import CANDIDATES, TAGS, TOP, fused

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from bench.peers.speed.passages import Passages, Question

engine = import_module("tantivy")


def schema() -> Any:  # noqa: ANN401 - tantivy's
    """Return the fields."""
    builder = engine.SchemaBuilder()
    builder.add_unsigned_field("id", stored=True, indexed=True, fast=True)
    builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
    for tag in TAGS:
        builder.add_boolean_field(tag, indexed=True)
    return builder.build()


def build(passages: Passages, folder: Path) -> None:
    """Write the passages."""
    fields = schema()
    index = engine.Index(fields, path=str(folder))
    writer = index.writer()
    for number, text in enumerate(passages.texts):
        tags = {tag: bool(passages.tags[tag][number]) for tag in TAGS}
        writer.add_document(engine.Document.from_dict({"id": number, "text": text, **tags}, fields))
    writer.commit()
    writer.wait_merging_threads()
    np.save(folder / "vectors.npy", passages.vectors)
    np.savez(folder / "tags.npz", **passages.tags)  # type: ignore[arg-type]


class Engine:
    """See `passages.Engine`."""

    def __init__(self, folder: Path) -> None:
        self._schema = schema()
        self._index = engine.Index(self._schema, path=str(folder))
        self._searcher = self._index.searcher()
        self._vectors = np.load(folder / "vectors.npy")
        with np.load(folder / "tags.npz") as tags:
            self._rows = {tag: np.flatnonzero(tags[tag]) for tag in TAGS}

    def hybrid(self, question: Question) -> list[tuple[int, str]]:
        """Return the best of both, fused by rank."""
        return self._read(fused([self._by_words(question), self._by_meaning(question, CANDIDATES)]))

    def nearest(self, question: Question) -> list[tuple[int, str]]:
        """Return the nearest."""
        return self._read(self._by_meaning(question, TOP))

    def _by_meaning(self, question: Question, top: int) -> list[int]:
        rows = self._rows[question.tag] if question.tag else None
        scores = (self._vectors if rows is None else self._vectors[rows]) @ question.vector
        best = np.argpartition(-scores, min(top, scores.size - 1))[:top]
        best = best[np.argsort(-scores[best])]
        found: list[int] = (best if rows is None else rows[best]).tolist()
        return found

    def _by_words(self, question: Question) -> list[int]:
        query = self._index.parse_query(" ".join(question.words), ["text"])
        if question.tag:
            tagged = engine.Query.const_score_query(
                engine.Query.term_query(self._schema, question.tag, field_value=True), 0.0
            )
            query = engine.Query.boolean_query([(engine.Occur.Must, query), (engine.Occur.Must, tagged)])
        hits = [address for _, address in self._searcher.search(query, CANDIDATES, count=False).hits]
        numbers: list[int] = self._searcher.fast_field_values("id", hits)
        return numbers

    def _read(self, numbers: list[int]) -> list[tuple[int, str]]:
        queries = (engine.Query.term_query(self._schema, "id", number) for number in numbers)
        hits = (self._searcher.search(query, 1, count=False).hits[0] for query in queries)
        return [
            (number, self._searcher.doc(address)["text"][0]) for number, (_, address) in zip(numbers, hits, strict=True)
        ]
