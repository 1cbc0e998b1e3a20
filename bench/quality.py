"""Search quality: nDCG@10 and recall@100 of POST /search over public collections, scored by pytrec_eval.

    python -m bench.quality [COLLECTION...]      scifact when none is named

Documents go in through the API as notes; a document's rank is that of its best chunk.
"""

from __future__ import annotations

import asyncio
import sys
import time

import pytrec_eval

from bench.serving import Collection, add_all, collection, serving
from kb.client.client import EngineClient

FLOORS = {"scifact": 0.72}
"""What a collection must reach: nDCG@10."""


async def ranking(client: EngineClient, query: dict[str, str], mode: dict[str, bool]) -> dict[str, float]:
    """Documents by id, with falling scores."""
    tags = [query["scope"]] if "scope" in query else []
    reply = await client.search(query=query["text"], top=100, tags=tags, **mode)
    paths = dict.fromkeys(result["source_path"] for result in reply["results"])
    return {path: 1 / rank for rank, path in enumerate(paths, 1)}


async def scores(client: EngineClient, wanted: Collection, mode: dict[str, bool]) -> tuple[float, float]:
    """Mean nDCG@10 and recall@100."""
    run = {
        query: await ranking(client, wanted.queries[query], mode)
        for query in wanted.judgements
        if query in wanted.queries
    }
    evaluator = pytrec_eval.RelevanceEvaluator(wanted.judgements, {"ndcg_cut.10", "recall.100"})
    each = evaluator.evaluate(run).values()
    return (
        sum(measure["ndcg_cut_10"] for measure in each) / len(each),
        sum(measure["recall_100"] for measure in each) / len(each),
    )


async def measure(name: str) -> float:
    """Print a collection's figures; answers its nDCG@10 in hybrid mode."""
    wanted = collection(name)
    with serving() as url:
        async with EngineClient(url) as client:
            begun = time.perf_counter()
            await add_all(client, wanted.documents.items())
            status = await client.status()
            seconds = time.perf_counter() - begun
            print(f"{name}: {len(wanted.documents)} documents, {status['chunks']} chunks, in after {seconds:.0f} s")
            for label, mode in (("fts_only", {"fts_only": True}), ("vec_only", {"vec_only": True}), ("hybrid", {})):
                ndcg, recall = await scores(client, wanted, mode)
                print(f"  {label:8}  nDCG@10 {ndcg:.4f}  recall@100 {recall:.4f}", flush=True)
    return ndcg


def main() -> int:
    """Measure each collection; 1 if one is below its floor."""
    names = sys.argv[1:] or ["scifact"]
    return int(any(asyncio.run(measure(name)) < FLOORS.get(name, 0) for name in names))


if __name__ == "__main__":
    sys.exit(main())
