"""Measure the evidence that an agent gets for its tokens, from kb and from similar programs, each over MCP.

    KB_PEERS=DIR python -m bench.peers [--json FILE] [PEER...]

DIR has a virtual environment for each installed peer, under its name: `basic-memory`, `mcp-memory-service`. Each
starts empty, stores the turns of one LoCoMo conversation one by one, and gets the questions about it, with ten
results each. Evidence counts as found if the answer that a model reads contains its beginning. Tokens are o200k_base.
All use kb's model, which needs no network (`KB_MODEL_DIR`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.collection import collection
from bench.origin import Record
from bench.peers import basic_memory, kb, mcp_memory_service
from bench.peers.embeddings import embeddings_served
from bench.tokens import SCOPE, count

if TYPE_CHECKING:
    from collections.abc import Mapping

PEERS: Final[dict[str, Any]] = {
    "kb": kb,
    "basic-memory": basic_memory,
    "mcp-memory-service": mcp_memory_service,
}
TOP: Final = 10

BEGINNING: Final = 60
"""The number of characters of a turn that an answer must contain, without white space."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the beginnings of the turns that answer it."""

    text: str
    evidence: tuple[str, ...]


@dataclass(slots=True)
class Tally:
    """The figures of a peer: questions, evidence found, tokens, and seconds to add and to search."""

    questions: int = 0
    recall: float = 0
    tokens: int = 0
    adding: float = 0
    searching: float = 0

    def figures(self) -> dict[str, float]:
        """Return the columns of the docs."""
        recall, tokens = self.recall / self.questions, self.tokens / self.questions
        per_thousand = recall / tokens * 1000
        return {"Recall of evidence": recall, "Tokens per answer": tokens, "Recall per 1,000 tokens": per_thousand}

    def __str__(self) -> str:
        recall, tokens = self.recall / self.questions, self.tokens / self.questions
        return (
            f"{recall:8.3f}{tokens:10.0f}{recall / tokens * 1000:14.3f}"
            f"{self.adding:10.1f}{self.searching / self.questions * 1000:10.1f}"
        )


def flat(text: str) -> str:
    """Return a text without white space and marks that formats escape."""
    return "".join(character for character in text if character.isalnum())


def questions(documents: Mapping[str, str]) -> list[Question]:
    """The questions about the conversation."""
    turns = collection("locomo_turns")
    return [
        Question(query["text"], tuple(flat(documents[turn])[:BEGINNING] for turn in grades if turn in documents))
        for name, grades in turns.judgements.items()
        if (query := turns.queries.get(name)) and query.get("scope") == SCOPE and grades.keys() & documents.keys()
    ]


async def measure(peer: Any, environment: Path, embeddings: str) -> Tally:  # noqa: ANN401 - a module
    """Let a peer keep the turns, and ask it every question."""
    turns = collection("locomo_turns").documents.items()
    documents = {name: turn["text"] for name, turn in turns if turn.get("scope") == SCOPE and turn["text"].strip()}
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        async with peer.connected(Path(folder), environment, embeddings) as agent:
            begun = time.perf_counter()
            await peer.add(agent, documents)
            tally.adding = time.perf_counter() - begun
            for question in questions(documents):
                begun = time.perf_counter()
                answer = await peer.search(agent, question.text, TOP)
                tally.searching += time.perf_counter() - begun
                said = flat(answer)
                tally.recall += sum(each in said for each in question.evidence) / len(question.evidence)
                tally.tokens += count(answer)
                tally.questions += 1
    return tally


def parse(description: str) -> argparse.Namespace:
    """Return the programs to measure, and the file for the figures."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("peers", metavar="PEER", nargs="*")
    parser.add_argument("--json", type=Record)
    return parser.parse_args()


def main() -> int:
    """0 if every peer that was asked for could be measured."""
    arguments = parse("Measure the evidence that an agent gets for its tokens.")
    installed = Path(os.environ.get("KB_PEERS", "peers"))
    missing, found = 0, {}
    print(f"{'':22}{'recall':>8}{'tokens':>10}{'per 1,000':>14}{'adding, s':>10}{'ms':>10}", flush=True)
    with embeddings_served() as embeddings:
        for name in arguments.peers or PEERS:
            if name != "kb" and not (installed / name).exists():
                print(f"{name:22}not installed in {installed}")
                missing += 1
                continue
            tally = asyncio.run(measure(PEERS[name], installed / name, embeddings))
            found[name] = tally.figures()
            print(f"{name:22}{tally}", flush=True)
    if arguments.json:
        arguments.json.save(found)
    return int(bool(missing and arguments.peers))


if __name__ == "__main__":
    sys.exit(main())
