"""Search quality: nDCG@10 and recall@100 of POST /search over public collections, as 'kb eval' counts them.

    python -m bench.quality [COLLECTION...]      scifact when none is named

Documents go in through the API as notes; a document's rank is that of its best chunk.
"""

from __future__ import annotations

import asyncio
import sys
import time

from bench.collection import Collection, collection
from bench.serving import add_all, serving
from kb.client.client import EngineClient
from kb_cli.evaluation.measures import Mean, mean
from kb_cli.evaluation.run import ask

FLOORS = {"scifact": 0.72}
"""What a collection must reach: nDCG@10."""


async def scores(client: EngineClient, wanted: Collection, mode: str) -> tuple[Mean, Mean]:
    """Mean nDCG@10 and recall@100."""
    outcomes = [(await ask(client, question, mode)).measures for question in wanted.questions]
    return mean([each.ndcg for each in outcomes]), mean([each.recall for each in outcomes])


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
            for mode in ("words", "meaning", "both"):
                ndcg, recall = await scores(client, wanted, mode)
                interval = f"({ndcg.low:.3f} to {ndcg.high:.3f})"
                print(f"  {mode:8}  nDCG@10 {ndcg.value:.4f} {interval}  recall@100 {recall.value:.4f}", flush=True)
    return ndcg.value


def main() -> int:
    """Measure each collection; 1 if one is below its floor."""
    names = sys.argv[1:] or ["scifact"]
    return int(any(asyncio.run(measure(name)) < FLOORS.get(name, 0) for name in names))


if __name__ == "__main__":
    sys.exit(main())
