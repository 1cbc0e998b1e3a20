"""The two legs of a search, and the scores of their candidates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.api.search_models import Explanation
from kb.embed.protocol import Likeness
from kb.index.vectors.scores import EMPTY_SCORES, ScoredChunks
from kb.index.words.emoji import written
from kb.index.words.matches import Occurrences
from kb.index.words.query_word_groups import alternatives
from kb.processor_time import check
from kb.search.contained_words import ContainedWords, contained_words, trust_in_words
from kb.search.copied_passages import Deduplicated, deduplicate
from kb.search.explain import TermScores, explained
from kb.search.fusion import Candidates, Ranking, Scale, best, fuse, measure_scale, or_none, weighed
from kb.search.latest_first import COMPARED, latest_first
from kb.search.literal_match import COMPARED_ALONE, coverage, signed_numbers
from kb.search.literal_match import sought as literals
from kb.search.name_match import BEST, LOOKED_AT, MOST_NAMED, NameMatch, likeness, sought, spelling, with_name
from kb.search.passages import FoundPassage, in_succession
from kb.search.query import Query
from kb.search.weak_results import are_off_subject
from kb.store.protocol import Index, Selection
from kb.store.rows import Hit, Named
from kb.telemetry.instruments import Instruments

WIDER = 8
"""The factor by which a list grows if it contains too few documents."""

MOST_CANDIDATES = 20_000
"""The longest list; documents crowded out of it by the passages of one document are not found."""

IN_CONTEXT = 50
"""The number of best chunks that are ranked together with their neighbours."""

MORE_COMPARED = 10
"""The number of passages beyond the requested ones in which copies are searched for first."""

COPIES_SHOWN = 20
"""The number of documents named as copies of a passage; the rest are only counted."""

OF_SUCCESSORS = 10_000
"""The number of chunks of replacements in which the best chunk of each is searched for.

The number is high because one long note must not hide the others.
"""


Successors = Mapping[int, Sequence[int]]
"""The replacements of documents, nearest first."""

SuccessorsOf = Callable[[Iterable[int]], Successors]


DEFAULT_LIKENESS: Final = Likeness()

NamedBy = Callable[[Sequence[str], int, int], Sequence["Named"]]


class Retriever:
    """Finds the passages that answer a query in one snapshot of the store.

    Args:
        index: the index of the store, in a transaction.
        query: the query.
        vector: the future vector of the query's text, of shape (dimensions,), or None if there is no text.
        instruments: the instruments.
        successors: returns the replacements of documents, nearest first; None if nothing was ever replaced.
        named: returns the documents with some of the given words in their names; None if names are unknown.
        explain: whether passages explain their scores.
        likeness: the scale of the model's cosines.
    """

    def __init__(
        self,
        index: Index,
        query: Query,
        vector: Future[NDArray[np.float32]] | None,
        instruments: Instruments,
        successors: SuccessorsOf | None = None,
        named: NamedBy | None = None,
        *,
        explain: bool = False,
        likeness: Likeness = DEFAULT_LIKENESS,
    ) -> None:
        self._likeness = likeness
        self._index = index
        self._query = query
        self._vector = vector
        self._instruments = instruments
        self._successors_of = successors
        self._named_by = named
        self._explain = explain
        self._known: dict[int, Hit] = {}
        self._counted_in = EMPTY_SCORES.ids
        self._counts: dict[str, Occurrences | None] = {}
        self._contained: ContainedWords | None = None

    def rankings(self, limit: int, top: int = 0) -> Iterator[Ranking]:
        """Yield the `limit` best chunks of each leg, then longer lists while more chunks exist.

        The replacements of the `top` best documents are included. All scores use the scale of the first list.
        """
        scale = None
        while True:
            check()
            yield (ranking := self._ranking(limit, top, scale))
            if ranking.candidates.ids.size < limit or limit >= MOST_CANDIDATES:
                return
            limit, scale = min(limit * WIDER, MOST_CANDIDATES), ranking.candidates.scale

    def _ranking(self, limit: int, top: int, scale: Scale | None) -> Ranking:
        query = self._query
        self._selection.look_up([*query.terms, *(form for unit in query.units for form in unit.forms)])
        name_matches, literal = self._name_matches, self._literal  # computed while the model is running
        candidates = self._candidates(limit, scale)
        successors = self._successors_of(set(self._index.documents_of(candidates.ids))) if self._successors_of else {}
        candidates = self._with_successors(candidates, top, successors) if successors else candidates
        candidates = self._joined(replace(candidates, scale=scale or measure_scale(candidates)), literal)
        if missing := name_matches.keys() - set(self._index.documents_of(candidates.ids)) if name_matches else ():
            candidates = self._joined(candidates, self._first_of(missing))
        self._contained = self._words_in(candidates.ids)
        if scale is None and self._contained and len(self._contained.weights) > 1:  # one word needs no weighing
            matched = self._contained.best_share * len(self._contained.weights)
            candidates = weighed(candidates, matched, self._likeness)
        trust = 1.0 if name_matches else trust_in_words(self._contained)
        fused = fuse(candidates, trust)
        fused = fused.with_typed(trust * self._typed(candidates, fused.scores))
        order = self._rightly_signed(candidates, best(candidates, fused.scores, candidates.ids.size))
        order = self._latest_first(candidates, fused.scores, order)
        if successors:
            documents = self._index.documents_of(candidates.ids[order])
            order = np.array(in_succession(order.tolist(), documents, successors), np.int64)
        return Ranking(candidates, fused, order, limit, successors)

    def _rightly_signed(self, candidates: Candidates, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the order without passages that have the number of a phrase only with another sign, unless all do."""
        patterns = signed_numbers(self._query.where.holding)
        if not patterns or not order.size:
            return order
        texts = self._texts(candidates.ids[order[:COMPARED_ALONE]].tolist())
        are_right = [all(pattern.search(text) for pattern in patterns) for text in texts]
        return order[: len(texts)][are_right] if any(are_right) else order

    def _latest_first(
        self, candidates: Candidates, scores: NDArray[np.float64], order: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the order, but of passages that say the same of a fact the latest first."""
        contained = self._contained
        if contained is None:
            return order

        def vectors_of(places: NDArray[np.int64]) -> NDArray[np.float32]:
            ids = candidates.ids[places]
            return self._selection.vectors(np.sort(ids))[np.argsort(np.argsort(ids))]

        def days_of(places: NDArray[np.int64]) -> list[str]:
            self._hits(candidates.ids[order[:COMPARED]].tolist())  # one read: an answer shows most of them
            hits = self._hits(candidates.ids[places].tolist())
            return [hit.day for hit in hits]

        return latest_first(order, scores, contained.are_there, vectors_of, days_of, self._likeness)

    def _explanations(self, ranking: Ranking, ids: NDArray[np.int64]) -> Mapping[int, Explanation]:
        """Return the explanations of the candidates with these ascending ids."""
        if not self._explain:
            return {}
        by_word = {written(words[0]): self._adds(words, ids) for words in alternatives(self._query.terms)}
        return explained(ranking, ids, by_word)

    def _adds(self, words: Sequence[str], ids: NDArray[np.int64]) -> TermScores:
        """Return the scores of a word in all its forms."""
        scores = self._selection.full_text_scores(words, ids)
        occurrences = [occurrence for occurrence in self._selection.occurrences(words, ids) if occurrence]
        idf = occurrences[0].idf if occurrences and len(words) == 1 else None
        return TermScores(
            scores, idf, np.max([occurrences.counts for occurrences in occurrences], axis=0) if occurrences else None
        )

    def _typed(self, candidates: Candidates, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the query that each candidate contains as typed."""
        query = self._query
        shares = coverage(query.units, query.whole, candidates.ids, scores, self._occurrences, self._texts)
        if self._name_matches:
            order = np.lexsort((candidates.ids, -scores, -shares)).tolist()
            documents = self._index.documents_of(candidates.ids)
            best_of = dict(reversed([(documents[place], place) for place in order]))
            for document_id, match in self._name_matches.items():
                if (place := best_of.get(document_id)) is not None:
                    shares[place] = with_name(float(shares[place]), match)
        return shares

    @cached_property
    def _literal(self) -> NDArray[np.int64]:
        """The chunks that contain the words of literal units."""
        weighted_units = literals(self._query.units, self._occurrences)
        near = [self._selection.best_ids(unit.forms, count) for unit, count in weighted_units]
        return np.concatenate([EMPTY_SCORES.ids, *near])

    @cached_property
    def _name_matches(self) -> Mapping[int, NameMatch]:
        """The documents whose names match the query, with the quality of each match."""
        units = self._query.units
        if self._named_by is None or not units:
            return {}
        tokens_of = self._index.analyzer.indexed
        words, whole = sought(units, tokens_of)
        if not words:
            return {}
        named = self._named_by([*words, whole], MOST_NAMED, LOOKED_AT)
        like = ((document, likeness(document, words, tokens_of)) for document in named)
        matches = {
            document.document_id: NameMatch(alike, spelling(document, units, tokens_of))
            for document, alike in like
            if alike
        }
        ordered = sorted(matches, key=lambda document_id: (-matches[document_id].counted, document_id))
        return {document_id: matches[document_id] for document_id in ordered[:BEST]}

    def _first_of(self, documents: Collection[int]) -> NDArray[np.int64]:
        """Return the best chunk of each document, or its first if no word matches, within the filter."""
        selection = self._among(documents)
        ids = selection.chunk_ids()
        scores = np.nan_to_num(selection.full_text_scores(self._query.terms, ids), nan=-1.0)
        return self._one_each(ids[np.lexsort((ids, -scores))])

    def _occurrences(self, words: Sequence[str], ids: NDArray[np.int64]) -> list[Occurrences | None]:
        """Return the occurrences of words in chunks. Each word is counted once in the same array of chunks."""
        if ids is not self._counted_in:
            self._counted_in, self._counts = ids, {}
        if missing := [word for word in dict.fromkeys(words) if word not in self._counts]:
            self._counts |= zip(missing, self._selection.occurrences(missing, ids), strict=True)
        return [self._counts[word] for word in words]

    def _words_in(self, ids: NDArray[np.int64]) -> ContainedWords | None:
        """Return which words of the query these chunks, by ascending id, contain; None if it has no such words."""
        return contained_words(self._query, ids, self._occurrences, self._selection.full_text_scores)

    def _contained_in(self, ids: NDArray[np.int64]) -> ContainedWords | None:
        """Return the same, counted again only if a chunk is not a candidate of the last ranking."""
        return (self._contained.among(ids) if self._contained else None) or self._words_in(ids)

    def _texts(self, chunk_ids: Sequence[int]) -> list[str]:
        """Return the title, headings and text of each chunk, as written."""
        return [" ".join((passage.title, *passage.heading, passage.text)) for passage in self._index.texts(chunk_ids)]

    def _with_successors(self, candidates: Candidates, top: int, successors: Successors) -> Candidates:
        documents = self._index.documents_of(candidates.ids)
        order = best(candidates, fuse(candidates).scores, candidates.ids.size).tolist()
        highest = islice(dict.fromkeys(documents[place] for place in order), top)
        missing = {successors[document_id][-1] for document_id in highest if document_id in successors}.difference(
            documents
        )
        if not missing or self._query.where.document_id is not None:
            return candidates
        return self._joined(candidates, self._best_of(missing))

    def _best_of(self, documents: Collection[int]) -> NDArray[np.int64]:
        """Return the best chunk of each document that the query finds within its filter."""
        selection = self._among(documents)
        if self._vector is None:
            near = selection.full_text(self._query.terms, OF_SUCCESSORS)
        else:
            near = selection.nearest(self._vector.result(), OF_SUCCESSORS)
        return self._one_each(near.ids[np.argsort(-near.scores, kind="stable")])

    def _among(self, documents: Collection[int]) -> Selection:
        return self._index.select(replace(self._query.where, among=tuple(documents)))

    def _one_each(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first of these chunks for each document."""
        _, first = np.unique(self._index.documents_of(ids), return_index=True)
        return ids[first]

    def _joined(self, candidates: Candidates, ids: NDArray[np.int64]) -> Candidates:
        """Return the candidates plus the chunks with these ids."""
        ids = np.union1d(candidates.ids, ids)
        if ids.size == candidates.ids.size:
            return candidates
        fts, vec = (ScoredChunks(candidates.ids, scores) for scores in (candidates.fts, candidates.vec))
        score_words = partial(self._selection.full_text_scores, self._query.terms)
        vectors = np.full(ids.size, np.nan)
        if self._vector is not None:
            vectors = nan_if_none(filled(vec, ids, partial(self._selection.cosines, self._vector.result())))
        return replace(candidates, ids=ids, fts=filled(fts, ids, score_words), vec=vectors)

    def _candidates(self, limit: int, scale: Scale | None) -> Candidates:
        terms, matches = self._query.terms, EMPTY_SCORES
        if terms:  # while the model is running
            with self._instruments.search("full_text"):
                matches = self._selection.full_text(terms, limit)
        if self._vector is None:
            return Candidates(matches.ids, matches.scores, np.full(matches.ids.size, np.nan))
        vector = self._vector.result()
        with self._instruments.search("vectors"):
            near = with_vectors(self._selection.nearest(vector, limit, exact=self._query.exact))
            ids = np.union1d(near.ids, matches.ids)
            scores = filled(matches, ids, partial(self._selection.full_text_scores, terms))
            cosines = nan_if_none(filled(near, ids, partial(self._selection.cosines, vector)))
            candidates = Candidates(ids, scores, cosines, scale=scale)
            return candidates if np.isnan(scores).all() else self._in_context(candidates, vector)

    def _in_context(self, candidates: Candidates, vector: NDArray[np.float32]) -> Candidates:
        """Return the candidates of both legs with the context of the best, and the neighbours found on the way."""
        seeds = candidates.ids[best(candidates, fuse(candidates).scores, IN_CONTEXT)]
        context = self._selection.in_context(self._query.terms, vector, seeds)
        return self._joined(replace(candidates, context=context), context.ids)

    @cached_property
    def _selection(self) -> Selection:
        return self._index.select(self._query.where)

    def mark_exact(self, passages: Sequence[FoundPassage]) -> None:
        """Mark the passages that contain each word of the query, and the passages of a document with this name."""
        every = [each for passage in passages for each in (passage, *passage.more)]
        ids = np.array(sorted(passage.chunk_id for passage in every), np.int64)
        contained = self._contained_in(ids)
        holders = set(ids[contained.are_there.all(axis=0)].tolist()) if contained else set()
        named = {document_id for document_id, match in self._name_matches.items() if match.is_whole}
        for passage in every:
            has_words = passage.chunk_id in holders if contained else passage.fts_score is not None
            passage.exact = has_words or passage.document_id in named
        for passage in passages:
            passage.exact |= any(other.exact for other in passage.more)

    @property
    def lacks_rarest(self) -> bool:
        """Whether no candidate contains the rarest telling word of the query, which may be in no document."""
        contained = self._contained
        return contained is not None and not contained.are_there[contained.weights.argmax()].any()

    def is_weak(self, passages: Sequence[FoundPassage]) -> bool:
        """Whether the subject of the query is probably not in kb."""
        if not passages or any(self._name_matches.get(passage.document_id) for passage in passages):
            return False
        contained = self._contained_in(np.array(sorted(passage.chunk_id for passage in passages), np.int64))
        return contained is not None and are_off_subject(self._query, passages, contained, self._likeness)

    def without_copies(self, ranking: Ranking, order: Sequence[int], top: int) -> Deduplicated:
        """Return the `top` best candidates, given best first, without copies of a better candidate in another document.

        All candidates are compared only if those near the top contain a copy.
        """
        documents = self._documents_at(ranking, order)
        first = Deduplicated([], {})
        for compared in (min(top + MORE_COMPARED, len(order)), len(order)):
            first = deduplicate(ranking, order[:compared], top, self._selection.vectors, documents, self._plain_texts)
            if not first.copies:
                break
        return first

    def copies_of(self, ranking: Ranking, place: int, copies: Sequence[int]) -> tuple[list[int], int]:
        """Return one copy per document that repeats a candidate, up to `COPIES_SHOWN`, and the number of documents."""
        documents = self._documents_at(ranking, [place, *copies])
        first = dict(reversed([*zip(documents, (place, *copies), strict=True)]))
        first.pop(documents[0])
        return sorted(first.values(), key=copies.index)[:COPIES_SHOWN], len(first)

    def _documents_at(self, ranking: Ranking, places: Sequence[int]) -> list[int]:
        return self._index.documents_of(ranking.candidates.ids[np.array(places, np.int64)])

    def _plain_texts(self, chunk_ids: Sequence[int]) -> list[str]:
        return [passage.text for passage in self._index.texts(chunk_ids)]

    def _hits(self, chunk_ids: Sequence[int]) -> list[Hit]:
        """Return the stored rows of chunks, in the given order; each row is read once."""
        missing = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id not in self._known]
        self._known |= {hit.chunk_id: hit for hit in self._index.hits(missing)}
        return [self._known[chunk_id] for chunk_id in chunk_ids]

    def documents(self, ranking: Ranking) -> list[int]:
        with self._instruments.search("fetch"):
            return self._index.documents_of(ranking.candidates.ids[ranking.order])

    def passages(self, ranking: Ranking, places: Sequence[int]) -> list[FoundPassage]:
        """Return the candidates as passages with their stored fields, in the given order."""
        candidates, fused = ranking.candidates, ranking.fused
        columns = (candidates.ids, fused.scores, candidates.fts, candidates.vec, fused.lent)
        ids, *scores = (column[np.array(places, np.int64)].tolist() for column in columns)
        explanations = self._explanations(ranking, np.unique(ids))
        with self._instruments.search("fetch"):
            hits = self._hits(ids)
        return [
            FoundPassage.of(
                hit,
                score=score,
                fts_score=or_none(words),
                vec_score=or_none(meaning),
                context_score=or_none(lent),
                successors=ranking.successors.get(hit.document_id, ()),
                explanation=explanations.get(hit.chunk_id),
            )
            for hit, score, words, meaning, lent in zip(hits, *scores, strict=True)
        ]


def with_vectors(near: ScoredChunks) -> ScoredChunks:
    """Return the chunks that have a vector; the cosine of one whose vector is still to be made is 0."""
    made = near.scores != 0
    return near if made.all() else ScoredChunks(near.ids[made], near.scores[made])


def nan_if_none(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines with NaN for chunks without a vector."""
    return np.where(cosines == 0, np.nan, cosines)


def filled(
    scored_chunks: ScoredChunks, ids: NDArray[np.int64], score: Callable[[NDArray[np.int64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return the scores of chunks; `score` computes the missing ones."""
    scores = scored_chunks.scores_for(ids)
    missing = np.isnan(scores)
    scores[missing] = score(ids[missing])
    return scores
