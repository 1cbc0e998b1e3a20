"""Measure the answers of kb_search with and without `top`: the recall of the right documents, and the tokens.

    python -m bench.answers [--json FILE] [COLLECTION...]      default: all that the docs name

Recall is the share of the right documents among the results that an agent sees; a fact counts if its words are in the
answer. The engine's own ten results show the loss. Who does what the last line of a short answer says gets the recall
*then*, in two calls. LoCoMo turns come from conversations on which nothing was chosen.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from fastmcp import Client

from bench.collection import collection
from bench.origin import Record
from bench.peers.questions import NOTES, facts, notes
from bench.serving import add_all, serving
from bench.tokens import SESSION_SCOPES, count
from kb.client.client import EngineClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Judge = Callable[[list[dict[str, Any]]], float]
    """Returns the recall of results."""

TOP: Final = 10
NAMED: Final = re.compile(r"top=(\d+)")
SHOWN: Final = {f"with `top={TOP}`": {"top": TOP}, "without `top`": {}}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the filter of its search, and the recall of an answer."""

    text: str
    filters: dict[str, list[str]]
    judge: Judge


@dataclass(slots=True)
class Answers:
    """The recall and the tokens of each answer."""

    recall: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


def of_collection(name: str, scopes: Iterable[str] = ()) -> tuple[list[tuple[str, dict[str, str]]], list[Asked]]:
    """Return documents and questions, only of some scopes if any are given."""
    wanted = collection(name)
    kept = set(scopes)
    documents = [each for each in wanted.documents.items() if not kept or each[1].get("scope") in kept]
    asked = [
        Asked(question.text, {"tags": list(question.tags)} if question.tags else {}, judge_of(question.wanted))
        for question in wanted.questions
        if not kept or kept & set(question.tags)
    ]
    return documents, asked


def judge_of(wanted: dict[str | int, int]) -> Judge:
    """Return the recall of documents by path."""
    return lambda results: len(wanted.keys() & {each["source_path"] for each in results}) / len(wanted)


def of_facts() -> tuple[list[tuple[str, dict[str, str]]], list[Asked]]:
    """Return notes and questions about some of them."""
    documents = [(f"/{number}", {"text": text}) for number, text in enumerate(notes().values())]

    def judge(answer: str) -> Judge:
        return lambda results: float(any(answer in each["text"] for each in results))

    return documents, [Asked(fact.question, {}, judge(fact.answer)) for fact in facts()]


COLLECTIONS: Final[dict[str, Callable[[], tuple[list[tuple[str, dict[str, str]]], list[Asked]]]]] = {
    f"30 facts among {NOTES} notes": of_facts,
    "LoCoMo turns, other half": lambda: of_collection("locomo_turns", SESSION_SCOPES),
    "LoCoMo sessions": lambda: of_collection("locomo_sessions"),
    "Cranfield": lambda: of_collection("cranfield"),
    "SciFact": lambda: of_collection("scifact"),
}


async def measure(url: str, name: str) -> dict[str, float]:
    """Return the figures of a collection."""
    documents, asked = COLLECTIONS[name]()
    found = {shown: Answers() for shown in SHOWN}
    ten, then, calls = list[float](), list[float](), 0
    async with EngineClient(url) as engine, Client(f"{url}/mcp") as agent:
        await add_all(engine, documents, connections=1)
        for each in asked:
            reply = await engine.search(query=each.text, top=TOP, **each.filters)
            ten.append(each.judge(reply["results"]))
            for shown, options in SHOWN.items():
                answer = await agent.call_tool("kb_search", {"query": each.text, **options, **each.filters})
                found[shown].recall.append(each.judge(answer.structured_content["results"]))
                found[shown].tokens.append(count(answer.content[0].text))
            results = answer.structured_content["results"]
            if named := NAMED.search(answer.structured_content.get("rest", "")):
                calls += 1
                more = await agent.call_tool("kb_search", {"query": each.text, "top": int(named[1]), **each.filters})
                results = [*results, *more.structured_content["results"]]
            then.append(each.judge(results))
    figures = {"Recall of ten": statistics.fmean(ten)}
    for shown, answers in found.items():
        figures[f"Recall {shown}"] = statistics.fmean(answers.recall)
        figures[f"Median tokens {shown}"] = statistics.median(answers.tokens)
    return figures | {"Recall then": statistics.fmean(then), "Share with more": calls / len(asked)}


def main() -> None:
    """Print the figures, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Measure answers with and without top.")
    parser.add_argument("--json", type=Record)
    parser.add_argument("collections", metavar="COLLECTION", nargs="*", default=COLLECTIONS)
    arguments = parser.parse_args()
    found = {}
    for name in arguments.collections:
        with serving() as url:
            found[name] = asyncio.run(measure(url, name))
        print(name, *(f"  {each}: {figure:.3f}" for each, figure in found[name].items()), sep="\n", flush=True)
    if arguments.json:
        arguments.json.save(found)


if __name__ == "__main__":
    main()
