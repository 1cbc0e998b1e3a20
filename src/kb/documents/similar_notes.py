"""Notes that say nearly the same as a new one."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kb.api.fields import NOTE
from kb.api.note_models import Alike
from kb.documents.new_facts import is_part, says_more
from kb.embed.artifact import WEIGHTS
from kb.embed.models.fetch import SOURCES
from kb.embed.protocol import Likeness
from kb.markdown.front_matter import fact_of
from kb.store.protocol import Index, Transaction
from kb.store.rows import Chunk, Content, Filter, Hit, NewChunk

MOST_ALIKE: Final = 3
LOOKED_AT: Final = 10
"""How many passages are compared from each of the searches by words and by vectors."""

MOST_WORDS: Final = 64
"""How many words of a note the search by words looks for."""

COMPARED: Final = 2000
"""How many characters of a new note are compared."""

SHOWN: Final = 120
"""How many characters of an alike note an answer shows."""

NEAR, SHARED = 0.82, 0.25
"""The least cosine of alike notes by the default model, and their least share of common words among the words of both.

27 of 32 pairs of notes about one fact, in other words or changed, are above both, and one of 33 pairs about two facts;
see bench/alike.py, also for pairs that did not choose these numbers.
"""

UNMEASURED: Final = Likeness()

MOSTLY_SHARED: Final = 0.65
"""The least share of common words of alike notes without vectors: in 8 of the 32 pairs, in none of the 33."""


def find_alike(
    tx: Transaction,
    content: Content,
    *,
    likeness: Likeness | None,
    besides: Collection[int | None] = (),
    among: Sequence[int] | None = None,
) -> tuple[list[Alike], Alike | None]:
    """Return the notes nearly as a new one, or with its text, the nearest first, and the nearest one of all.

    Without vectors, or if nobody has measured the model's cosines, kb compares only words.

    Args:
        content: the new note.
        likeness: the scale of its model's cosines; None if it has no vectors yet.
        besides: left out, like notes that others replace.
        among: compare only these notes, without a search.
    """
    index = tx.index
    whole = _fact(content.chunks)
    text = whole[:COMPARED]
    scale = likeness or UNMEASURED
    is_measured = tx.space.digest == SOURCES[WEIGHTS] or scale != UNMEASURED
    vector = _mean(content.vectors) if likeness and is_measured and content.space == tx.space else None
    found = _candidates(index, text, vector) if among is None else _passages(tx, among)
    cosines: NDArray[np.floating[Any]] = np.zeros(found.size)
    if vector is not None:
        cosines = scale.of_passages(index.select(Filter()).cosines(vector, found))
    words = set(index.analyzer.indexed(text))
    near = list[tuple[float, float, Hit, bool]]()
    for hit, cosine in zip(index.hits(found.tolist()), cosines.tolist(), strict=True):
        shared = _share(words, set(index.analyzer.indexed(fact_of(hit.text))))
        is_alike = shared >= MOSTLY_SHARED if vector is None else cosine >= NEAR and shared >= SHARED
        if hit.document_id not in besides:
            near.append((cosine, shared, hit, is_alike or is_part(whole, hit.text)))
    near.sort(key=lambda one: (-one[0], -one[1], one[2].chunk_id))
    replaced = tx.documents.successors(list(dict.fromkeys(hit.document_id for _, _, hit, _ in near)))
    named = dict[int, Alike]()
    nearest: Alike | None = None
    for cosine, shared, hit, is_alike in near:
        if hit.document_id not in replaced and (is_alike or nearest is None):
            note = _shown(hit, shared if vector is None else cosine)
            nearest = nearest or note
            if is_alike:
                named.setdefault(hit.document_id, note)
    return list(named.values())[:MOST_ALIKE], nearest


def says_nothing_new(tx: Transaction, content: Content, near: Sequence[Alike]) -> bool:
    """Return whether one of the similar notes has every statement of a new one."""
    text, stems = _fact(content.chunks), tx.index.analyzer.indexed
    known = (_fact(tx.documents.chunks(note.document_id)) for note in near)
    return any(not says_more(text, other, stems) for other in known)


def _fact(chunks: Iterable[NewChunk] | Iterable[Chunk]) -> str:
    return fact_of("".join(chunk.text for chunk in chunks))


def _candidates(index: Index, text: str, vector: NDArray[np.float32] | None) -> NDArray[np.int64]:
    """Return the passages of notes that may be alike, by ascending id."""
    notes = index.select(Filter(doc_type=NOTE))
    found = notes.full_text(list(_words(index, text)), LOOKED_AT).ids
    return np.sort(found) if vector is None else np.union1d(found, notes.nearest(vector, LOOKED_AT).ids)


def _passages(tx: Transaction, notes: Sequence[int]) -> NDArray[np.int64]:
    """Return the first passages of these notes, by ascending id."""
    pairs = tx.documents.chunk_ids(notes, LOOKED_AT)
    return np.sort(np.fromiter((chunk_id for _, chunk_id in pairs), np.int64, len(pairs)))


def _words(index: Index, text: str) -> Iterator[str]:
    words = dict.fromkeys(text[start:end].lower() for start, end, _ in index.analyzer.stems(text))
    yield from list(words)[:MOST_WORDS]


def _share(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    total: NDArray[np.float32] = vectors.sum(axis=0)
    return total / np.float32(max(float(np.linalg.norm(total)), float(np.finfo(np.float32).tiny)))


def _shown(hit: Hit, likeness: float) -> Alike:
    text = " ".join(fact_of(hit.text).split())[:SHOWN]
    share = min(max(likeness, 0.0), 1.0)
    return Alike(document_id=hit.document_id, title=hit.title, text=text, likeness=round(share, 2))
