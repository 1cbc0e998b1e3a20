"""Count right answers, calls and tokens of a simple agent, with kb and with similar programs, each over MCP.

    KB_PEERS=DIR python -m bench.peers.questions [--json FILE] [PEER...]

Each program keeps the same 100 notes: the facts in facts.toml, among turns of conversations. The same loop asks each
one 30 questions: it searches for the question, then for its keywords, then for the longest keywords one by one, until
an answer contains the right words. It knows nothing of the notes, and reads answers as text. Tokens are o200k_base.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.collection import collection
from bench.peers import basic_memory, kb, mcp_memory_service, server_memory
from bench.peers.__main__ import parse
from bench.peers.embeddings import embeddings_served
from bench.tokens import count
from kb.index.words.function_words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

PEERS: Final[dict[str, Any]] = {
    "kb": kb,
    "basic-memory": basic_memory,
    "mcp-memory-service": mcp_memory_service,
    "server-memory": server_memory,
}
FACTS: Final = Path(__file__).with_name("facts.toml")
NOTES: Final = 100
SEED: Final = 2026
SHORTEST: Final = 60
"""Minimum length of a turn that is a note, in characters."""

WORD: Final = re.compile(r"[\w'-]+")
NAME_WORDS: Final = 6
SINGLE_WORDS: Final = 3
"""Number of keywords to search one by one."""

TOP: Final = 10


@dataclass(frozen=True, slots=True)
class Fact:
    """A note with a question, and the words that its answer contains."""

    note: str
    question: str
    answer: str


@dataclass(slots=True)
class Tally:
    """The figures of a program: right answers, calls, and tokens of the answers."""

    right: int = 0
    calls: int = 0
    tokens: int = 0


def facts() -> list[Fact]:
    return [Fact(**fact) for fact in tomllib.loads(FACTS.read_text())["fact"]]


def notes() -> dict[str, str]:
    """Return the notes by name, in a random order that is always the same; a name is a note's first words."""
    chance = random.Random(SEED)
    known = [fact.note for fact in facts()]
    turns = [turn["text"] for turn in collection("locomo_turns").documents.values() if len(turn["text"]) >= SHORTEST]
    texts = [*known, *chance.sample(turns, NOTES - len(known))]
    chance.shuffle(texts)
    names = (" ".join(WORD.findall(text)[:NAME_WORDS]) for text in texts)
    return {f"{name} {number}": text for number, (name, text) in enumerate(zip(names, texts, strict=True))}


def queries(question: str) -> Iterator[str]:
    """Yield the question, its keywords, and the longest of them."""
    yield question
    keywords = [word for word in WORD.findall(question) if word.lower() not in STOP_WORDS]
    yield " ".join(keywords)
    yield from sorted(keywords, key=len, reverse=True)[:SINGLE_WORDS]


async def measure(peer: Any, environment: Path, embeddings: str) -> Tally:  # noqa: ANN401 - a module
    """Let a program keep the notes, and ask it every question."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        async with peer.connected(Path(folder), environment, embeddings) as agent:
            await peer.add(agent, notes())
            for fact in facts():
                for query in dict.fromkeys(queries(fact.question)):
                    answer = await peer.search(agent, query, TOP)
                    tally.calls += 1
                    tally.tokens += count(answer)
                    if fact.answer in answer:
                        tally.right += 1
                        break
    return tally


def main() -> int:
    """0 if every program that was asked for could be measured."""
    arguments = parse("Count right answers, calls and tokens of a simple agent.")
    installed = Path(os.environ.get("KB_PEERS", "peers"))
    missing, found = 0, {}
    print(f"{len(facts())} questions about {NOTES} notes{'':14}{'right':>8}{'calls':>8}{'tokens':>10}", flush=True)
    with embeddings_served() as embeddings:
        for name in arguments.peers or PEERS:
            if name != "kb" and not (installed / name).exists():
                print(f"  {name:40}not installed in {installed}")
                missing += 1
                continue
            tally = asyncio.run(measure(PEERS[name], installed / name, embeddings))
            found[name] = {"Right answers": tally.right, "Calls": tally.calls, "Answer tokens": tally.tokens}
            print(f"  {name:40}{tally.right:8}{tally.calls:8}{tally.tokens:10}", flush=True)
    if arguments.json:
        arguments.json.save(found)
    return int(bool(missing and arguments.peers))


if __name__ == "__main__":
    sys.exit(main())
