"""Whether the subject of a query is probably not in kb. `bench.absent` measures this."""

from collections.abc import Sequence
from typing import Final

from kb.embed.protocol import Likeness
from kb.search.contained_words import ContainedWords
from kb.search.passages import FoundPassage
from kb.search.query import Query
from kb.search.unknown_words import is_identifier

OF_WORDS: Final = 0.5
"""The factor of the words next to the meaning."""

LEAST: Final = 0.62
"""The lowest sum of the best cosine and, by `OF_WORDS`, the best share of words in results about the query's subject.

Chosen on every second question about three LoCoMo conversations, of which at most 3% may be below it, and about two
others that were not in the database.
"""

ENOUGH_WORDS: Final = 0.5
"""Without vectors, such a result contains more than this share of the words, each counted once or by its weight."""


def are_off_subject(
    query: Query, passages: Sequence[FoundPassage], contained: ContainedWords, likeness: Likeness
) -> bool:
    """Whether no passage is similar enough, contains enough of the query's words or one of its identifiers.

    Rare words count more, also words that no document contains.
    """
    identifiers = [form for unit in query.units if is_identifier(unit) for form in unit.forms]
    if any(contained.forms[form].any() for form in identifiers if form in contained.forms):
        return False
    share = contained.best_share
    cosines = [passage.vec_score for passage in passages if passage.vec_score is not None]
    if cosines:
        return likeness.of_query(max(cosines)) + OF_WORDS * share < LEAST
    return max(share, float(contained.are_there.mean(axis=0).max())) <= ENOUGH_WORDS
