"""Ranking: what to ask of the two legs, and how to make one list of their answers.

Pure functions, so that the same request over the same data always has the same answer (requirement S-6). The
fusion is the average of z-scores, both legs' exact scores filled in for every candidate; measured against
reciprocal rank fusion in docs/adr/0003.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kb.vectors.scored import Scored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from kb.store.protocol import Index
    from kb.store.rows import Filter, Hit

CANDIDATES = 100
"""How many chunks each leg offers."""

ALPHA = 0.5
"""The vectors' share of the score; anything between 0.4 and 0.6 does about as well."""

MAX_TERMS = 64
"""How many different words of a query the full-text leg looks up."""

# Words that stand in most English texts: they cost a search most of its time and tell documents apart least.
ENGLISH = """
    a about above after again against all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    him his how i if in into is it its itself just me more most my no nor not now of off on once only or other our
    ours out over own same she should so some such than that the their theirs them then there these they this those
    through to too under until up very was we were what when where which while who whom why will with would you your
    yours
"""
STOP_WORDS = frozenset(ENGLISH.split())

NOTHING = Scored(np.empty(0, np.int64), np.empty(0))


PASSAGES = 3
"""How many passages of a document come back when grouped by document."""

WIDER = 8
"""How much longer a list is asked for when one had too few documents in it."""


@dataclass(frozen=True, slots=True)
class Result:
    """A chunk that was found, its scores, and the next best ones of its document when grouped."""

    hit: Hit
    score: float
    fts_score: float | None
    vec_score: float | None
    more: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of the two legs' best chunks, by ascending id, each with both scores; higher is better.

    A score is NaN where the leg did not run, and in `fts` also where no word of the query matched.
    """

    ids: NDArray[np.int64]
    fts: NDArray[np.float64]
    vec: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Legs:
    """What to look for. `match` is the full-text question, `embed` makes the query's vector; either may be missing."""

    match: str | None
    embed: Callable[[], NDArray[np.float32]] | None
    where: Filter


def search(index: Index, legs: Legs, top: int, pool: Executor, *, grouped: bool = False) -> list[Result]:
    """The `top` best chunks; when `grouped`, the `top` best documents, each by its best chunk."""
    if grouped:
        return grouped_by_document(index, legs, top, pool)
    found = candidates(index, legs, max(CANDIDATES, top), pool)
    return results(index, found, top)


def grouped_by_document(index: Index, legs: Legs, top: int, pool: Executor) -> list[Result]:
    """The `top` best documents. A long one may fill every place of a list: then a longer list is asked for."""
    limit = max(CANDIDATES, top) * PASSAGES
    while True:
        found = candidates(index, legs, limit, pool)
        documents = by_document(results(index, found, found.ids.size))
        if len(documents) >= top or found.ids.size < limit:
            return documents[:top]
        limit *= WIDER


def results(index: Index, found: Candidates, top: int) -> list[Result]:
    """The `top` best candidates, as they stand in their documents."""
    scores = fuse(found)
    order = best(found, scores, top)
    hits = index.hits(found.ids[order].tolist())
    columns = zip(scores[order].tolist(), found.fts[order].tolist(), found.vec[order].tolist(), strict=True)
    return [Result(hit, score, _known(fts), _known(vec)) for hit, (score, fts, vec) in zip(hits, columns, strict=True)]


def candidates(index: Index, legs: Legs, limit: int, pool: Executor) -> Candidates:
    """The `limit` best chunks of each leg, and for each of them the other leg's score.

    The full-text leg runs in the pool while the model embeds the query here; neither needs the interpreter much.
    """
    matching = pool.submit(index.matches, legs.match, legs.where) if legs.match else None
    try:
        vector = legs.embed() if legs.embed else None
    finally:
        # Also when embedding failed: the index must not be in use when its transaction ends.
        matches = matching.result() if matching else NOTHING
    near = NOTHING if vector is None else index.nearest(vector, legs.where, limit)
    ids = np.union1d(near.ids, matches.best(limit).ids)
    vec = np.full(ids.size, np.nan) if vector is None else index.cosines(vector, ids)
    return Candidates(ids, matches.of(ids), vec)


def by_document(results: Sequence[Result]) -> list[Result]:
    """One result a document, in the order of their best ones, with the next best in `more`."""
    groups: dict[int, list[Result]] = {}
    for result in results:
        groups.setdefault(result.hit.document_id, []).append(result)
    return [replace(first, more=tuple(rest[: PASSAGES - 1])) for first, *rest in groups.values()]


def match_expression(query: str) -> str | None:
    """The full-text question for a query: any of its telling words; None if it has no word.

    Each word is quoted, so no query is a syntax error.
    """
    return " OR ".join(f'"{word}"' for word in telling_words(query)[:MAX_TERMS]) or None


def telling_words(query: str) -> list[str]:
    """The words that a query is looked up by, each once: stop words only when there is nothing else."""
    words = list(dict.fromkeys(words_of(query)))
    return [word for word in words if word not in STOP_WORDS] or words


def words_of(text: str) -> list[str]:
    """The words of a text: letters and digits with their marks, without regard to case.

    What FTS5's unicode61 makes of the marks it does by itself: it drops some, and parts words at others.
    """
    characters = unicodedata.normalize("NFC", text).lower()
    return "".join(each if is_of_word(each) else " " for each in characters).split()


def is_of_word(character: str) -> bool:
    """Whether a character is a letter, a digit or a mark on one."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def fuse(candidates: Candidates) -> NDArray[np.float64]:
    """One score for each candidate, shape (n,), higher is better.

    A leg's missing scores count as its lowest possible ones: no matching word is a BM25 of 0. If only one leg ran,
    its own scores stand.
    """
    if np.isnan(candidates.vec).all():
        return candidates.fts
    if np.isnan(candidates.fts).all():
        return candidates.vec
    return ALPHA * _z(candidates.vec) + (1 - ALPHA) * _z(np.nan_to_num(candidates.fts))


def best(candidates: Candidates, scores: NDArray[np.float64], top: int) -> NDArray[np.int64]:
    """The indexes of the `top` best candidates, best first; ties go to the older chunk."""
    return np.lexsort((candidates.ids, -scores))[:top]


def _z(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    z: NDArray[np.float64] = (scores - scores.mean()) / (scores.std() or 1.0)
    return z


def _known(score: float) -> float | None:
    return None if math.isnan(score) else score
