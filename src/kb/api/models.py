"""The bodies of requests and responses (requirements E-1 to E-11, N-1 to N-6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_after_validator_function

from kb.api.doc_types import DOC_TYPES
from kb.api.stream_safe import composed

DEFAULT_TOP = 10
DEFAULT_PAGE = 50
MAX_PAGE = 500

MAX_TAGS = 100
"""The maximum number of tags of a document, and of a list in a request."""

MAX_TAG_CHARS = 200

JobStatus = Literal["queued", "running", "done", "failed"]
ReembedState = Literal["building", "stopped", "returning", "kept"]
ReembedAction = Literal["start", "stop", "resume", "rollback", "finish"]
ENDED: Final = frozenset[JobStatus]({"done", "failed"})
"""The final states of a job."""

JobKind = Literal["note", "file"]
NOTE: Final = "note"
"""The kind of a note's job, and the type of its document."""

Restriction = Literal["files", "network", "processes", "writing"]
"""A restriction of the parser: no access to files, to the network, to other processes, or no writing of files."""

Sort = Literal["id", "recent", "oldest", "date"]
SearchSort = Literal["relevance", "recent"]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


@dataclass(frozen=True, slots=True)
class Like:
    """A text that contains a match of a pattern; `otherwise` is the error message in plain words."""

    pattern: str
    otherwise: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema) | {"pattern": self.pattern}

    def _check(self, text: str) -> str:
        if text.isspace() or not re.search(self.pattern, text):  # a search takes 7 ns for each space
            raise PydanticCustomError("like", "{otherwise}", {"otherwise": self.otherwise})
        return text


def _date_and_time(value: object) -> object:
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d", value):
        raise PydanticCustomError("instant", "must be a date and time such as 2026-01-31T12:00:00Z")
    return value


def _in_utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("instant", "must be within the years 1 to 9999 in UTC") from None


def _in_calendar(instant: datetime) -> datetime:
    _in_utc(instant)
    return instant


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def whole(value: object) -> object:
    """Return a whole number as an integer, because 3.0 and 3 are the same in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _sort(value: object) -> object:
    return "recent" if value == "newest" else value


ListSorted = Annotated[
    Sort,
    BeforeValidator(_sort, json_schema_input_type=Literal["id", "recent", "newest", "oldest", "date"]),
    Field(
        description=(
            "`recent` or `newest`: last changed or added first; `oldest`: the reverse; `date`: latest document date"
            " first; `id`: by id."
        )
    ),
]
SearchSorted = Annotated[
    SearchSort,
    BeforeValidator(_sort, json_schema_input_type=Literal["relevance", "recent", "newest"]),
    Field(description="`relevance`: best first; `recent` or `newest`: the same results, newest first."),
]

# \s differs between languages: only in Python it includes \x1c to \x1f, only in JavaScript \ufeff, and only there not
# \x85.
WORD = r"[^\s\x1c-\x1f\x85\ufeff]"
"""The pattern of a text with more than white space."""

NOT_BLANK = Like(WORD, "must contain more than white space")
ANSWERED = "not a cursor from this list; leave it out to start with the first page"
PAGE_BEFORE = "`next_cursor` of the previous page."

Tag = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),
    AfterValidator(composed),
    Like(
        r"^[^,\x00-\x1f\x7f]*[^\s,\x00-\x1f\x7f\x85\ufeff][^,\x00-\x1f\x7f]*$",
        "a tag must contain more than white space, and no comma or control character",
    ),
]
"""Tags are compared without surrounding white space and with composed letters (NFC); see `kb.api.tag_tree`."""

Tags = Annotated[list[Tag], Field(fail_fast=True)]
THREAD: Final = "thread:"
"""The prefix of a tag that names a thread. The other notes of its thread also help to find a short note."""

NoteText = Annotated[str, Field(min_length=1), NOT_BLANK]
MAX_TITLE: Final = 500
MAX_SOURCE: Final = 500
Source = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE), NOT_BLANK, AfterValidator(_in_one_line)]
Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE), NOT_BLANK]
SourcePath = Annotated[str, Field(min_length=1, max_length=4096), NOT_BLANK, AfterValidator(composed)]
"""Paths are compared with composed letters (NFC), because file systems differ."""

Label = Annotated[str, Field(min_length=1, max_length=255)]
SourcePrefix = Annotated[
    SourcePath, Field(description="Only documents whose `source_path` begins with this text, such as `docs/`.")
]
SourcePart = Annotated[
    SourcePath,
    Field(description="Only documents whose `source_path` contains this text; the case of ASCII letters is ignored."),
]
Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="Only files with this name (without folders) and notes with this title; `*` and `?` are wildcards.",
    ),
]
IdPrefix = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,17}$", description="Only documents whose id begins with these digits.")
]
DocType = Annotated[
    str, Field(min_length=1, max_length=100, description=f"Only documents of this type: {', '.join(DOC_TYPES)}.")
]
Lang = Annotated[
    str,
    Field(pattern=r"^[A-Za-z]{2}$", description="Only documents in this language, as an ISO 639-1 code such as `de`."),
    AfterValidator(str.lower),
]
Count = Annotated[int, Field(ge=1), BeforeValidator(whole)]
"""A number from 1, which JSON may write as 3.0."""

Instant = Annotated[AwareDatetime, BeforeValidator(_date_and_time), AfterValidator(_in_utc), Field(strict=False)]
DayBound = Annotated[AwareDatetime, BeforeValidator(_date_and_time), AfterValidator(_in_calendar), Field(strict=False)]
"""A moment with its time zone: its day in this zone is compared with the dates of documents."""

Why = Annotated[str | None, Field(max_length=500, description="The reason for the change, which the history shows.")]
DocumentId = Annotated[int, Field(ge=1, le=10**18), BeforeValidator(whole)]
VersionNumber = Annotated[int, Field(ge=1, le=10**18), BeforeValidator(whole)]
UPDATED_AFTER: Any = Field(
    description="Only documents changed at or after this time. Documents that never changed count by their creation."
)
AFTER: Any = Field(
    description="Only documents dated on or after this day. Without a date, the last change or the creation counts."
)
BEFORE: Any = Field(description="Only documents dated before this day, by the same rule as `after`.")
DocumentsCursor = Annotated[
    str, Field(max_length=500, description=PAGE_BEFORE), Like(r"^[0-9]{1,18}\.([0-9a-f]{2})*$", ANSWERED)
]
JobsCursor = Annotated[str, Field(description=PAGE_BEFORE), Like(r"^[0-9]{1,18}$", ANSWERED)]
BinCursor = Annotated[
    str,
    Field(max_length=100, description=PAGE_BEFORE),
    Like(r"^[0-9]{1,18}\.[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$", ANSWERED),
]


ALL_TAGS: Final = Field(
    description="Only documents with all of these tags. Each tag includes the tags below it: `projects` matches"
    " `projects/kiln`."
)
ANY_TAG: Final = Field(description="Only documents with at least one of these tags or the tags below them.")
NO_TAG: Final = Field(description="Only documents with none of these tags and none of the tags below them.")
TAG_EXACT: Final = Field(description="Do not include the tags below the tags of the filters.")


class Request(BaseModel):
    """The body of a request. Unknown fields and wrong types are refused, never ignored or converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """The body of a response, read from rows of the store."""

    model_config = ConfigDict(from_attributes=True, hide_input_in_errors=True)


BOTH_MODES: dict[str, Any] = {
    "required": ["fts_only", "vec_only"],
    "properties": {"fts_only": {"const": True}, "vec_only": {"const": True}},
}


class SearchRequest(Request):
    """A search in the documents that match all filters.

    `fts_only` searches only by words, `vec_only` only by meaning; set at most one of them. With `group_by`, `top`
    counts documents, and each result has the next best passages of its document in `more`. With `max_tokens`, the
    response has as many results as fit, and the last one may be cut after a word.
    """

    model_config = ConfigDict(json_schema_extra={"not": BOTH_MODES})

    query: Annotated[str, Field(min_length=1, max_length=20_000), NOT_BLANK]
    top: Count = DEFAULT_TOP
    tags: Annotated[Tags, ALL_TAGS] = []
    tag_any: Annotated[Tags, ANY_TAG] = []
    tag_not: Annotated[Tags, NO_TAG] = []
    tag_exact: Annotated[bool, TAG_EXACT] = False
    doc_type: DocType | None = None
    lang: Lang | None = None
    source_path: SourcePath | None = None
    source_prefix: SourcePrefix | None = None
    name: Name | None = None
    created_after: Annotated[Instant | None, Field(description="Only documents created at or after this time.")] = None
    created_before: Annotated[Instant | None, Field(description="Only documents created before this time.")] = None
    updated_after: Annotated[Instant | None, UPDATED_AFTER] = None
    after: Annotated[DayBound | None, AFTER] = None
    before: Annotated[DayBound | None, BEFORE] = None
    document_id: Annotated[DocumentId | None, Field(description="Only passages of this document.")] = None
    sort: SearchSorted = "relevance"
    fts_only: bool = False
    vec_only: bool = False
    exact: Annotated[bool, Field(description="Compare every vector. This is slower and misses no passage.")] = False
    group_by: Literal["document"] | None = None
    max_tokens: Annotated[
        Count | None, Field(description="The maximum number of tokens of text in all results together.")
    ] = None
    explain: Annotated[bool, Field(description="Explain the score of each result (`explanation`).")] = False


class NoteRequest(Request):
    """A new note."""

    text: NoteText
    title: Title | None = None
    tags: Tags = []
    source_path: SourcePath | None = None
    thread: Annotated[
        Tag | None, Field(description="The note's thread: related notes help to find it. Becomes the tag `thread:…`.")
    ] = None
    source: Annotated[Source | None, Field(description="The origin of the note: a URL, a book, a person.")] = None
    replaces: Annotated[DocumentId | None, Field(description="The id of the note that this note supersedes.")] = None
    if_new: Annotated[
        bool, Field(description="Store nothing if a note says nearly the same. The answer names it in `alike`.")
    ] = False

    @property
    def all_tags(self) -> list[str]:
        """The tags, including the tag of the thread."""
        return [*self.tags, f"{THREAD}{self.thread}"] if self.thread else self.tags


class FileRequest(Request):
    """The fields of a file to add."""

    title: Title | None = None
    source_path: SourcePath | None = None
    tags: Tags = []


class NoteUpdate(Request):
    """A change of a note: a whole new `text`, or edits of its text, title or tags.

    `old` must occur exactly once in the text; `new` replaces it. `append` adds lines at the end, `prepend` at the
    beginning, after any front matter. A tag in both lists stays.
    """

    model_config = ConfigDict(
        json_schema_extra={"minProperties": 1, "dependentRequired": {"old": ["new"], "new": ["old"]}}
    )

    text: NoteText | None = None
    old: Annotated[str, Field(min_length=1)] | None = None
    new: str | None = None
    append: NoteText | None = None
    prepend: NoteText | None = None
    title: Title | None = None
    tags_add: Tags = []
    tags_remove: Tags = []


class Move(Request):
    """The new source path of a document."""

    source_path: SourcePath


class TagChange(Request):
    """Tags to add to a document and to remove from it; a tag in both lists stays."""

    add: Tags = []
    remove: Tags = []


class TagRename(Request):
    """The tag to rename, with all tags below it, and its new name."""

    old: Tag
    new: Tag


class TagDeletion(Request):
    """The name of the tag to remove from all documents, with all tags below it."""

    name: Tag


class Revert(Request):
    """The version to restore."""

    version: VersionNumber


TWO_SCOPES: dict[str, Any] = {
    "required": ["operation"],
    "properties": {"operation": {"type": "integer"}},
    "anyOf": [
        {"required": ["since"], "properties": {"since": {"type": "string"}}},
        {"required": ["key"], "properties": {"key": {"type": "string"}}},
    ],
}

MINE_ALONE: dict[str, Any] = {
    "required": ["mine"],
    "properties": {"mine": {"const": True}},
    "not": {"required": ["since"], "properties": {"since": {"type": "string"}}},
}


class UndoRequest(Request):
    """The operation to undo: the one with this number, or by default the caller's last one.

    `since` undoes the changes of all operations after a time; with `key`, only the changes of this key. `key` without
    `since` undoes the last operation of this key. `operation` cannot be combined with either. `dry_run` only shows the
    changes. With `mine`, `since` undoes only the changes made by the same key and program as this request.
    """

    model_config = ConfigDict(json_schema_extra={"not": {"anyOf": [TWO_SCOPES, MINE_ALONE]}})

    operation: Annotated[DocumentId | None, Field(description="The number of an operation.")] = None
    since: Instant | None = None
    key: Annotated[str | None, Field(min_length=1, max_length=200, description="The name of a key.")] = None
    mine: bool = False
    dry_run: bool = False


class Place(Reply):
    """The position of a chunk. Lines and pages count from 1, characters from 0 with the end excluded."""

    page: int | None
    heading: list[str]
    line_start: int
    line_end: int
    char_start: int
    char_end: int


class ExplainedTerm(Reply):
    """A word of the query in the passage, and its share of `fts_score`.

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
    fit `max_tokens`.
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
    explanation: Explanation | None = None


class CopyOf(Reply):
    """Another document with the same, or nearly the same, passage."""

    document_id: int
    title: str
    source_path: str | None


class SearchResult(Passage):
    """A passage with the fields of its document. `more` has the document's next best passages if `group_by` is set.

    `copies` lists up to 20 other documents with the same passage, which are not results of their own. `copy_count` is
    their number among the best matches.

    `source` is the origin of a note. `replaced_by` is the note that supersedes it; a superseded note ranks directly
    below its replacement. `by` is the name of the key of the last change, `client` its program.
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
    language: str | None = None
    created_at: Timestamp
    updated_at: Timestamp | None
    source: str | None
    replaced_by: int | None
    by: str | None
    client: str | None


class UnknownWord(Reply):
    """A word of the query that no document contains. If `nearest` has words, kb searched for the first one instead."""

    word: str
    nearest: list[str]


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
    true if no document answers the query well.
    """

    results: list[SearchResult]
    omitted: int
    pending: int
    unknown: list[UnknownWord] = []
    unreadable: list[UnreadableFile] = []
    unreadable_count: int = 0
    weak: bool = False


class Document(Reply):
    """A document without its text. `date` is the document's own date, as written in it.

    `source` is the origin of a note, in its author's words. `replaces` is the note that this one supersedes,
    `replaced_by` the latest note that supersedes this one. `omitted` counts the content of a file that kb did not read,
    by kind, such as {"files": 2}; the last line of the text says the same in words. `language` is an ISO 639-1 code, or
    null if the language is not clear, as in a short or mixed text.
    """

    id: int
    title: str
    source_path: str | None
    doc_type: str
    content_hash: str
    tags: list[str]
    date: str | None
    created_at: Timestamp
    updated_at: Timestamp | None
    source: str | None
    replaces: int | None
    omitted: dict[str, int] = {}
    language: str | None = None
    replaced_by: int | None = None


class Chunk(Reply):
    """A piece of a document's text. The chunks of a document, joined in order, are its text."""

    id: int
    index: int
    text: str
    place: Place


class DocumentWithChunks(Document):
    """A document with its text in chunks: all `chunk_count` chunks, or the requested ones.

    `by` is the name of the key of the last change, `client` its program. `part_of` is the document that contains this
    one, such as the message of an attachment.
    """

    chunks: list[Chunk]
    chunk_count: int
    by: str | None
    client: str | None
    part_of: int | None = None


class DocumentList(Reply):
    """A page of documents. `next_cursor` is null on the last page, and `total` is null unless requested."""

    documents: list[Document]
    next_cursor: str | None
    total: int | None = None


class Deleted(Reply):
    """The receipt for a deleted document."""

    status: Literal["deleted"] = "deleted"
    document_id: int
    title: str


class Alike(Reply):
    """A note that says nearly the same as a new one, with the beginning of its text."""

    document_id: int
    title: str
    text: str


class JobAccepted(Reply):
    """The receipt for a note or a file, whose content is safely on disk. If the job has ended, it has the job's result.

    `document_id` is the stored note, which keyword search finds at once; while the job of a note is queued, only its
    vectors are missing. `existed` is true if a document already had this content. `omitted` counts content that kb did
    not read, as in `Document`. `alike` lists notes that say nearly the same as the new note, the nearest first.
    `stored` is false if kb stored nothing because of `if_new`; then no job exists.
    """

    job_id: int | None
    status: JobStatus
    document_id: int | None = None
    existed: bool = False
    omitted: dict[str, int] = {}
    error: str | None = None
    stored: bool = True
    alike: list[Alike] = []


class JobDropped(Reply):
    """The receipt for a dropped job; `was` is its last state."""

    status: Literal["dropped"] = "dropped"
    job_id: int
    was: JobStatus


class Version(Reply):
    """A version of a document, valid from `at` until `until`, which is null for the current version.

    `by` is the name of the key that made the change, `client` its program, and `why` the reason that it gave.
    """

    number: int
    at: Timestamp
    until: Timestamp | None
    by: str | None
    client: str | None
    why: str | None
    title: str
    source_path: str | None
    tags: list[str]
    content_hash: str


class VersionList(Reply):
    """A page of versions, newest first. `deleted_at` is the time of deletion if the document is in the bin."""

    document_id: int
    deleted_at: Timestamp | None
    versions: list[Version]
    next_cursor: str | None


class VersionText(Version):
    """A version with its text."""

    document_id: int
    text: str


class Change(Reply):
    """A piece of text in both versions (`equal`), or only in the later (`insert`) or the earlier one (`delete`)."""

    kind: Literal["equal", "insert", "delete"]
    text: str


class VersionDiff(Reply):
    """The differences between two versions of a document, word by word."""

    document_id: int
    start: int
    end: int
    changes: list[Change]


class DocumentDiff(Reply):
    """The differences between two documents, word by word."""

    start: int
    end: int
    changes: list[Change]


class DuplicateGroup(Reply):
    """Documents with the same content, or with nearly the same text, oldest first; at most 100 of all `total`.

    `shared` is the least share of runs of words that the first document and another one have in common.
    """

    documents: list[Document]
    total: int
    shared: float | None


class DuplicateList(Reply):
    """A page of duplicates. `next_cursor` is null on the last page; other pages may be empty.

    `compared` is the number of documents that kb looked at for this page.
    """

    groups: list[DuplicateGroup]
    compared: int
    next_cursor: str | None


class BinnedDocument(Document):
    """A document in the bin, with the key, program and reason of its deletion. kb purges it at `expires_at`."""

    deleted_at: Timestamp
    by: str | None
    client: str | None
    why: str | None
    expires_at: Timestamp


class BinList(Reply):
    """A page of the bin, last deleted first. `next_cursor` is null on the last page."""

    documents: list[BinnedDocument]
    next_cursor: str | None


class UndoStep(Reply):
    """The step that undoes the changes of a document: it is deleted, restored, or gets the text or tags of `version`.

    `skipped` is the reason if the document stays unchanged.
    """

    document_id: int
    title: str
    action: Literal["delete", "restore", "revert", "retag"]
    version: int | None
    skipped: str | None


class Operation(Reply):
    """The changes of one command, request or sync round: the numbers of documents added, changed and deleted.

    `at` is its time, and `jobs` the number of its jobs that are queued or running.
    """

    number: int
    at: Timestamp
    by: str | None
    client: str | None
    added: int
    changed: int
    deleted: int
    jobs: int


class OperationList(Reply):
    """A page of operations, newest first. `next_cursor` is null on the last page."""

    operations: list[Operation]
    next_cursor: str | None


class Undone(Reply):
    """The changes that were undone, or with `dry_run` would be: documents that were added, changed and deleted.

    `operation` is the operation that was undone, or null if the request set `since`. `jobs` is the number of unfinished
    jobs that were ended.
    """

    dry_run: bool
    operation: Operation | None
    added: int
    changed: int
    deleted: int
    jobs: int
    steps: list[UndoStep]


class DocumentText(Reply):
    """An excerpt of a document's text. `start`, `end` and `total` count lines and pages from 1, characters from 0."""

    document_id: int
    title: str
    unit: Literal["lines", "characters", "pages"]
    start: int
    end: int
    total: int
    text: str


class DocumentPages(Reply):
    """The number of pages of a document."""

    document_id: int
    pages: int


class Job(Reply):
    """The processing of an added note or file. `progress` runs from 0 to 1; `error` is the reason if the job failed.

    `content_hash` is the SHA-256 of the content, as in its document. `existed` is true if the document already had this
    content. `omitted` counts content that kb did not read, as in `Document`.
    """

    id: int
    status: JobStatus
    kind: JobKind
    title: str | None
    filename: str | None
    source_path: str | None
    content_hash: str | None
    tags: list[str]
    progress: float
    document_id: int | None
    existed: bool
    omitted: dict[str, int] = {}
    error: str | None
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None


class JobList(Reply):
    """A page of jobs, newest first. `next_cursor` is null on the last page."""

    jobs: list[Job]
    next_cursor: str | None


class TagCount(Reply):
    """A tag and its number of documents."""

    tag: str
    documents: int


class TagBranch(TagCount):
    """A tag and its number of documents; `branch` also counts the documents with a tag below it, each once."""

    branch: int


class TagList(Reply):
    """All tags in use and the tags above them, in alphabetical order."""

    tags: list[TagBranch]


class RenamedTag(Reply):
    """The result of renaming or deleting a tag: the number of documents whose tags changed.

    `from_text` counts those whose own text also sets the old tag, in front matter or as #tag. Adding such a text again
    adds the old tag again.
    """

    documents: int
    from_text: int


class Link(Reply):
    """A link in a document: its target as written, and the document that it leads to, or null."""

    target: str
    document_id: int | None
    title: str | None


class Backlink(Reply):
    """A document that links to another one, with the line of its first link."""

    document_id: int
    title: str
    passage: str


class DocumentLinks(Reply):
    """The links in a document, and the documents that link to it; `linked_from_count` counts all of these.

    After an upgrade or `kb reindex`, `complete` is false until kb has read the links of all documents.
    """

    document_id: int
    links: list[Link]
    linked_from: list[Backlink]
    linked_from_count: int
    complete: bool


class ModelStatus(Reply):
    """The embedding model. `window` is the maximum number of tokens of a text that it reads."""

    name: str
    dimensions: int
    window: int
    precision: str


class ParserStatus(Reply):
    """The process that reads files. `confined` lists its restrictions on this machine, or is null while it starts.

    `extracts` lists the suffixes of files that extractors read (`KB_EXTRACTORS`). `extractors_confined` lists the
    restrictions of extractors that are commands, or is null without such extractors. Without all four restrictions, kb
    runs them only if `KB_EXTRACTORS_UNCONFINED` is set.
    """

    confined: list[Restriction] | None
    extractors_confined: list[Restriction] | None = None
    extracts: list[str] = []


class QueueStatus(Reply):
    """The number of jobs in each state."""

    queued: int
    running: int
    done: int
    failed: int


class HistoryStatus(Reply):
    """The earlier versions: their number, and the bytes of their content.

    The history is complete since `begins`, or entirely if that is null. `bin` is the number of documents in the bin.
    """

    versions: int
    size: int
    begins: Timestamp | None
    bin: int


class ReembedRequest(Request):
    """The action on the second set of vectors, next to those in use."""

    action: ReembedAction = Field(
        description="`start` computes vectors with the model of the settings, and switches to them when all are done;"
        " `stop` pauses this and `resume` continues it; `rollback` discards them, or returns to the earlier vectors;"
        " `finish` deletes the earlier vectors."
    )


class Reembedding(Reply):
    """The vectors in use, the vectors that the settings require, and a second set, each by model and prefix.

    `state` is the state of the second set: kb is computing it (`building`), has stopped, keeps it because it was in use
    earlier (`kept`), or is returning to it. `done` of `total` vectors are computed; an earlier version counts as one.
    `error` is the reason if the work does not continue.
    """

    in_use: str
    wanted: str
    other: str | None
    state: ReembedState | None
    done: int
    total: int
    error: str | None


class ReplicaStatus(Reply):
    """Whether a replica answers searches; if not, `behind` has the seconds since one was up to date."""

    answers: bool
    behind: float


class ClockStatus(Reply):
    """A jump of the machine's clock. Nothing expires until the clock has been steady for a day, at `until`.

    `moved` is in seconds, negative if the clock went back. `says` is the message for people.
    """

    moved: float
    until: Timestamp
    says: str


NotesFolderAction = Literal["delete", "restore"]


class NotesFolderProblem(Reply):
    """A file or folder that kb skips, or a note that kb cannot write, and the reason."""

    path: str
    reason: str


class NotesFolderStatus(Reply):
    """The notes folder: a Markdown file for each note, kept in step in both directions.

    `held` is false while another engine of the same database keeps it. `files` counts the Markdown files, `waiting` the
    notes that are not written yet. `stopped` is the reason why kb does not use the folder now. `withheld` says why the
    notes of missing files stay, and `conflicts` lists copies of files that two sides changed. `seen_at` is when kb last
    looked at all files.
    """

    path: str
    held: bool
    files: int
    waiting: int
    stopped: str | None
    withheld: list[str]
    conflicts: list[str]
    problems: list[NotesFolderProblem]
    seen_at: Timestamp | None


class NotesFolderRequest(Request):
    """The decision about missing files: `delete` their notes, which go to the bin, or `restore` the files."""

    action: NotesFolderAction


class Status(Reply):
    """The engine's state: `documents` counts by doc_type, `languages` by language, `top_tags` by tag.

    `database_size` is in bytes. `precisions` counts the vectors computed in each precision, including vectors of
    deleted passages. `full_text` is the index that answers keyword searches. `replica` is null without replicas, and
    `clock` is null while kb trusts the machine's clock. `foreign` lists objects in the database that kb did not create,
    such as a trigger; such an object may change saved data. `notes_folder` is null without KB_NOTES_DIR.
    """

    version: str
    schema_version: int
    full_text: str
    model: ModelStatus
    device: str
    provider: str
    documents: dict[str, int]
    languages: dict[str, int] = {}
    top_tags: list[TagCount]
    chunks: int
    precisions: dict[str, int] = {}
    queue: QueueStatus
    parser: ParserStatus
    history: HistoryStatus
    database_size: int
    replica: ReplicaStatus | None
    clock: ClockStatus | None = None
    foreign: list[str] = []
    notes_folder: NotesFolderStatus | None = None


class Problem(BaseModel):
    """An error (RFC 9457). `errors` lists up to 20 wrong fields, and `more_errors` counts the others."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None
    more_errors: int | None = None
