"""Compare this working tree with another commit: CPU time of each operation, memory, disk, tokens of answers over MCP.

    python -m bench.against REF [--size PASSAGES] [--rounds N] [--folder FOLDER] [--json FILE]
    make bench-against REF=main SIZE=10000 FOLDER=~/kb-against

Each build serves a copy of the database that it filled itself, with the same data; the client is this tree's for both.
Both servers run at once, and take turns in each part of a round, so a busy machine slows both. A ratio below 1 means
that this tree takes less. The model is in fp32, unless KB_PRECISION names another precision. The folder (default:
build/against) keeps the other build and the databases.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastmcp import Client as Agent

from bench.builds import Build, other_build, this_build
from bench.corpus import load_sentences, queries
from bench.origin import ROOT, origin
from bench.scale import MEMORY, Client, settle
from bench.serving import Server, launched, open_model
from bench.tokens import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZE, ROUNDS, STARTS = 100_000, 5, 3
QUERIES, WRITES, LISTS = 100, 20, 50
MODES: Final[dict[str, dict[str, Any]]] = {
    "keyword": {"fts_only": True},
    "semantic": {"vec_only": True},
    "hybrid": {},
    "grouped": {"group_by": "document"},
}


@dataclass
class Measured:
    """A build's server, the figures of each round, and the texts that the searches of each mode found."""

    server: Server
    client: Client
    figures: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, list[set[str]]] = field(default_factory=dict)

    def note(self, name: str, figure: float) -> None:
        """Add the figure of a round."""
        self.figures.setdefault(name, []).append(figure)

    def cpu(self, name: str, count: int, act: Callable[[], object]) -> None:
        """Note the milliseconds of CPU time of one of so many operations."""
        begun = self.server.cpu()
        act()
        self.note(f"{name}, CPU ms", 1000 * (self.server.cpu() - begun) / count)

    def search(self, mode: str, texts: Sequence[str]) -> None:
        """Search for each text in a mode."""
        found = [self.client.search(text, top=10, **MODES[mode])["results"] for text in texts]
        self.answers[mode] = [_texts(results) for results in found]

    def ask(self, texts: Sequence[str]) -> None:
        """Search for each text as an agent, and note the tokens of an answer."""

        async def asked() -> int:
            async with Agent(f"{self.server.url}/mcp") as agent:
                answers = [await agent.call_tool("kb_search", {"query": text}) for text in texts]
            return sum(count(answer.content[0].text) for answer in answers)

        self.note("answer over MCP, tokens", asyncio.run(asked()) / len(texts))

    def list(self) -> None:
        """List the first documents several times."""
        for _ in range(LISTS):
            self.client.call("GET", "documents")

    def write(self, texts: Sequence[str]) -> None:
        """Add notes, update and delete them."""
        notes: list[int] = []
        call = self.client.call

        def add() -> None:
            notes.extend(call("POST", "jobs?wait=9", {"text": text})["document_id"] for text in texts)

        def update() -> None:
            for note, text in zip(notes, texts, strict=True):
                call("PATCH", f"notes/{note}", {"text": f"{text} It was changed."})

        def delete() -> None:
            for note in notes:
                call("DELETE", f"documents/{note}")

        for act in (add, update, delete):
            self.cpu(act.__name__, len(texts), act)

    def parts(self, number: int, texts: Sequence[str]) -> list[Callable[[], None]]:
        """Return the parts of a round."""
        searches = [lambda mode=mode: self.cpu(mode, len(texts), lambda: self.search(mode, texts)) for mode in MODES]  # type: ignore[misc]
        return [
            *searches,
            lambda: self.cpu("search over MCP", len(texts), lambda: self.ask(texts)),
            lambda: self.cpu("list", LISTS, self.list),
            lambda: self.write([f"{text} (noted in round {number})" for text in texts[:WRITES]]),
            lambda: self.note("memory, MB", self.server.memory() / MEMORY),
        ]


def _texts(results: Sequence[dict[str, Any]]) -> set[str]:
    """Return the texts of results, or of the results in groups."""
    return {each["text"] for result in results for each in result.get("results", [result])}


def measure(builds: Sequence[Build], size: int, rounds: int, sentences: Path, precision: str) -> list[Measured]:
    """Return the figures of each build."""
    databases = [build.database(size, sentences) for build in builds]
    texts = queries()[:QUERIES]
    with ExitStack() as stack:
        served = [build.served(database, precision) for build, database in zip(builds, databases, strict=True)]
        commands = [stack.enter_context(each) for each in served]
        starts: list[list[float]] = [[] for _ in builds]
        for _ in range(STARTS):
            for cpu, (command, environment) in zip(starts, commands, strict=True):
                with launched(command, **environment) as server:
                    cpu.append(server.cpu())
        servers = [stack.enter_context(launched(command, **environment)) for command, environment in commands]
        found = [Measured(server, Client(server)) for server in servers]
        for build, cpu, database in zip(found, starts, databases, strict=True):
            settle(build.server)
            build.figures = {"start, CPU s": cpu, "disk per passage, bytes": [database.disk() / size]}
            for part in build.parts(0, texts):
                part()  # nothing of the first round counts
            build.figures = {name: each[-STARTS:] for name, each in build.figures.items() if name in KEPT}
        for number in range(1, rounds + 1):
            for parts in zip(*(build.parts(number, texts) for build in found), strict=True):
                for part in parts if number % 2 else reversed(parts):
                    part()
    return found


KEPT: Final = ("start, CPU s", "disk per passage, bytes")


def compared(ours: Measured, other: Measured) -> dict[str, dict[str, float]]:
    """Return for each figure the medians, and the median and the range of the ratios of the rounds."""
    found = {}
    for name, mine in ours.figures.items():
        theirs = other.figures[name]
        ratios = [one / two for one, two in zip(mine, theirs, strict=True)]
        found[name] = {
            "this tree": statistics.median(mine),
            "other": statistics.median(theirs),
            "ratio": statistics.median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
        }
    return found


def shared(ours: Measured, other: Measured) -> dict[str, float]:
    """Return the share of the other's results that this tree also finds, by mode."""
    return {
        mode: statistics.fmean(
            len(one & two) / max(1, len(two)) for one, two in zip(mine, other.answers[mode], strict=True)
        )
        for mode, mine in ours.answers.items()
    }


def table(figures: dict[str, dict[str, float]], names: Sequence[str]) -> str:
    """Return the figures in Markdown."""
    lines = [["", *names, "ratio", "lowest", "highest"], ["---"] * 6]
    lines += [[name, *(f"{each:,.4g}" for each in row.values())] for name, row in figures.items()]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main() -> None:
    """Print the table, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Compare this working tree with another commit.")
    parser.add_argument("reference", metavar="REF")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/against")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder.expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    precision = os.environ.setdefault("KB_PRECISION", "fp32")
    sentences = folder / "sentences.npy"
    if not sentences.exists():
        load_sentences(open_model(folder), sentences)
    builds = this_build(folder), other_build(arguments.reference, folder)
    begun = origin()
    ours, other = measure(builds, arguments.size, arguments.rounds, sentences, precision)
    figures, answers = compared(ours, other), shared(ours, other)
    print(table(figures, [build.commit for build in builds]))
    print("shared results: " + ", ".join(f"{mode} {share:.3f}" for mode, share in answers.items()))
    if arguments.json:
        facts = {"against": builds[1].commit, "passages": arguments.size, "precision": precision}
        arguments.json.write_text(
            json.dumps(begun | facts | {"figures": figures, "shared results": answers}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
