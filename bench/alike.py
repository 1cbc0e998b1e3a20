"""Measure which notes kb names as alike, and which ones it does not store with `if_new`, on pairs of notes.

    python -m bench.alike

bench/new_facts.tsv has pairs of which the later note says the same or more: those of *chosen by* and *held out* have
led to the rule in kb/documents/new_facts.py, and *judged by* was written afterwards and only judges it.
bench/alike.tsv has pairs about one fact or two: the thresholds in kb/documents/similar_notes.py were chosen by the
first set, and the second one, of other languages and data and with many formulaic notes, only judges them. All first
notes of a set are stored; each later note is then compared with them.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from bench.serving import open_model
from kb.api.note_models import NoteRequest
from kb.blobs.folder import FolderBlobs
from kb.documents.write_new_note import NoteIntake
from kb.ingest import vectors_at_once
from kb.ingest.vectors_at_once import NoteVectors
from kb.store.rows import VectorSpace
from kb.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.embed.protocol import Embedder

    Pair = tuple[str, str, str, str]
    """The set, "same" or "other" for the fact, the stored note and the later one."""

PAIRS: Final = Path(__file__).with_name("alike.tsv")
NEW_FACTS: Final = Path(__file__).with_name("new_facts.tsv")
PATIENT_SECONDS: Final = 60


def pairs() -> list[Pair]:
    """Return all pairs."""
    with PAIRS.open(encoding="utf-8") as file:
        return [(row[0], row[1], row[2], row[3]) for row in list(csv.reader(file, delimiter="\t"))[1:]]


def named(embedder: Embedder, of_set: Sequence[Pair], *, with_vectors: bool) -> list[bool]:
    """Return for each pair whether the later note's answer names the first one."""
    seconds = PATIENT_SECONDS if with_vectors else 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        store = SqliteStore(Path(folder, "kb.db"), VectorSpace.of(embedder.spec))
        with closing(store), patch.object(vectors_at_once, "PATIENCE_SECONDS", seconds):
            intake = NoteIntake(store, FolderBlobs(Path(folder)), NoteVectors(embedder, pool))
            ids = {text: intake.add(NoteRequest(text=text)).document_id for _, _, text, _ in of_set}
            answers = [intake.add(NoteRequest(text=later, if_new=True)) for *_, later in of_set]
            return [
                ids[first] in [note.document_id for note in answer.alike]
                for (_, _, first, _), answer in zip(of_set, answers, strict=True)
            ]


def is_stored(embedder: Embedder, note: str, later: str) -> bool:
    """Return whether kb stores the later note after the first one, with `if_new`."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        store = SqliteStore(Path(folder, "kb.db"), VectorSpace.of(embedder.spec))
        with closing(store), patch.object(vectors_at_once, "PATIENCE_SECONDS", PATIENT_SECONDS):
            intake = NoteIntake(store, FolderBlobs(Path(folder)), NoteVectors(embedder, pool))
            intake.add(NoteRequest(text=note))
            return intake.add(NoteRequest(text=later, if_new=True)).stored


def judge_new_facts(embedder: Embedder) -> None:
    """Print how many notes that say more are stored, how many that say the same are not, and all others."""
    with NEW_FACTS.open(encoding="utf-8") as file:
        rows = [[cell.replace("\\n", "\n") for cell in row] for row in list(csv.reader(file, delimiter="\t"))[1:]]
    for name, group in groupby(rows, itemgetter(0)):
        of_set = list(group)
        stored = [is_stored(embedder, note, later) for *_, note, later in of_set]
        right = Counter(row[1] for row, is_new in zip(of_set, stored, strict=True) if is_new == (row[1] == "more"))
        every = Counter(says for _, says, *_ in of_set)
        print(f"{name}, with if_new: {right['more']} of {every['more']} notes that say more are stored, and")
        print(f"  {right['same']} of {every['same']} that say the same are not")
        for (_, says, note, later), is_new in zip(of_set, stored, strict=True):
            if is_new != (says == "more"):
                print("   ", says, repr(note), repr(later), sep=" | ")


def main() -> int:
    """Print recall and precision of each set."""
    with tempfile.TemporaryDirectory() as folder:
        embedder = open_model(Path(folder))
        judge_new_facts(embedder)
        for name, group in groupby(pairs(), itemgetter(0)):
            of_set = list(group)
            for with_vectors in (True, False):
                found = named(embedder, of_set, with_vectors=with_vectors)
                counts = Counter(fact for (_, fact, *_), is_found in zip(of_set, found, strict=True) if is_found)
                every = Counter(fact for _, fact, *_ in of_set)
                share = counts["same"] / max(counts.total(), 1)
                how = "words and vectors" if with_vectors else "only words"
                print(f"{name}, {how}: {counts['same']} of {every['same']} pairs about one fact, and")
                print(f"  {counts['other']} of {every['other']} about two; precision {share:.2f}")
                if with_vectors:
                    for pair, is_found in zip(of_set, found, strict=True):
                        if is_found != (pair[1] == "same"):
                            print("   ", *pair[1:], sep=" | ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
