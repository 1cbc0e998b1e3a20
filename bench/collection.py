"""The test collections in BEIR's form, and collections derived from them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.index.words.function_words import STOP_WORDS
from kb_cli.evaluation import Question

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(os.environ.get("KB_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
NAME = re.compile(r"[A-Z\d]")
"""A word with one of these, unless it begins the query, names something."""

NAMED: Final = 4
"""A query has names if at least one in this number of significant words is a name."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents and queries by id, and which documents answer which query: `judgements[query][document] = grade`."""

    name: str
    documents: dict[str, dict[str, str]]
    queries: dict[str, dict[str, str]]
    judgements: dict[str, dict[str, int]]

    @property
    def questions(self) -> list[Question]:
        """The queries with judgements."""
        return [
            Question(query, text["text"], dict(grades), tags=(text["scope"],) if "scope" in text else ())
            for query, grades in self.judgements.items()
            if (text := self.queries.get(query))
        ]


def collection(name: str) -> Collection:
    """Return a folder of the test data; `NAME-untitled` and such are made of it."""
    if name in COLLECTIONS and (made_by := MADE_BY.get(name.partition("-")[2])):
        return replace(made_by(collection(name.partition("-")[0])), name=name)
    folder = DATA / name
    judgements: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        judgements.setdefault(query, {})[document] = int(grade)
    return Collection(name, _records(folder / "corpus.jsonl"), _records(folder / "queries.jsonl"), judgements)


def untitled(whole: Collection) -> Collection:
    """Return the same documents without titles."""
    documents = {key: document | {"title": ""} for key, document in whole.documents.items()}
    return replace(whole, documents=documents)


def halved(whole: Collection) -> Collection:
    """Return the first halves of the documents, by words."""
    documents = {}
    for key, document in whole.documents.items():
        words = document["text"].split(" ")
        documents[key] = document | {"text": " ".join(words[: -(-len(words) // 2)])}
    return replace(whole, documents=documents)


def named(whole: Collection) -> Collection:
    """Return the queries in which a quarter of the significant words are names, codes or numbers."""
    return replace(whole, queries={key: query for key, query in whole.queries.items() if _has_names(query["text"])})


def unfiled(whole: Collection) -> Collection:
    """Return the same documents, none in the folder of another one, so that they are in no thread."""

    def alone(key: str) -> str:
        return key.replace("/", " ")

    return Collection(
        whole.name,
        {alone(key): document for key, document in whole.documents.items()},
        whole.queries,
        {query: {alone(key): grade for key, grade in grades.items()} for query, grades in whole.judgements.items()},
    )


MADE_BY: Final[dict[str, Callable[[Collection], Collection]]] = {
    "untitled": untitled,
    "halved": halved,
    "named": named,
    "unfiled": unfiled,
}
COLLECTIONS: Final = (
    "scifact",
    "cranfield",
    "locomo_sessions",
    "locomo_turns",
    "locomo_turns-unfiled",
    "scifact-untitled",
    "scifact-halved",
    "scifact-named",
    "cranfield-untitled",
    "cranfield-halved",
    "locomo_sessions-halved",
    "locomo_sessions-named",
    "locomo_turns-named",
)
"""Those that make sense: Cranfield's queries have no capital letters, LoCoMo's documents no titles."""


def _has_names(text: str) -> bool:
    words = text.split()
    telling = [word for word in words if word.lower() not in STOP_WORDS]
    return NAMED * sum(bool(NAME.search(word)) for word in words[1:]) >= len(telling)


def _records(path: Path) -> dict[str, dict[str, str]]:
    records = (json.loads(line) for line in path.read_text().splitlines())
    return {record["_id"]: record for record in records}
