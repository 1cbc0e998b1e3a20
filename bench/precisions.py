"""Measure the cost of a precision: nDCG@10 and recall@100 in fp32, in another one, and with both in one database.

    python -m bench.precisions [--precision int8] [--vectors FOLDER] [COLLECTION...]      default: all collections

Each text is embedded once in each precision; `--vectors` keeps the vectors for the next run. One store has vectors in
fp32, one in the other precision, which is queried in both, and one has documents in both, in turn. Each line is the
difference to fp32, with the 95% interval of a paired bootstrap. Fail if nDCG loses more than `APART` and the interval
excludes 0, or if recall loses more than `APART`.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.collection import COLLECTIONS, Collection, collection
from kb.documents.write_document import write_document
from kb.embed.models.prepare import prepare
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.ingest.draft import draft_note, embed_draft
from kb.search.query import Query
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.settings import Settings
from kb.store.rows import Filter, VectorSpace
from kb.store.sqlite.store import SqliteStore
from kb.telemetry.instruments import FollowingPool, Instruments
from kb_cli.evaluation import RECALL_DEPTH, Measures, mean, ranked_grades

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from kb_cli.evaluation import Question

    Embed = Callable[[list[str]], NDArray[np.float32]]

APART: Final = 0.003


class Remembering:
    """An embedder that computes each text once, and keeps the vectors in a file."""

    def __init__(self, embedder: OnnxEmbedder, path: Path) -> None:
        self._embedder = embedder
        self._path = path
        self._vectors: dict[str, NDArray[np.float32]] = {}
        if path.exists():
            with np.load(path) as kept:
                self._vectors = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))
        self.embed_passages = partial(self._embed, embedder.embed_passages)
        self.embed_queries = self._embed_queries

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the embedder has
        return getattr(self._embedder, name)

    @property
    def current(self) -> Remembering:
        """Itself."""
        return self

    @property
    def models(self) -> Sequence[Remembering]:
        """Itself alone."""
        return [self]

    def keep(self) -> None:
        """Write the vectors into the file."""
        np.savez(self._path, keys=np.array(list(self._vectors)), vectors=np.stack(list(self._vectors.values())))

    def _embed_queries(self, texts: Sequence[str], *, alone: bool = True) -> NDArray[np.float32]:
        return self._embed(partial(self._embedder.embed_queries, alone=alone), texts)

    def _embed(self, embed: Embed, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}
        if missing:
            self._vectors |= dict(zip(missing, embed(list(missing.values())), strict=True))
        return np.stack([self._vectors[key] for key in keys]) if keys else np.empty((0, 384), np.float32)


@dataclass(frozen=True)
class Scores:
    """The measures of each question."""

    measures: list[Measures]

    def report(self, label: str, base: Scores) -> tuple[str, bool]:
        """Return a line, and whether all figures are near the figures of `base`."""
        pairs = list(zip(self.measures, base.measures, strict=True))
        apart = mean([one.ndcg - other.ndcg for one, other in pairs])
        recall = mean([one.recall - other.recall for one, other in pairs])
        ndcg, depth = (mean([getattr(each, name) for each in self.measures]).value for name in ("ndcg", "recall"))
        line = (
            f"  {label:24} nDCG@10 {ndcg:.4f} {apart.value:+.4f} ({apart.low:+.4f} to {apart.high:+.4f}),"
            f" recall@100 {depth:.4f} {recall.value:+.4f} ({recall.low:+.4f} to {recall.high:+.4f})"
        )
        is_worse = apart.value < -APART and apart.high < 0
        return line, not is_worse and recall.value >= -APART


def fill(path: Path, wanted: Collection, embedders: Iterable[Remembering]) -> SqliteStore:
    """Return a new store with a collection, the documents in turn embedded by each of the embedders."""
    turns = cycle(embedders)
    first = next(turns)
    store = SqliteStore(path, VectorSpace.of(first.spec))
    for key, document in wanted.documents.items():
        if document["text"].strip():
            draft = draft_note(document["text"], document.get("title") or None, first)
            content = replace(embed_draft(draft, next(turns)), space=None)
            with store.write() as tx:
                write_document(tx, content, key, [document["scope"]] if "scope" in document else [])
    return store


def asked(store: SqliteStore, embedder: Remembering, questions: Sequence[Question]) -> Scores:
    """Ask all questions."""
    with FollowingPool(1) as pool, closing(RecallMonitor(store, Instruments())) as recall:
        service = SearchService(store, embedder, pool, Instruments(), recall)
        return Scores([measured(service, each) for each in questions])


def measured(service: SearchService, question: Question) -> Measures:
    """Return the measures of a ranking. A document ranks by its best passage."""
    answer = service.search(Query.parse(question.text, Filter(tags=tuple(question.tags))), RECALL_DEPTH)
    found = [
        {"document_id": each.document_id, "source_path": each.source_path, "title": each.title}
        for each in answer.results
    ]
    return Measures.of(ranked_grades(found, question.wanted), list(question.wanted.values()))


def compare(name: str, one: Remembering, other: Remembering) -> bool:
    """Print a collection's lines; whether none loses too much."""
    wanted = collection(name)
    precision = other.spec.precision
    print(f"{name}: {len(wanted.documents)} documents, {len(wanted.questions)} questions", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Scores] = {}
        stores = {"fp32": ([one], [one]), precision: ([other], [other, one]), "mixed": ([one, other], [other])}
        for label, (embedders, askers) in stores.items():
            with closing(fill(Path(folder, f"{label}.db"), wanted, embedders)) as store:
                for asking in askers:
                    found[f"{label}, asked in {asking.spec.precision}"] = asked(store, asking, wanted.questions)
        lines = [scores.report(label, found["fp32, asked in fp32"]) for label, scores in found.items()]
    for line, _ in lines:
        print(line, flush=True)
    one.keep()
    other.keep()
    return all(is_well for _, is_well in lines)


def main() -> int:
    """Compare each collection; 1 if one loses too much."""
    parser = argparse.ArgumentParser(description="Measure the cost of a precision for the ranking.")
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--vectors", type=Path, help="a folder that keeps the vectors")
    parser.add_argument("collections", nargs="*", default=COLLECTIONS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.vectors or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        settings = Settings.read()
        pair = [
            Remembering(
                OnnxEmbedder(prepare(settings.model_dir, settings.data_dir, each), "cpu"), folder / f"{each}.npz"
            )
            for each in ("fp32", options.precision)
        ]
        return int(not all([compare(name, *pair) for name in options.collections]))  # noqa: C419 - all are measured


if __name__ == "__main__":
    sys.exit(main())
