"""Measure kb as an agent's memory, by the API and by MCP, with figures that others publish too.

    python -m bench.memory [--json FILE] [--longmemeval FILE]

LoCoMo: whether the sessions that answer a question are among the first 5 and 10 (any, all, and the share of them), and
the recall and nDCG of turns. The weights of kb were chosen on conversations 26 and 41; the other three judge them.
Facts: 40 topics, each with an outdated note, the current one of a month later and others, before and after `replaces`,
and after the current note is deleted: then the old one holds again. bench/changed_facts.tsv has two sets of them: both
notes have the *same words*; or only the outdated one and another have those of the question: *other words*.
With the file of LongMemEval-S, which its authors give out, the same for its sessions. Questions without an answer are
left out. Tokens are those of the default answer of kb_search. The rankings are in bench/found/memory-rankings.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastmcp import Client

from bench.collection import Collection, collection
from bench.origin import Record
from bench.serving import add_all, serving, until_done
from bench.tokens import SESSION_SCOPES, count
from kb.client.client import EngineClient
from kb_cli.evaluation import Measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEPTH: Final = 10
RANKINGS: Final = Path(__file__).parent / "found" / "memory-rankings.jsonl"
CHANGED_FACTS: Final = Path(__file__).with_name("changed_facts.tsv")

Ranking = list[str]


async def ranked(engine: EngineClient, query: str, **filters: object) -> Ranking:
    """Return the documents of the best passages, best first."""
    results = (await engine.search(query=query, top=DEPTH, group_by="document", **filters))["results"]
    return [result["source_path"] for result in results]


def session_measures(rankings: Sequence[tuple[Ranking, set[str]]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for depth in (5, 10):
        found = [(len(wanted & set(ranking[:depth])), len(wanted)) for ranking, wanted in rankings]
        figures[f"any@{depth}"] = statistics.fmean(some > 0 for some, _ in found)
        figures[f"all@{depth}"] = statistics.fmean(some == every for some, every in found)
        figures[f"coverage@{depth}"] = statistics.fmean(some / every for some, every in found)
    return figures


def turn_measures(rankings: Sequence[tuple[Ranking, set[str]]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for depth in (5, 10):
        shares = [len(wanted & set(ranking[:depth])) / len(wanted) for ranking, wanted in rankings]
        figures[f"recall@{depth}"] = statistics.fmean(shares)
    gains = [Measures.of([int(name in wanted) for name in ranking], [1] * len(wanted)) for ranking, wanted in rankings]
    return figures | {"nDCG@10": statistics.fmean(each.ndcg for each in gains)}


async def of_collection(url: str, wanted: Collection, scopes: Iterable[str]) -> tuple[list[Any], float]:
    """Return the ranking and the right documents of each question, and the median tokens of a default answer."""
    kept, rankings, tokens = set(scopes), list[Any](), list[int]()
    documents = [each for each in wanted.documents.items() if each[1].get("scope") in kept]
    async with EngineClient(url) as engine, Client(f"{url}/mcp") as agent:
        await add_all(engine, documents, connections=1)
        for question in wanted.questions:
            if not kept & set(question.tags):
                continue
            tags = list(question.tags)
            rankings.append((await ranked(engine, question.text, tags=tags), set(map(str, question.wanted))))
            answer = await agent.call_tool("kb_search", {"query": question.text, "tags": tags})
            tokens.append(count(answer.content[0].text))
    return rankings, statistics.median(tokens)


def changed_topics() -> dict[str, list[dict[str, str]]]:
    """Return the topics of each set."""
    with CHANGED_FACTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {name: [row for row in rows if row["set"] == name] for name in dict.fromkeys(row["set"] for row in rows)}


async def changed_facts(url: str, topics: Sequence[dict[str, str]]) -> dict[str, float]:
    """Return how often the current note comes first or second, and the outdated one before it, in each state."""
    figures: dict[str, float] = {}
    async with EngineClient(url) as engine:

        async def add(text: str, **fields: object) -> int:
            return int((await engine.add_note(text=text, wait=60, **fields))["document_id"])

        async def count_firsts(name: str) -> None:
            firsts = seconds = stale = 0
            for topic, (old, new) in zip(topics, notes, strict=True):
                order = [hit["document_id"] for hit in (await engine.search(query=topic["question"], top=5))["results"]]
                firsts += order[:1] == [new]
                seconds += order[1:2] == [new]
                stale += old in order and (new not in order or order.index(old) < order.index(new))
            counts = {"current first": firsts, "second": seconds, "outdated before it": stale}
            figures.update({f"{what}, {name}": count for what, count in counts.items()})

        notes = list[tuple[int, int]]()
        for number, topic in enumerate(topics):

            def dated(month: int, text: str, day: int = 1 + number % 27) -> str:
                return f"---\ndate: 2026-{month:02}-{day:02}\n---\n{text}"

            notes.append((await add(dated(3, topic["outdated"])), await add(dated(4, topic["current"]))))
            for other in topic["others"].split("|"):
                await add(dated(2, other))
        await until_done(engine)
        await count_firsts("before")
        for topic, (old, new) in zip(topics, notes, strict=True):
            text = "".join(chunk["text"] for chunk in (await engine.document(new))["chunks"])
            assert await add(text, replaces=old) == new, topic
        await count_firsts("after")
        for _, new in notes:
            await engine.delete_document(new)
        notes = [(new, old) for old, new in notes]
        await count_firsts("current deleted")
    return figures


def longmemeval(file: Path) -> list[tuple[str, dict[str, str], set[str]]]:
    """Return the question, the sessions by id, and the ids of those that answer, of each question with an answer."""
    return [
        (
            entry["question"],
            {
                name: "\n".join(f"{turn['role']}: {turn['content']}" for turn in session)
                for name, session in zip(entry["haystack_session_ids"], entry["haystack_sessions"], strict=True)
            },
            set(entry["answer_session_ids"]),
        )
        for entry in json.loads(file.read_text())
        if not entry["question_id"].endswith("_abs")
    ]


async def of_longmemeval(url: str, file: Path) -> list[Any]:
    """Return the ranking and the right sessions of each question, among the sessions of its own."""
    rankings = list[Any]()
    async with EngineClient(url) as engine:
        for number, (question, sessions, wanted) in enumerate(longmemeval(file)):
            scope = f"q{number}"
            documents = [(f"{scope}/{name}", {"text": text, "scope": scope}) for name, text in sessions.items()]
            await add_all(engine, documents, connections=1)
            ranking = await ranked(engine, question, tags=[scope])
            rankings.append((ranking, {f"{scope}/{name}" for name in wanted}))
    return rankings


def main() -> None:
    """Print the figures, and write them and the rankings if requested."""
    parser = argparse.ArgumentParser(description="Measure kb as an agent's memory.")
    parser.add_argument("--json", type=Record)
    parser.add_argument("--longmemeval", type=Path)
    arguments = parser.parse_args()
    figures, kept = dict[str, dict[str, float]](), dict[str, Any]()
    for name, source, measures in (
        ("LoCoMo sessions", "locomo_sessions", session_measures),
        ("LoCoMo turns", "locomo_turns", turn_measures),
    ):
        with serving() as url:
            rankings, tokens = asyncio.run(of_collection(url, collection(source), SESSION_SCOPES))
        figures[name] = measures(rankings) | {"tokens": tokens}
        kept[name] = [(ranking, sorted(wanted)) for ranking, wanted in rankings]
        print(name, figures[name], flush=True)
    for name, topics in changed_topics().items():
        with serving() as url:
            figures[f"Changed facts, {name}"] = asyncio.run(changed_facts(url, topics))
        print("Changed facts,", name, figures[f"Changed facts, {name}"], flush=True)
    if arguments.longmemeval:
        with serving() as url:
            found = asyncio.run(of_longmemeval(url, arguments.longmemeval))
        figures["LongMemEval-S sessions"] = session_measures(found)
        print("LongMemEval-S sessions", figures["LongMemEval-S sessions"], flush=True)
    if arguments.json:
        arguments.json.save(figures)
        rows = [[name, *row] for name, found in kept.items() for row in found]
        RANKINGS.write_text("".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows))


if __name__ == "__main__":
    main()
