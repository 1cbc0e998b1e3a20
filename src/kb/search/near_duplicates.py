"""Documents with nearly the same text: vectors find candidates, and shared runs of words decide."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kb.search.duplicates import ALIKE, WORD, shingles
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

PAGE: Final = 50
SECONDS: Final = 1.0
"""The time after which a page of results ends, even if it is empty."""


@dataclass(slots=True)
class NearGroup:
    """Near duplicates, and the least share that the first has in common with another one."""

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
        return len(a & b) / max(len(a | b), 1)

    def of(self, document_id: int) -> frozenset[int]:
        if document_id not in self.runs:
            text = "".join(chunk.text for chunk in self.tx.documents.chunks(document_id, limit=BEGINNING))
            self.runs[document_id] = shingles(WORD.findall(text.lower()))
        return self.runs[document_id]


def scan(tx: Transaction, cursor: str | None, limit: int, seconds: float = SECONDS) -> Scan:
    """Compare documents with all older ones, the last changed first, until `limit` groups are found or time is up."""
    ends = time.monotonic() + seconds
    texts, compared = _Texts(tx), 0
    shares: dict[tuple[int, int], float] = {}
    while True:
        page = tx.documents.page(Filter(), sort="recent", limit=PAGE, cursor=cursor)
        shares |= _near(tx, page, texts)
        compared += len(page)
        if len(page) < PAGE:
            return Scan(_groups(tx, shares), compared, None)
        cursor = cursor_after(page[-1])
        if len(shares) >= limit or time.monotonic() > ends:
            return Scan(_groups(tx, shares), compared, cursor)


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


def _groups(tx: Transaction, shares: dict[tuple[int, int], float]) -> list[NearGroup]:
    """Return the connected near duplicates as groups, the group with the newest document first."""
    leader = dict[int, int]()

    def root(document_id: int) -> int:
        while leader.setdefault(document_id, document_id) != document_id:
            document_id = leader[document_id]
        return document_id

    for older, newer in shares:
        one, other = sorted((root(older), root(newer)))
        leader[other] = one
    members = dict[int, list[int]]()
    for document_id in sorted(leader):
        members.setdefault(root(document_id), []).append(document_id)
    groups = [
        NearGroup(
            [document for each in ids if (document := tx.documents.get(each))],
            min(share for pair, share in shares.items() if pair[0] in ids),
        )
        for ids in members.values()
    ]
    return sorted(groups, key=lambda group: -group.documents[-1].id)
