"""Measure the tokens of answers over MCP (o200k_base), and the share of text from documents.

    python -m bench.tokens

A real server, a real client. Each answer is counted as the text that models read and, in brackets, as the structured
content that some clients show instead. "before" is the same answer as the engine's JSON.
"""

from __future__ import annotations

import asyncio
import json
import operator
import statistics
import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import quicktok
from fastmcp import Client

from bench.collection import DATA, collection
from bench.serving import add_all, serving
from kb.client.client import EngineClient
from kb_mcp.tools.rendering import shown_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fastmcp.client.client import CallToolResult

ENCODING: Final = quicktok.get_encoding("o200k_base")
CALLS_A_QUESTION: Final = 1.15
"""As many as an agent needed for one of forty questions."""

SCOPE: Final = "conv-26"
SESSION_SCOPES: Final = ("conv-43", "conv-47", "conv-49")
"""The conversations on which nothing was chosen."""

UNREAD: Final = ("highlights", "more", "truncated")
FILE_QUESTIONS: Final = (
    "what was repaired and what did it cost",
    "how are large language models used as agents",
    "which sections does the master format have",
    "what is the booking number of the cinema",
    "what does the medical report say about the patient",
    "conference papers about document conversion",
)
DECISIONS: Final = tuple(
    f"Decision 2026-{1 + number % 9:02}-{1 + number % 27:02}: project Harbor uses {tool} instead of the old one for"
    f" {purpose}, because {reason}."
    for number, (tool, purpose, reason) in enumerate(
        (tool, purpose, reason)
        for tool in ("PostgreSQL 18", "Redis", "Go", "systemd", "uv")
        for purpose in ("storage", "queues", "the ferry timetable", "deployment")
        for reason in ("two people know it well", "that one lost messages twice in March")
    )
)


def count(text: str) -> int:
    return len(ENCODING.encode(text, allowed_special="all"))


@dataclass
class Tally:
    """Tokens of passages, of texts, of structured contents and of the engine's JSON, over several answers."""

    passages: int = 0
    text: int = 0
    structured: int = 0
    before: int = 0
    answers: int = 0

    def add(self, result: CallToolResult, reply: dict[str, Any]) -> None:
        """Count an answer, and the engine's reply to the same search."""
        found = result.structured_content["results"]
        self.passages += sum(count(shown_text(each)) for each in found)
        self.text += count(result.content[0].text)
        self.structured += count(json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":")))
        kept = [{name: value for name, value in each.items() if name not in UNREAD} for each in reply["results"]]
        self.before += count(json.dumps({**reply, "results": kept}, ensure_ascii=False, separators=(",", ":")))
        self.answers += 1


def within(name: str, figure: float, limit: float, is_good: Callable[[Any, Any], bool], more: str = "") -> bool:
    """Print a figure; return whether it is within its limit."""
    good = is_good(figure, limit)
    print(f"  {name:58}{figure:9.2f}   {'within' if good else 'NOT within'} {limit} {more}")
    return good


async def searched(agent: Client[Any], engine: EngineClient, questions: Iterable[str], **filters: object) -> Tally:
    """Return the cost of ten results for each question."""
    tally = Tally()
    for question in questions:
        result = await agent.call_tool("kb_search", {"query": question, "top": 10, **filters})
        tally.add(result, await engine.search(query=question, top=10, **filters))
    return tally


def judge_share(name: str, tally: Tally, least: float | None = None) -> list[bool]:
    shares = f"({tally.passages / tally.structured:.2f} structured, {tally.passages / tally.before:.2f} before)"
    if least is None:
        print(f"  {name:58}{tally.passages / tally.text:9.2f}   {shares}")
        return []
    return [within(name, tally.passages / tally.text, least, operator.ge, shares)]


async def recall(agent: Client[Any], engine: EngineClient) -> tuple[Tally, list[bool]]:
    """Return the cost, and judge the evidence that is found per thousand tokens, against the same results as JSON."""
    turns = collection("locomo_turns")
    queries = [name for name in turns.judgements if turns.queries.get(name, {}).get("scope") == SCOPE]
    tally, found = Tally(), 0.0
    for name in queries:
        question = {"query": turns.queries[name]["text"], "tags": [SCOPE], "top": 10}
        result = await agent.call_tool("kb_search", question)
        tally.add(result, await engine.search(**question))
        evidence = turns.judgements[name].keys()
        paths = {each.get("source_path") for each in result.structured_content["results"]}
        found += len(evidence & paths) / len(evidence)
    mean = found / len(queries)
    cost = tally.text / tally.answers
    print(f"  recall of evidence at 10 over {len(queries)} questions: {mean:.3f}, {cost:.0f} tokens each")
    now, before = (mean / tokens * tally.answers * 1000 for tokens in (tally.text, tally.before))
    judge_share("share of conversation turns", tally)
    figures = f"({now:.3f} and {before:.3f})"
    return tally, [within("recall per 1,000 tokens, against before", now / before, 2, operator.ge, figures)]


async def short_answers(agent: Client[Any]) -> list[bool]:
    """Judge the median tokens of short answers about a conversation, where many are equal, and of ten results."""
    turns, verdicts = collection("locomo_turns"), list[bool]()
    queries = [query for query in turns.queries.values() if query["scope"] == SCOPE]
    for more, limit in (({}, 200), ({"top": 10}, 500)):
        answers = [
            await agent.call_tool("kb_search", {"query": query["text"], "tags": [SCOPE]} | more) for query in queries
        ]
        tokens = statistics.median(count(answer.content[0].text) for answer in answers)
        verdicts.append(within(f"median tokens of an answer with {more or 'no top'}", tokens, limit, operator.le))
    return verdicts


def judge_questions(tallies: Iterable[Tally]) -> bool:
    """Judge the tokens of a question, for equal numbers about files, notes and conversations."""
    costs = [tally.text / tally.answers * CALLS_A_QUESTION for tally in tallies]
    shown = f"({', '.join(f'{cost:.0f}' for cost in costs)} about files, notes, turns)"
    return within("tokens a question", sum(costs) / len(costs), 1400, operator.le, shown)


async def read_around(agent: Client[Any], engine: EngineClient) -> bool:
    """Judge the neighbours of a hit in the middle of a long document."""
    pages = (
        f"## Page {number}\n\n" + f"The keeper of page {number} noted the ships and the wind. " * 20
        for number in range(1, 620)
    )
    accepted = await add_text(engine, "\n\n".join(pages), "Book")
    [hit] = (
        await agent.call_tool("kb_search", {"query": "Page 201", "document_id": accepted, "top": 1})
    ).structured_content["results"]
    around = await agent.call_tool("kb_get", {"document_id": accepted, "chunk_id": hit["chunk_id"], "around": 2})
    chunks = around.structured_content["chunk_count"]
    return within(
        f"a hit's neighbours in a document of {chunks} chunks", count(around.content[0].text), 1500, operator.le
    )


async def add_text(engine: EngineClient, text: str, title: str) -> int:
    accepted = await engine.add_note(text=text, title=title)
    return int((await engine.wait_for_job(accepted["job_id"]))["document_id"])


async def edit(agent: Client[Any], engine: EngineClient) -> bool:
    """Judge the change of one line of a note of 9 kB."""
    log = "\n".join(
        f"{number:03}: the meeting of the harbour board noted a ship of {number} tons." for number in range(140)
    )
    arguments = {"document_id": await add_text(engine, log, "Log"), "old": "077: the meeting", "new": "077: the master"}
    result = await agent.call_tool("kb_update_note", arguments)
    return within(
        "one line of a 9 kB note", count(json.dumps(arguments)) + count(result.content[0].text), 400, operator.le
    )


async def tool_list(agent: Client[Any]) -> bool:
    """Judge the tokens of the list of tools: names, descriptions and schemas."""
    sent = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"annotations", "meta", "title"})
        for tool in await agent.list_tools()
    ]
    return within(
        "the list of tools",
        sum(count(json.dumps(each, ensure_ascii=False, separators=(",", ":"))) for each in sent),
        2600,
        operator.le,
    )


async def fill(engine: EngineClient, agent: Client[Any]) -> None:
    """Let the agent keep notes, and a person conversations and files."""
    for text in DECISIONS:
        await agent.call_tool("kb_addnote", {"text": text, "tags": ["harbor", "memory"]})
    turns = collection("locomo_turns").documents.items()
    await add_all(engine, ((path, each) for path, each in turns if each.get("scope") == SCOPE), 1)
    for path in sorted((DATA / "files").iterdir()):
        if path.suffix not in (".md",):
            with path.open("rb") as file:
                await engine.add_file(path.name, file, tags=["file"], wait=60)


async def measure(url: str) -> bool:
    """Print every figure; return whether all are within their limits."""
    async with EngineClient(url) as engine, Client(f"{url}/mcp") as agent:
        await fill(engine, agent)
        notes = await searched(agent, engine, islice(DECISIONS, 0, None, 4), tags=["memory"])
        files = await searched(agent, engine, FILE_QUESTIONS, tags=["file"])
        listed = await agent.call_tool("kb_list", {"tags": ["harbor"], "limit": 40})
        print("share of an answer that is what documents say; tokens")
        shares = judge_share("share of files", files, 0.65) + judge_share("share of one-line notes", notes, 0.55)
        turns, found = await recall(agent, engine)
        verdicts = [
            *shares,
            *found,
            *await short_answers(agent),
            judge_questions((files, notes, turns)),
            within("40 notes listed", count(listed.content[0].text), 1500, operator.le),
            await edit(agent, engine),
            await read_around(agent, engine),
            await tool_list(agent),
        ]
    return all(verdicts)


def main() -> int:
    """0 if every figure is within its limit."""
    with serving() as url:
        return int(not asyncio.run(measure(url)))


if __name__ == "__main__":
    sys.exit(main())
