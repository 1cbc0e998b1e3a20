"""nDCG@10 of kb and of libraries for search, with the same documents and queries.

    KB_PEERS=DIR python -m bench.peers.rankings [COLLECTION...]      default: the given collections

DIR has a virtual environment for each installed peer, under its name: `chroma`, `lancedb`, `txtai`; for `qmd` a
folder with its `node_modules`, which contains `.bin/bun`. Each gets title and text as one whole text, as its own
guide does, with the vectors of kb's model, and ranks in its default way: Chroma by vectors, qmd by words, the others
by both. kb is called over HTTP with its defaults. A query with a scope is searched only among the texts of this
scope.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.ablation import asked, filled
from bench.collection import Collection, collection
from bench.peers.rankings.texts import Texts
from bench.serving import serving
from kb.embed.open import open_embedder
from kb.settings import Settings
from kb_cli.evaluation import Measures, mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kb.embed.protocol import Embedder
    from kb_cli.evaluation import Question

PEERS: Final = ("chroma", "lancedb", "txtai", "qmd")
GIVEN: Final = ("scifact", "cranfield", "locomo_sessions", "locomo_turns")
TOP: Final = 100


def scopes(wanted: Collection, embedder: Embedder) -> Iterable[tuple[Texts, list[Question]]]:
    """Yield the texts and the questions of each scope."""
    by_scope: dict[str, list[str]] = defaultdict(list)
    for key, document in wanted.documents.items():
        if document["text"].strip():
            by_scope[document.get("scope", "")].append(key)
    for scope, keys in by_scope.items():
        questions = [each for each in wanted.questions if each.tags == ((scope,) if scope else ())]
        documents = [wanted.documents[key] for key in keys]
        texts = [f"{each.get('title', '')}\n{each['text']}".strip() for each in documents]
        queries = [each.text for each in questions]
        yield (
            Texts(keys, texts, embedder.embed_passages(texts), queries, embedder.embed_queries(queries)),
            questions,
        )


def ranked(peer: str, environment: Path, texts: Texts) -> list[list[str]]:
    """Return a peer's results for each query."""
    with tempfile.TemporaryDirectory() as folder:
        texts.write(Path(folder))
        python = environment / "bin" / "python"
        command = [python if python.exists() else sys.executable, "-m", "bench.peers.rankings.texts", peer, folder]
        path = f"{environment / 'node_modules' / '.bin'}:{os.environ['PATH']}"
        subprocess.run([*command, str(TOP)], check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PATH": path})
        found: list[list[str]] = json.loads((Path(folder) / "rankings.json").read_text())
    return found


def measured(rankings: Sequence[Sequence[str]], questions: Sequence[Question]) -> list[Measures]:
    """Return the measures of the rankings."""
    return [
        Measures.of([question.wanted.get(key, 0) for key in ranking], list(question.wanted.values()))
        for ranking, question in zip(rankings, questions, strict=True)
    ]


def of_kb(wanted: Collection) -> list[Measures]:
    """Return the measures of kb's rankings."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url:
        asyncio.run(filled(url, wanted))
        return asyncio.run(asked(url, wanted, "both"))


def line(peer: str, measures: Sequence[Measures]) -> str:
    """Return nDCG@10 with its interval, and recall@100."""
    ndcg, recall = mean([each.ndcg for each in measures]), mean([each.recall for each in measures])
    return f"  {peer:10} {ndcg.value:.3f} ({ndcg.low:.3f} to {ndcg.high:.3f})  recall@100 {recall.value:.3f}"


def main() -> None:
    """Print a line for each peer and collection."""
    installed = Path(os.environ.get("KB_PEERS", "peers"))
    settings = Settings.read()
    embedder = open_embedder(settings.model_dir, settings.data_dir, settings.device, settings.precision)
    for name in sys.argv[1:] or GIVEN:
        wanted = collection(name)
        print(name, line("kb", of_kb(wanted)), sep="\n", flush=True)
        parts = list(scopes(wanted, embedder))
        for peer in (each for each in PEERS if (installed / each).exists()):
            found = [
                each
                for texts, questions in parts
                for each in measured(ranked(peer, installed / peer, texts), questions)
            ]
            print(line(peer, found), flush=True)


if __name__ == "__main__":
    main()
