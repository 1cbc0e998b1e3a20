"""Send questions to an engine, measure the results of each mode, and draw a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from kb_cli.evaluation.measures import RECALL_DEPTH, Mean, Measures, mean

if TYPE_CHECKING:
    from kb.client.client import EngineClient
    from kb_cli.evaluation.questions import Question

    Run = Mapping[str, Sequence[Mapping[str, Any]]]

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
