"""Read questions with the documents that answer them: from a YAML file or a folder in BEIR format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
    """Return the questions of a file or folder.

    Raises:
        UsageError: the format is invalid.
    """
    try:
        questions = _read_beir(path) if path.is_dir() else _read_yaml(path)
    except (OSError, UnicodeDecodeError, LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not questions:
        raise UsageError(f"{path} has no question with a document.")
    return questions


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
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    texts = {record["_id"]: record["text"] for record in map(json.loads, lines)}
    return [Question(query, texts[query], grades) for query, grades in grades.items() if query in texts]
