"""kb eval: run questions with known answers, and measure the ranks of their documents."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from statistics import fmean
from typing import Any, Final

from kb.client.client import EngineClient
from kb_cli.runtime.exit_codes import UsageError

KEYS: Final = {"question", "document", "documents", "passage", "tags"}
FORM: Final = "each entry has a 'question' and a 'document' (or 'documents'), and may have a 'passage' and 'tags'"


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Args:
        id: its identifier.
        text: the query.
        wanted: the grades of the relevant documents, each named by its id, path, file name or title.
        passage: words in the passage that answers it.
        tags: the tags that the documents must have.
    """

    id: str
    text: str
    wanted: dict[str | int, int]
    passage: str | None = None
    tags: tuple[str, ...] = ()


def read_questions(path: Path) -> list[Question]:
    try:
        questions = _read_beir(path) if path.is_dir() else _read_yaml(path)
    except (OSError, UnicodeDecodeError, LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not questions:
        raise UsageError(f"{path} contains no question with a document.")
    return questions


def read_documents(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the title and the text of each document of a folder in BEIR format."""
    try:
        records = _records(folder / "corpus.jsonl")
        texts = {each["_id"]: (each.get("title") or "", each["text"]) for each in records if each["text"].strip()}
    except (OSError, UnicodeDecodeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{folder}/corpus.jsonl cannot be read: {error}") from error
    if not texts:
        raise UsageError(f"{folder}/corpus.jsonl contains no documents.")
    return texts


def _records(path: Path) -> list[dict[str, Any]]:
    """Return the values of lines of JSON, in whose strings U+2028 may stand as it is."""
    return [json.loads(line) for line in path.read_text("utf-8-sig").split("\n") if line.strip()]


def _read_yaml(path: Path) -> list[Question]:
    import yaml

    try:
        entries = yaml.safe_load(path.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(entries, list):
        raise UsageError(f"{path} is not a YAML list: {FORM}.")
    return [_question(path, number, entry) for number, entry in enumerate(entries, 1)]


def _question(path: Path, number: int, entry: Any) -> Question:  # noqa: ANN401 - any YAML value
    if not isinstance(entry, dict) or not entry.keys() <= KEYS or not isinstance(entry.get("question"), str):
        raise UsageError(f"{path}, entry {number}: {FORM}.")
    listed = entry.get("documents", entry.get("document"))
    documents: list[Any] = listed if isinstance(listed, list) else [listed]
    tags = entry.get("tags") or []
    passage = entry.get("passage")
    if (
        not documents
        or not all(isinstance(document, str | int) for document in documents)
        or not isinstance(tags, list)
    ):
        raise UsageError(f"{path}, entry {number}: {FORM}.")
    words = None if passage is None else str(passage)
    return Question(str(number), entry["question"], dict.fromkeys(documents, 1), words, tuple(map(str, tags)))


def _read_beir(folder: Path) -> list[Question]:
    judgements = next((path for path in (folder / "qrels.tsv", folder / "qrels" / "test.tsv") if path.exists()), None)
    if judgements is None:
        raise UsageError(f"{folder} has no qrels.tsv and no qrels/test.tsv.")
    grades: dict[str, dict[str | int, int]] = {}
    for line in judgements.read_text("utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        grades.setdefault(query, {})[document] = int(grade)
    texts = {record["_id"]: record["text"] for record in _records(folder / "queries.jsonl")}
    return [Question(query, texts[query], grades) for query, grades in grades.items() if query in texts]


NDCG_DEPTH: Final = 10
RECALL_DEPTH: Final = 100
RESAMPLES: Final = 1000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one ranking.

    Args:
        ndcg: nDCG@10.
        recall: recall@100.
        mrr: MRR@10.
    """

    ndcg: float
    recall: float
    mrr: float

    @classmethod
    def of(cls, ranked: Sequence[int], relevant_grades: Sequence[int]) -> Measures:
        """Return the measures of a ranking.

        Args:
            ranked: the grade of each result, best result first.
            relevant_grades: the grades of all relevant documents.
        """
        ideal = _gain(sorted(relevant_grades, reverse=True))
        first = next((place for place, grade in enumerate(ranked[:NDCG_DEPTH], 1) if grade > 0), None)
        relevant = sum(grade > 0 for grade in relevant_grades)
        return cls(
            _gain(ranked) / ideal if ideal else 0.0,
            sum(grade > 0 for grade in ranked[:RECALL_DEPTH]) / relevant if relevant else 0.0,
            1 / first if first else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its confidence interval."""

    value: float
    low: float
    high: float


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of values and its 95% bootstrap interval; the same values always give the same interval."""
    draws = random.Random(0)  # noqa: S311 - not for secrets
    means = sorted(fmean(draws.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = round(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Mean(fmean(values), means[cut], means[-cut - 1])


def _gain(grades: Sequence[int]) -> float:
    return sum(max(grade, 0) / math.log2(place + 1) for place, grade in enumerate(grades[:NDCG_DEPTH], 1))


Run = Mapping[str, Sequence[Mapping[str, Any]]]
"""The outcomes of the questions for each mode."""

MODES: Final[dict[str, dict[str, bool]]] = {"both": {}, "words": {"fts_only": True}, "meaning": {"vec_only": True}}
PASSAGES: Final = 5
"""The answering passage must be among this many results."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a question.

    Args:
        question: its id.
        text: the query.
        measures: the measures of the ranking.
        place: the rank of the first relevant document, from 1; None if not found.
        has_passage: whether the passage was among the first results; None if the question has no passage.
    """

    question: str
    text: str
    measures: Measures
    place: int | None
    has_passage: bool | None


async def ask(client: EngineClient, question: Question, mode: str) -> Outcome:
    """Run a question and return its outcome; a document ranks by its best passage."""
    reply = await client.search(query=question.text, top=RECALL_DEPTH, tags=list(question.tags), **MODES[mode])
    results = reply["results"]
    grades = ranked_grades(results, question.wanted)
    place = next((place for place, grade in enumerate(grades, 1) if grade > 0), None)
    has_passage = None
    if question.passage:
        passage = " ".join(question.passage.split())
        has_passage = any(passage in " ".join(result["text"].split()) for result in results[:PASSAGES])
    measures = Measures.of(grades, list(question.wanted.values()))
    return Outcome(question.id, question.text, measures, place, has_passage)


def ranked_grades(results: Iterable[dict[str, Any]], remaining: Mapping[str | int, int]) -> list[int]:
    """Return the grade of each ranked document; if two documents share a name, only the first counts."""
    left, grades = dict(remaining), dict[int, int]()
    for result in results:
        if result["document_id"] not in grades:
            name = next((name for name in names(result) if name in left), None)
            grades[result["document_id"]] = left.pop(name) if name is not None else 0
    return list(grades.values())


def names(result: dict[str, Any]) -> tuple[str | int, ...]:
    """Return the names of a document: its id, path, file name and title."""
    path = result["source_path"] or ""
    return result["document_id"], path, PurePath(path).name, result["title"]


WIDTH, ROW, LEFT, SPAN = 640, 28, 130, 440
BAR: Final = (
    '<text x="{name_x}" y="{text_y}" text-anchor="end">{name}</text>'
    '<rect x="{left}" y="{y}" width="{width:.1f}" height="16" rx="3" fill="{colour}"/>'
    '<path d="M{low:.1f} {middle}H{high:.1f}" stroke="#111" stroke-width="1.5"/>'
    '<text x="{number_x:.1f}" y="{text_y}">{value:.3f}</text>'
)


def drawn(run: Run, before: Run | None) -> str:
    """Return an SVG chart of nDCG@10 for each mode with its interval, next to the previous run."""
    bars = []
    for mode, outcomes in run.items():
        bars.append((mode, "#2b6cb0", mean([outcome["measures"]["ndcg"] for outcome in outcomes])))
        if earlier := (before or {}).get(mode):
            bars.append((f"{mode}, before", "#a0aec0", mean([outcome["measures"]["ndcg"] for outcome in earlier])))
    lines = "\n".join(_bar(row, *bar) for row, bar in enumerate(bars))
    height = ROW * len(bars) + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="13" role="img">\n'
        f"<title>nDCG@10 with 95% intervals</title>\n{lines}\n</svg>\n"
    )


def _bar(row: int, name: str, colour: str, shown: Mean) -> str:
    y = 6 + row * ROW
    return BAR.format(
        name=name,
        name_x=LEFT - 10,
        text_y=y + 13,
        left=LEFT,
        y=y,
        width=max(shown.value * SPAN, 1),
        colour=colour,
        low=LEFT + shown.low * SPAN,
        high=LEFT + shown.high * SPAN,
        middle=y + 8,
        number_x=LEFT + max(shown.value, shown.high) * SPAN + 8,
        value=shown.value,
    )
