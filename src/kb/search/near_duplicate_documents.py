"""Documents with nearly the same text: vectors find candidates, and shared runs of words decide."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from kb.search.copied_passages import ALIKE, WORD, shingles
from kb.store.protocol import Transaction
from kb.store.row_mapping import cursor_after
from kb.store.rows import Document, Filter

SHARED: Final = 0.4
"""The least share of three-word runs that near duplicates have in common.

It recognizes 92% of 300 texts with three in ten sentences removed, and 99% with a tenth of the words replaced.
The most alike two of 4,000 abstracts about related subjects share 12%.
"""

PROBES: Final = 2
"""The number of passages of a document whose neighbours are candidates: the first and the last."""

NEIGHBOURS: Final = 8
BEGINNING: Final = 32
"""The number of passages of a document that are compared."""

MOST_TOGETHER: Final = 50
"""The maximum number of documents of a group, each compared with every other one."""

PAGE: Final = 50
SECONDS: Final = 1.0
"""The time after which a page of results ends, even if it is empty."""


@dataclass(slots=True)
class NearGroup:
    """Near duplicates, and the least share that two of them have in common."""

    documents: list[Document]
    shared: float


@dataclass(slots=True)
class Scan:
    """A page of near duplicates, the number of documents compared with all others, and the cursor of the next page."""

    groups: list[NearGroup]
    compared: int
    cursor: str | None


@dataclass(slots=True)
class _Texts:
    """The runs of words of documents, read once."""

    tx: Transaction
    runs: dict[int, frozenset[int]] = field(default_factory=dict)

    def shared(self, one: int, other: int) -> float:
        a, b = self.of(one), self.of(other)
        both = len(a & b)
        return both / max(len(a) + len(b) - both, 1)

    def of(self, document_id: int) -> frozenset[int]:
        if document_id not in self.runs:
            text = "".join(chunk.text for chunk in self.tx.documents.chunks(document_id, limit=BEGINNING))
            self.runs[document_id] = shingles(WORD.findall(text.lower()))
        return self.runs[document_id]


def scan(tx: Transaction, cursor: str | None, limit: int, *, dismissed: bool = False, seconds: float = SECONDS) -> Scan:
    """Compare documents with all older ones, most recently changed first, until `limit` groups are found or time is up.

    Return the groups that a person dismissed, or all others.
    """
    ends = time.monotonic() + seconds
    texts, compared = _Texts(tx), 0
    shares: dict[tuple[int, int], float] = {}
    while True:
        page = tx.documents.page(Filter(), sort="recent", limit=PAGE, cursor=cursor)
        shares |= _near(tx, page, texts)
        compared += len(page)
        if len(page) < PAGE:
            return Scan(_chosen(tx, _groups(texts, shares), dismissed), compared, None)
        cursor = cursor_after(page[-1])
        if len(shares) >= limit or time.monotonic() > ends:
            return Scan(_chosen(tx, _groups(texts, shares), dismissed), compared, cursor)


def _near(tx: Transaction, page: Sequence[Document], texts: _Texts) -> dict[tuple[int, int], float]:
    """Return the pairs of these documents with older ones that are near duplicates, with their shares."""
    candidates = _candidates(tx, [document.id for document in page])
    successors = tx.documents.successors({document_id for pair in candidates for document_id in pair})
    documents = {document.id: document for document in page}
    near = dict[tuple[int, int], float]()
    for older, newer in sorted(candidates):
        other = tx.documents.get(older)
        if other is None or other.content_hash == documents[newer].content_hash:
            continue
        if newer in successors.get(older, ()) or any(map(tx.documents.part_of, (older, newer))):
            continue
        if (share := texts.shared(older, newer)) >= SHARED:
            near[older, newer] = share
    return near


def _candidates(tx: Transaction, document_ids: Sequence[int]) -> set[tuple[int, int]]:
    """Return pairs of an older document and one of these with passages that are near in meaning."""
    selection = tx.index.select(Filter())
    probes = _probes(tx, document_ids)
    ids = np.array(sorted(probes), np.int64)
    pairs = set[tuple[int, int]]()
    for chunk_id, vector in zip(ids.tolist(), selection.vectors(ids), strict=True):
        if vector.any():
            found = selection.nearest(vector, NEIGHBOURS)
            others = tx.index.documents_of(found.ids[found.scores >= ALIKE])
            pairs |= {(other, probes[chunk_id]) for other in others if other < probes[chunk_id]}
    return pairs


def _probes(tx: Transaction, document_ids: Sequence[int]) -> dict[int, int]:
    """Return passages spread over each document, with the document of each."""
    passages = dict[int, list[int]]()
    for document_id, chunk_id in tx.documents.chunk_ids(document_ids, BEGINNING):
        passages.setdefault(document_id, []).append(chunk_id)
    return {
        chunk_ids[round(place)]: document_id
        for document_id, chunk_ids in passages.items()
        for place in np.linspace(0, len(chunk_ids) - 1, PROBES)
    }


def _groups(texts: _Texts, shares: dict[tuple[int, int], float]) -> list[NearGroup]:
    """Return groups in which every two documents are near duplicates, the most alike first.

    A document may be in several groups: if A and B are near duplicates, and B and C, A and C may differ.
    """

    def fits(document_id: int, group: Sequence[int]) -> bool:
        return len(group) < MOST_TOGETHER and all(share(document_id, other) >= SHARED for other in group)

    def share(one: int, other: int) -> float:
        pair = min(one, other), max(one, other)
        if pair not in shares:
            shares[pair] = texts.shared(*pair)
        return shares[pair]

    groups, of = list[list[int]](), defaultdict[int, list[list[int]]](list)
    for older, newer in sorted(shares):
        if any(newer in group for group in of[older]):
            continue
        for one, other in ((older, newer), (newer, older)):
            if group := next((group for group in of[one] if fits(other, group)), None):
                group.append(other)
                of[other].append(group)
                break
        else:
            groups.append(group := [older, newer])
            of[older].append(group)
            of[newer].append(group)
    near = [_group(texts.tx, sorted(ids), min(share(*pair) for pair in combinations(ids, 2))) for ids in groups]
    return sorted(near, key=lambda group: (-group.shared, -group.documents[-1].id))


def _chosen(tx: Transaction, groups: Sequence[NearGroup], dismissed: bool) -> list[NearGroup]:
    known = tx.dismissals.all()
    return [group for group in groups if (pairs_of(group.documents) <= known) == dismissed]


def pairs_of(documents: Sequence[Document]) -> set[tuple[str, str]]:
    """Return the contents of every two documents, the lower hash first."""
    return set(combinations(sorted(document.content_hash for document in documents), 2))


def _group(tx: Transaction, ids: Sequence[int], shared: float) -> NearGroup:
    return NearGroup([document for each in ids if (document := tx.documents.get(each))], shared)
