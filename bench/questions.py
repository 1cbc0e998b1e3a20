"""Ask 60 questions about 22 real files, in other words than the files use, and count the right answers.

    python -m bench.questions [--json FILE]

The questions are in tests/e2e/questions.yaml, each with its file and a passage that answers it.
"""

from __future__ import annotations

import argparse
import asyncio

from bench.collection import DATA
from bench.origin import ROOT, Record
from bench.serving import serving
from kb.client.client import EngineClient
from kb_cli.evaluation import PASSAGES, ask, read_questions


async def measure(url: str) -> dict[str, int]:
    """Return the number of questions, and of those with the right file or passage among the first results."""
    files = sorted((DATA / "files").iterdir())
    async with EngineClient(url) as client:
        jobs = []
        for path in files:
            with path.open("rb") as file:
                jobs.append(await client.add_file(path.name, file, source_path=f"/{path.name}", wait=60))
        outcomes = [await ask(client, each, "both") for each in read_questions(ROOT / "tests/e2e/questions.yaml")]
    places = [each.place or len(outcomes) for each in outcomes]
    return {
        "questions": len(outcomes),
        "files": sum(job["status"] == "done" for job in jobs),
        "file first": sum(place == 1 for place in places),
        "file among three": sum(place <= 3 for place in places),
        f"passage among {PASSAGES}": sum(bool(each.has_passage) for each in outcomes),
    }


def main() -> None:
    """Print the counts, and write the JSON if requested."""
    parser = argparse.ArgumentParser(description="Ask questions about real files.")
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    with serving() as url:
        found = asyncio.run(measure(url))
    for name, count in found.items():
        print(f"{name}: {count}")
    if arguments.json:
        arguments.json.save({name: {"count": count} for name, count in found.items()})


if __name__ == "__main__":
    main()
