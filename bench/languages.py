"""Questions in six languages to notes in six others: how often the note is the first result, or among the first three.

    python -m bench.languages [MODEL]...

Each model is a folder that kb converted; without one, the default model. Searches go by meaning alone and by the whole
search. The sixty notes are in one database, whose words hardly help: no question shares a language with its note.
"""

import asyncio
import csv
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from bench.serving import serving
from kb.client.client import EngineClient
from kb.embed.models.prepare import prepare
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.protocol import Embedder

ROWS = Path(__file__).with_name("languages.tsv")
FIRST = (1, 3)


def rows() -> list[dict[str, str]]:
    with ROWS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def by_meaning(embedder: Embedder) -> list[int]:
    """Return the rank of the right note of each question, by cosine."""
    notes = embedder.embed_passages([row["note"] for row in rows()])
    questions = embedder.embed_queries([row["question"] for row in rows()])
    scores = questions @ notes.T
    ranks: list[int] = (scores > np.diag(scores)[:, None]).sum(axis=1).tolist()
    return [rank + 1 for rank in ranks]


async def by_search(model: Path) -> list[int]:
    """Return the rank of the right note of each question in the results of a server; 0 if it is not among ten."""
    ranks = []
    with serving(KB_MODEL_DIR=str(model)) as url:
        async with EngineClient(url) as client:
            ids = [(await client.add_note(text=row["note"], wait=60))["document_id"] for row in rows()]
            for row, id_ in zip(rows(), ids, strict=True):
                found = await client.search(query=row["question"], top=10)
                results = [each["document_id"] for each in found["results"]]
                ranks.append(results.index(id_) + 1 if id_ in results else 0)
    return ranks


def table(name: str, ranks: list[int]) -> str:
    hits = ", ".join(f"first {most}: {sum(0 < rank <= most for rank in ranks)} of {len(ranks)}" for most in FIRST)
    missed = Counter(row["note_language"] for row, rank in zip(rows(), ranks, strict=True) if rank != 1)
    return f"{name}: {hits}; not first by language of the note: {dict(missed)}"


def main(folders: list[str]) -> None:
    with tempfile.TemporaryDirectory() as data:
        for folder in map(Path, folders) if folders else [None]:
            embedder = OnnxEmbedder(prepare(folder, Path(data)), "cpu")
            print(table(f"{embedder.spec.name} by meaning", by_meaning(embedder)))
            where = prepare(folder, Path(data)).onnx.parent
            print(table(f"{embedder.spec.name} by the whole search", asyncio.run(by_search(where))))


if __name__ == "__main__":
    main(sys.argv[1:])
