"""Requests and replies of searches."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kb.api.document_models import Place
from kb.api.fields import NOT_BLANK, Count, Day, DocumentId, ExactTags, Reply, Request, SearchSorted, Timestamp
from kb.api.filters import ALL_TAGS, ANY_TAG, NO_TAG, Filters, PathFilters
from kb.api.limits import DEFAULT_TOP
from kb.api.note_fields import OptionalFieldsReply

BOTH_MODES: dict[str, Any] = {
    "required": ["fts_only", "vec_only"],
    "properties": {"fts_only": {"const": True}, "vec_only": {"const": True}},
}


class Question(Request):
    """What to search for, and in documents with which tags."""

    query: Annotated[str, Field(min_length=1, max_length=20_000), NOT_BLANK]
    top: Count = DEFAULT_TOP
    tags: Annotated[ExactTags, ALL_TAGS] = []
    tag_any: Annotated[ExactTags, ANY_TAG] = []
    tag_not: Annotated[ExactTags, NO_TAG] = []


class SearchRequest(PathFilters, Filters, Question):  # the fields of the last base come first
    """A search in the documents that match all filters.

    `fts_only` searches only by words, `vec_only` only by meaning; set at most one of them. With `group_by`, `top`
    counts documents, and each result has the next best passages of its document in `more`. With `max_tokens`, the
    response has as many results as fit, and the last one may be cut after a word.
    """

    model_config = ConfigDict(json_schema_extra={"not": BOTH_MODES})

    document_id: Annotated[DocumentId | None, Field(description="Only passages from this document.")] = None
    sort: SearchSorted = "relevance"
    fts_only: bool = False
    vec_only: bool = False
    exact: Annotated[bool, Field(description="Compare every vector. This is slower, but no passage is missed.")] = False
    group_by: Literal["document"] | None = None
    max_tokens: Annotated[
        Count | None, Field(description="The maximum number of tokens of text in all results taken together.")
    ] = None
    explain: Annotated[bool, Field(description="Explain the score of each result (`explanation`).")] = False


class ExplainedTerm(Reply):
    """A word from the query in the passage, and its share of `fts_score`.

    `idf` is the weight of the word: rarer words have more. `count` is its number of occurrences; one in a title or
    heading counts twice. Both are null for a prefix such as `photogr*`, and while full text is searched on disk.
    """

    term: str
    score: float
    idf: float | None = None
    count: int | None = None


class ExplainedLeg(Reply):
    """The rank and score of a passage by words, or by meaning.

    `place` is its rank in this list, from 1, or null if it is not listed. `score` is its own score; `in_context` is its
    score together with its neighbours, or null without neighbours. `share` is its part of the result's score.
    """

    place: int | None
    score: float | None
    in_context: float | None
    share: float


class Explanation(Reply):
    """The parts of a score: it is the sum of both shares and of `typed`.

    `words` or `meaning` is null if the search did not use it. `typed` is the bonus if the passage contains words of the
    query as typed, or if they are the document's name.
    """

    terms: list[ExplainedTerm]
    words: ExplainedLeg | None
    meaning: ExplainedLeg | None
    typed: float = 0


class Passage(Reply):
    """A chunk that matches the query. `index` is its number in the document, from 0.

    `fts_score` (words) and `vec_score` (meaning) are null if that search did not find it. `context_score` is the part
    of `score`, possibly negative, that comes from its neighbours, or null without neighbours. `highlights` are the
    ranges of `text`, in Unicode code points, that match words of the query. `truncated` is true if `text` was cut to
    fit `max_tokens`. `exact` is true if the passage contains every word that was typed, in one of its forms and apart
    from stop words, or if they are the document's name; it is always false in a search only by meaning.
    """

    chunk_id: int
    index: int
    text: str
    truncated: bool
    highlights: list[tuple[int, int]]
    place: Place
    score: float
    fts_score: float | None
    vec_score: float | None
    context_score: float | None
    exact: bool = False
    explanation: Explanation | None = None


class CopyOf(Reply):
    """Another document with the same, or nearly the same, passage."""

    document_id: int
    title: str
    source_path: str | None


class SearchResult(OptionalFieldsReply, Passage):
    """A passage with the fields of its document. `more` has the document's next best passages if `group_by` is set.

    `copies` lists up to 20 other documents with the same passage, which are not results of their own. `copy_count` is
    their number among the best matches.

    `exact` also counts the passages in `more`. `source` is the origin of a note. `replaced_by` is the note that
    supersedes it; a superseded note ranks directly below its replacement. `by` is the name of the key of the last
    change, `client` its program.
    """

    document_id: int
    title: str
    source_path: str | None
    doc_type: str
    tags: list[str]
    more: list[Passage]
    copies: list[CopyOf] = []
    copy_count: int = 0
    date: str | None
    day: Day
    language: str | None = None
    created_at: Timestamp
    updated_at: Timestamp | None
    replaced_by: int | None
    by: str | None
    client: str | None


class UnknownWord(Reply):
    """A word, identifier or phrase that no document contains. If `nearest` has words, kb searched for the first one."""

    word: str
    nearest: list[str]


class QueryOperator(Reply):
    """An operator of the query that kb understood, such as `tag:work`. Results must match it, or not if `excluded`.

    `typed` is its text in the query. `value` is the tag, part of the path, type, day, author or excluded words.
    """

    operator: Literal["tag", "path", "type", "after", "before", "by", "words"]
    value: str
    excluded: bool
    typed: str


class UnreadableFile(Reply):
    """A file named in the query that kb could not read; `error` is the error of its job."""

    job_id: int
    filename: str
    error: str


class SearchReply(Reply):
    """The results, best first.

    `omitted` is the number of passages that did not fit `max_tokens`, `pending` the number of unfinished jobs: searches
    do not find their content yet, or only by its words. `unknown` lists the words of the query that no document
    contains, `unreadable` up to 3 of the `unreadable_count` files named in the query that kb could not read. `weak` is
    true if the subject of the query is probably not in kb; `other_languages` then lists languages to ask in too.
    `operators` lists the operators of the query that kb understood. If kb searched for another word than a typed one,
    `as_typed` is the query that searches for the typed one.
    """

    results: list[SearchResult]
    omitted: int
    pending: int
    unknown: list[UnknownWord] = []
    unreadable: list[UnreadableFile] = []
    unreadable_count: int = 0
    weak: bool = False
    other_languages: list[str] = []
    operators: list[QueryOperator] = []
    as_typed: str | None = None
