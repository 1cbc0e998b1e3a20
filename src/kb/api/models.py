"""The bodies that go over the wire (requirements E-1 to E-11, N-1 to N-6)."""

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
"""How many a document may have, and a request may name at once."""

MAX_TAG_CHARS = 200

JobStatus = Literal["queued", "running", "done", "failed"]
ReembedState = Literal["building", "stopped", "returning", "kept"]
ReembedAction = Literal["start", "stop", "resume", "rollback", "finish"]
ENDED: Final = frozenset[JobStatus]({"done", "failed"})
"""The states in which a job stays by itself."""

JobKind = Literal["note", "file"]
NOTE: Final = "note"
"""The kind of a job that is a note, and the type of its document."""

Restriction = Literal["files", "network", "processes", "writing"]
"""What a parser cannot do: open files, reach the network, start or signal or look into processes, write files."""

Sort = Literal["id", "recent", "oldest"]
SearchSort = Literal["relevance", "recent"]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


@dataclass(frozen=True, slots=True)
class Like:
    """A text that matches a pattern somewhere; `otherwise` says in plain words what is wrong with one that does not."""

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
        raise PydanticCustomError("instant", "must be a text such as 2026-01-31T12:00:00Z")
    return value


def _in_utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("instant", "must be a moment of the years 1 to 9999 in UTC") from None


def _in_calendar(instant: datetime) -> datetime:
    _in_utc(instant)
    return instant


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def whole(value: object) -> object:
    """Return a whole number as an integer: JSON does not tell 3.0 from 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _sort(value: object) -> object:
    return "recent" if value == "newest" else value


ListSorted = Annotated[
    Sort,
    BeforeValidator(_sort, json_schema_input_type=Literal["id", "recent", "newest", "oldest"]),
    Field(description="`recent` or `newest`: the last changed or added first; `oldest`: last."),
]
SearchSorted = Annotated[
    SearchSort,
    BeforeValidator(_sort, json_schema_input_type=Literal["relevance", "recent", "newest"]),
    Field(description="`recent` or `newest`: what was found, the newest first."),
]

# \s is not the same everywhere: \x1c to \x1f are white space to Python alone, \ufeff to JavaScript alone, \x85 to all
# others.
WORD = r"[^\s\x1c-\x1f\x85\ufeff]"
"""The pattern of a text that holds more than white space."""

NOT_BLANK = Like(WORD, "must hold more than white space")
ANSWERED = "not one that this list answered; leave it out to begin again"
PAGE_BEFORE = "`next_cursor` of the page before."

Tag = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),
    AfterValidator(composed),
    Like(
        r"^[^,\x00-\x1f\x7f]*[^\s,\x00-\x1f\x7f\x85\ufeff][^,\x00-\x1f\x7f]*$",
        "a tag has no comma and no control character, and is more than white space",
    ),
]
"""White space around a tag does not count, nor whether its letters are composed."""

Tags = Annotated[list[Tag], Field(fail_fast=True)]
THREAD: Final = "thread:"
"""How the tag begins that names a thread. Short notes of one are found by their neighbours' words, too."""

NoteText = Annotated[str, Field(min_length=1), NOT_BLANK]
MAX_TITLE: Final = 500
MAX_SOURCE: Final = 500
Source = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE), NOT_BLANK, AfterValidator(_in_one_line)]
Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE), NOT_BLANK]
SourcePath = Annotated[str, Field(min_length=1, max_length=4096), NOT_BLANK, AfterValidator(composed)]
"""Whether its letters are composed does not count: file systems differ."""

Label = Annotated[str, Field(min_length=1, max_length=255)]
SourcePrefix = Annotated[SourcePath, Field(description="How the source_path begins, such as a folder with its slash.")]
SourcePart = Annotated[SourcePath, Field(description="What stands in the source_path; ASCII letters in any case.")]
Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="The file's name without its folders, or a note's title; * and ? stand for anything in it.",
    ),
]
IdPrefix = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,17}$", description="How the id begins.")]
DocType = Annotated[str, Field(min_length=1, max_length=100, description=f"One of {', '.join(DOC_TYPES)}.")]
Lang = Annotated[
    str,
    Field(pattern=r"^[A-Za-z]{2}$", description="In this language, by its code in ISO 639-1, such as de."),
    AfterValidator(str.lower),
]
Count = Annotated[int, Field(ge=1), BeforeValidator(whole)]
"""At least one. JSON does not tell 3.0 from 3."""

Instant = Annotated[AwareDatetime, BeforeValidator(_date_and_time), AfterValidator(_in_utc), Field(strict=False)]
DayBound = Annotated[AwareDatetime, BeforeValidator(_date_and_time), AfterValidator(_in_calendar), Field(strict=False)]
"""It keeps its time zone: the day that it names there is compared with the days that documents give themselves."""

Why = Annotated[str | None, Field(max_length=500, description="Why, for the history.")]
DocumentId = Annotated[int, Field(ge=1, le=10**18), BeforeValidator(whole)]
VersionNumber = Annotated[int, Field(ge=1, le=10**18), BeforeValidator(whole)]
UPDATED_AFTER: Any = Field(description="Changed, or else created, then or later.")
AFTER: Any = Field(description="Of that day or later, by its own date; without one, changed or created then or later.")
BEFORE: Any = Field(description="Likewise, earlier.")
DocumentsCursor = Annotated[
    str, Field(max_length=500, description=PAGE_BEFORE), Like(r"^[0-9]{1,18}\.([0-9a-f]{2})*$", ANSWERED)
]
JobsCursor = Annotated[str, Field(description=PAGE_BEFORE), Like(r"^[0-9]{1,18}$", ANSWERED)]
BinCursor = Annotated[
    str,
    Field(max_length=100, description=PAGE_BEFORE),
    Like(r"^[0-9]{1,18}\.[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$", ANSWERED),
]


class Request(BaseModel):
    """What a client sends: an unknown field or a wrong type is refused, never ignored or converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """What the engine answers, read from the store's rows."""

    model_config = ConfigDict(from_attributes=True, hide_input_in_errors=True)


BOTH_MODES: dict[str, Any] = {
    "required": ["fts_only", "vec_only"],
    "properties": {"fts_only": {"const": True}, "vec_only": {"const": True}},
}


class SearchRequest(Request):
    """A search among the documents that pass every filter; at most one of the two mode flags may be set.

    With `group_by`, `top` counts documents, and a result carries the document's next best passages in `more`. With
    `max_tokens`, as many results as fit come back; the last one may be cut after a word.
    """

    model_config = ConfigDict(json_schema_extra={"not": BOTH_MODES})

    query: Annotated[str, Field(min_length=1, max_length=20_000), NOT_BLANK]
    top: Count = DEFAULT_TOP
    tags: Annotated[Tags, Field(description="All of them must match.")] = []
    tag_any: Annotated[Tags, Field(description="At least one of them must match.")] = []
    tag_not: Annotated[Tags, Field(description="None of them may match.")] = []
    doc_type: DocType | None = None
    lang: Lang | None = None
    source_path: SourcePath | None = None
    source_prefix: SourcePrefix | None = None
    name: Name | None = None
    created_after: Annotated[Instant | None, Field(description="Created then or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Created earlier.")] = None
    updated_after: Annotated[Instant | None, UPDATED_AFTER] = None
    after: Annotated[DayBound | None, AFTER] = None
    before: Annotated[DayBound | None, BEFORE] = None
    document_id: Annotated[DocumentId | None, Field(description="Only passages of this document.")] = None
    sort: SearchSorted = "relevance"
    fts_only: bool = False
    vec_only: bool = False
    exact: Annotated[bool, Field(description="Compare every vector: slower, and misses none.")] = False
    group_by: Literal["document"] | None = None
    max_tokens: Annotated[Count | None, Field(description="The most tokens of text in all results.")] = None
    explain: Annotated[bool, Field(description="Say of each result what its score is made of.")] = False


class NoteRequest(Request):
    """A note to be added."""

    text: NoteText
    title: Title | None = None
    tags: Tags = []
    source_path: SourcePath | None = None
    thread: Annotated[Tag | None, Field(description="What it is a part of: becomes the tag `thread:…`.")] = None
    source: Annotated[Source | None, Field(description="Where it comes from: an address, a book, a person.")] = None
    replaces: Annotated[DocumentId | None, Field(description="The note whose place it takes.")] = None
    if_new: Annotated[
        bool, Field(description="Store nothing if a note says nearly the same; the answer names it in `alike`.")
    ] = False

    @property
    def all_tags(self) -> list[str]:
        """The tags, with that of the thread."""
        return [*self.tags, f"{THREAD}{self.thread}"] if self.thread else self.tags


class FileRequest(Request):
    """What is said of a file that is added."""

    title: Title | None = None
    source_path: SourcePath | None = None
    tags: Tags = []


class NoteUpdate(Request):
    """A change of a note: its whole new `text`, or an edit of the one it has, its title or its tags.

    `old` must stand in the text exactly once, and gives way to `new`. `append` and `prepend` go on lines of their own.
    A tag in both lists stays.
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
    """Where a document comes from."""

    source_path: SourcePath


class TagChange(Request):
    """Tags to add to a document and to remove from it; a tag in both lists stays."""

    add: Tags = []
    remove: Tags = []


class Revert(Request):
    """The version that a document shall become again."""

    version: VersionNumber


TWO_SCOPES: dict[str, Any] = {
    "required": ["operation"],
    "properties": {"operation": {"type": "integer"}},
    "anyOf": [
        {"required": ["since"], "properties": {"since": {"type": "string"}}},
        {"required": ["key"], "properties": {"key": {"type": "string"}}},
    ],
}


class UndoRequest(Request):
    """Take back an operation: the one with this number, or else the last one that the caller gave.

    With `since`, all that was changed by commands given after a moment. With `key`, only what that key changed, or
    the last operation of that key; `operation` goes with neither. `dry_run` only shows it.
    """

    model_config = ConfigDict(json_schema_extra={"not": TWO_SCOPES})

    operation: Annotated[DocumentId | None, Field(description="The number of an operation.")] = None
    since: Instant | None = None
    key: Annotated[str | None, Field(min_length=1, max_length=200, description="The name of a key.")] = None
    dry_run: bool = False


class FolderClaim(Request):
    """A folder on a machine that is kept in step from now on, under a name that no other folder has.

    `prefix` is how the paths of its files begin. `mounts` says on which device it is, and which folders below it are
    on another. `take_over` lets it have the name of another one.
    """

    prefix: SourcePath
    machine: Label
    host: Label
    path: SourcePath
    mounts: Annotated[str, Field(max_length=100_000)] = ""
    take_over: bool = False


class Place(Reply):
    """Where a chunk stands: lines from 1, characters from 0 with the end excluded, pages from 1."""

    page: int | None
    heading: list[str]
    line_start: int
    line_end: int
    char_start: int
    char_end: int


class ExplainedTerm(Reply):
    """A word that was looked for and stands in the passage, and what it adds to `fts_score`.

    `idf` is how much it counts, the more the rarer; `count` how often it stands there, twice in a title or heading.
    Both are null for a word like `photogr*`, and while full text is searched on disk.
    """

    term: str
    score: float
    idf: float | None = None
    count: int | None = None


class ExplainedLeg(Reply):
    """What words, or meaning, say of a passage.

    `place` is where it stands in the leg's list, from 1, null if it is not in it; `score` is its own, `in_context` that
    of it with its neighbours, null where it stands alone; `share` is what it adds to the result's score.
    """

    place: int | None
    score: float | None
    in_context: float | None
    share: float


class Explanation(Reply):
    """What a score is made of: the sum of both shares and of `typed`. A leg that did not run is null.

    `typed` is what it adds that the query, or some of it, stands there as it was typed, or is the document's name.
    """

    terms: list[ExplainedTerm]
    words: ExplainedLeg | None
    meaning: ExplainedLeg | None
    typed: float = 0


class Passage(Reply):
    """A chunk that was found. `index` counts the document's chunks from 0.

    `fts_score` and `vec_score` are null where that leg did not find it; `context_score` is how much of `score` its
    neighbours in a thread gave it or took, null where it stands alone; `highlights` are the ranges of `text`, in
    Unicode code points, that match words of the query; `truncated` says that `text` was cut to fit `max_tokens`.
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
    """A document that says the same in a passage, or all but the same."""

    document_id: int
    title: str
    source_path: str | None


class SearchResult(Passage):
    """A passage and its document; `more` has the document's next best passages when grouped by document.

    `copies` are other documents that say the same in a passage, at most 20, and `copy_count` says how many there are
    among those that match best: all of them are this one result.

    `source` is where a note comes from, and `replaced_by` the note that took its place; it stands behind that one. `by`
    is the name of the key that made the document what it is, `client` the program.
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
    """A word of the query that no document has; the first of `nearest`, if there is one, was searched for instead."""

    word: str
    nearest: list[str]


class UnreadableFile(Reply):
    """A file that the query names, of which no text could be read, and why: `error` is that of its job."""

    job_id: int
    filename: str
    error: str


class SearchReply(Reply):
    """What was found, best first.

    `omitted` counts the passages that did not fit `max_tokens`; `pending` the jobs that are not searchable yet;
    `unknown` are the words of the query that no document has; `unreadable` at most 3 of the `unreadable_count` files of
    that name that could not be read. `weak` says that no document answers the query well.
    """

    results: list[SearchResult]
    omitted: int
    pending: int
    unknown: list[UnknownWord] = []
    unreadable: list[UnreadableFile] = []
    unreadable_count: int = 0
    weak: bool = False


class Document(Reply):
    """A document without its text. `date` is the one that it gives itself, as written.

    `source` is where a note comes from, in the words of who added it. `replaces` is the note whose place it took, and
    `replaced_by` the one that took its own: the last one, if that was replaced, too. `omitted` counts by kind what the
    file holds that was not read, such as {"files": 2}; the last line of the text says the same in words. `language` is
    the one that it is written in, by its code in ISO 639-1; null if that is not clear, as of a short or mixed text.
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
    """A stretch of a document's text; a document's chunks in order, joined, are its text."""

    id: int
    index: int
    text: str
    place: Place


class DocumentWithChunks(Document):
    """A document with its text in chunks: all `chunk_count` of them, or those that were asked for.

    `by` is the name of the key that made it what it is, `client` the program. `part_of` is the document that it came
    inside, as attachments do.
    """

    chunks: list[Chunk]
    chunk_count: int
    by: str | None
    client: str | None
    part_of: int | None = None


class DocumentList(Reply):
    """A page of documents; `next_cursor` is null on the last one, and `total` unless it was asked for."""

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
    """The receipt for a note or a file; its content is on disk. When waited for, it says how the job ended.

    A note usually has its `document_id` at once, and searches by words find it; while its job is queued, its vectors
    are missing. `existed` says that the document held what was sent already, `omitted` as in `Document` what was not
    read. `alike` are the notes that say nearly the same as a new one, the nearest first. `stored` is false if nothing
    was stored because of `if_new`; then there is no job.
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
    """The receipt for a dropped job; `was` is the state that it was in."""

    status: Literal["dropped"] = "dropped"
    job_id: int
    was: JobStatus


class Version(Reply):
    """A document as it stood from `at` until `until`, which is null for how it stands.

    `by` is the name of the key that made it so, `client` the program, `why` what was said of it.
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
    """A page of versions, newest first; `deleted_at` says since when the document is in the bin."""

    document_id: int
    deleted_at: Timestamp | None
    versions: list[Version]
    next_cursor: str | None


class VersionText(Version):
    """A version with its text."""

    document_id: int
    text: str


class Change(Reply):
    """A stretch of text that both versions have, or only the later or the earlier one."""

    kind: Literal["equal", "insert", "delete"]
    text: str


class VersionDiff(Reply):
    """What differs between two versions of a document, word by word."""

    document_id: int
    start: int
    end: int
    changes: list[Change]


class BinnedDocument(Document):
    """A document in the bin, who deleted it and why, and when it is deleted for good."""

    deleted_at: Timestamp
    by: str | None
    client: str | None
    why: str | None
    expires_at: Timestamp


class BinList(Reply):
    """A page of the bin, the last deleted first; `next_cursor` is null on the last one."""

    documents: list[BinnedDocument]
    next_cursor: str | None


class UndoStep(Reply):
    """What takes back the changes of a document: it is deleted, restored, or becomes `version` again.

    `skipped` says why it is left as it is.
    """

    document_id: int
    title: str
    action: Literal["delete", "restore", "revert", "retag"]
    version: int | None
    skipped: str | None


class Operation(Reply):
    """All that a command, a request or a sync round changed: how many documents it added, changed and deleted.

    `at` is when it was given, and `jobs` is how many of its jobs are not done yet.
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
    """A page of operations, newest first; `next_cursor` is null on the last one."""

    operations: list[Operation]
    next_cursor: str | None


class SyncedFolder(Reply):
    """A folder that is kept in step, the machine that it is on, and when it was last."""

    prefix: str
    machine: str
    host: str
    path: str
    mounts: str
    at: Timestamp


class SyncedFolders(Reply):
    """The folders that are kept in step, and the paths of files in them that stay out."""

    folders: list[SyncedFolder]
    left_out: list[str]


class Undone(Reply):
    """What was taken back, or with `dry_run` would be: so many documents that were added, changed and deleted.

    `operation` is the operation that was taken back, null where a moment was given. `jobs` is how many jobs ended
    before they were done.
    """

    dry_run: bool
    operation: Operation | None
    added: int
    changed: int
    deleted: int
    jobs: int
    steps: list[UndoStep]


class DocumentText(Reply):
    """A part of a document's text. `start`, `end` and `total` count lines and pages from 1, characters from 0."""

    document_id: int
    title: str
    unit: Literal["lines", "characters", "pages"]
    start: int
    end: int
    total: int
    text: str


class DocumentPages(Reply):
    """How many pages a document has."""

    document_id: int
    pages: int


class Job(Reply):
    """A note or a file on its way in. `progress` runs from 0 to 1; `error` says why a job failed.

    `content_hash` is the SHA-256 of what was sent, as the document then has it; `existed` says that the document held
    it already, `omitted` as in `Document` what was not read.
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
    """A page of jobs, newest first; `next_cursor` is null on the last one."""

    jobs: list[Job]
    next_cursor: str | None


class TagCount(Reply):
    """A tag and how many documents carry it."""

    tag: str
    documents: int


class TagList(Reply):
    """Every tag in use, in alphabetical order."""

    tags: list[TagCount]


class ModelStatus(Reply):
    """The embedding model: `window` is the most tokens of a text that it reads."""

    name: str
    dimensions: int
    window: int
    precision: str


class ParserStatus(Reply):
    """The process that reads files: `confined` is what it cannot do on this machine; null while it first starts.

    `extracts` are the suffixes of files that extractors read (`KB_EXTRACTORS`). `extractors_confined` is what those of
    them cannot do that are commands, null if there are none: without all four they run only if
    `KB_EXTRACTORS_UNCONFINED` is set.
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
    """Former versions: how many, the bytes of their contents, and since when none is missing, null for all times.

    `bin` counts the documents in the bin.
    """

    versions: int
    size: int
    begins: Timestamp | None
    bin: int


class ReembedRequest(Request):
    """What to do with the other vectors than those in use."""

    action: ReembedAction = Field(
        description="`start` makes vectors with the model that the settings name, and lets them take the place of those"
        " in use; `stop` and `resume` that; `rollback` discards them, or brings the former ones back; `finish` deletes"
        " the former ones."
    )


class Reembedding(Reply):
    """The vectors in use, those of the model that the settings name, and those beside, by model and prefix.

    `state` says what is done with those beside: they are being built, that is stopped, they were in use before and are
    kept, or they are returning. `done` of `total` are made; a former version counts as one. `error` says why it does
    not go on.
    """

    in_use: str
    wanted: str
    other: str | None
    state: ReembedState | None
    done: int
    total: int
    error: str | None


class ReplicaStatus(Reply):
    """Whether searches are read at a replica, or for how many seconds none was good enough and the primary answers."""

    answers: bool
    behind: float


class ClockStatus(Reply):
    """A jump of the machine's clock: nothing expires until it has stayed there for a day, which is `until`.

    `moved` is in seconds, negative for a clock that was put back.
    """

    moved: float
    until: Timestamp
    says: str


class Status(Reply):
    """The engine's state: `documents` counts by doc_type, `languages` by language, `top_tags` by tag.

    `database_size` is in bytes.
    `precisions` counts the vectors that were made in each precision, those of deleted passages included. `full_text`
    says what answers searches by words; `replica` is null where there is none, and so is `clock` as long as the
    machine's clock is believed. `foreign` names what the database declares and kb never does, such as a trigger:
    somebody added it, and it may work on all that is saved.
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


class Problem(BaseModel):
    """An error (RFC 9457). `errors` names the offending fields, if there are any; `more_errors` counts the rest."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None
    more_errors: int | None = None
