"""Types and limits of the fields of requests and replies, and the bases of both."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
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

from kb.api.file_types import KINDS, OWN_TYPES
from kb.api.limits import ID_DIGITS, MAX_LABEL, MAX_PATH, MAX_TITLE
from kb.api.stream_safe import composed
from kb.api.tag_tree import clean_tag

JobStatus = Literal["queued", "running", "done", "failed"]
ReembedState = Literal["building", "stopped", "returning", "kept"]
ReembedAction = Literal["start", "stop", "resume", "rollback", "finish"]
ENDED: Final = frozenset[JobStatus]({"done", "failed"})
"""The final states of a job."""

JobKind = Literal["note", "file", "vectors"]
NOTE: Final = "note"
"""The kind of a note's job, and the type of its document."""

VECTORS: Final = "vectors"
"""The kind of a job that makes the vectors of a changed document. It disappears when it is done."""

Restriction = Literal["files", "network", "processes", "writing"]
"""A restriction of the parser: no access to files, to the network, to other processes, or no writing of files."""

Sort = Literal["id", "recent", "oldest", "date", "title", "path"]
SearchSort = Literal["relevance", "recent"]
Day = Annotated[str, WithJsonSchema({"type": "string", "format": "date"})]


def _check_day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise ValueError("must be a day, such as 2027-03-31") from error


GivenDay = Annotated[str, AfterValidator(_check_day), WithJsonSchema({"type": "string", "format": "date"})]
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
        raise PydanticCustomError("instant", "must be between the years 1 and 9999 in UTC") from None


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
    BeforeValidator(_sort, json_schema_input_type=Literal["id", "recent", "newest", "oldest", "date", "title", "path"]),
    Field(
        description=(
            "`recent` or `newest`: most recently changed or added first; `oldest`: the reverse; `date`: latest document"
            " date first; `title`, `path`: from A to Z, without regard to case; `id`: by id."
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


def _clean_tag(text: str) -> str:
    if not (tag := clean_tag(text)):
        raise PydanticCustomError("tag", "a tag must contain more than white space, # and /")
    return tag


ExactTag = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),
    AfterValidator(composed),
    Like(
        r"^[^,\x00-\x1f\x7f]*[^\s,\x00-\x1f\x7f\x85\ufeff][^,\x00-\x1f\x7f]*$",
        "a tag must contain more than white space, and no comma or control character",
    ),
]
"""The name of a tag that may exist, as it is. Tags of earlier versions can begin with # or end with /."""

Tag = Annotated[ExactTag, AfterValidator(_clean_tag)]
"""A tag to add, as `kb.api.tag_tree.clean_tag` writes it, with composed letters (NFC)."""

Tags = Annotated[list[Tag], Field(fail_fast=True)]


ExactTags = Annotated[list[ExactTag], Field(fail_fast=True)]
"""Tags to look for or to remove: `kb.api.tag_tree.meant_tag` says which tag each one means."""

THREAD: Final = "thread:"
"""The prefix of a tag that names a thread. The other notes of its thread also help to find a short note."""

NoteText = Annotated[str, Field(min_length=1), NOT_BLANK]
Source = Annotated[str, Field(min_length=1, max_length=500), NOT_BLANK, AfterValidator(_in_one_line)]
Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE), NOT_BLANK]
SourcePath = Annotated[str, Field(min_length=1, max_length=MAX_PATH), NOT_BLANK, AfterValidator(composed)]
"""Paths are compared with composed letters (NFC), because file systems differ."""

Label = Annotated[str, Field(min_length=1, max_length=MAX_LABEL)]
DocType = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        description=f"Only documents of this type: {', '.join(OWN_TYPES)}; or of a kind: {', '.join(KINDS)}.",
    ),
]
Count = Annotated[int, Field(ge=1), BeforeValidator(whole)]
"""A number from 1, which JSON may write as 3.0."""

Instant = Annotated[AwareDatetime, BeforeValidator(_date_and_time), AfterValidator(_in_utc), Field(strict=False)]
DayBound = Annotated[AwareDatetime, BeforeValidator(_date_and_time), AfterValidator(_in_calendar), Field(strict=False)]
"""A moment with its time zone: its day in this zone is compared with the dates of documents."""

Why = Annotated[str | None, Field(max_length=500, description="The reason for the change, for the history.")]
DocumentId = Annotated[int, Field(ge=1, le=10**ID_DIGITS), BeforeValidator(whole)]
VersionNumber = Annotated[int, Field(ge=1, le=10**ID_DIGITS), BeforeValidator(whole)]
DocumentsCursor = Annotated[
    str, Field(max_length=2000, description=PAGE_BEFORE), Like(r"^[0-9]{1,18}\.([0-9a-f]{2})*$", ANSWERED)
]
JobsCursor = Annotated[str, Field(description=PAGE_BEFORE), Like(r"^[0-9]{1,18}$", ANSWERED)]
BinCursor = Annotated[
    str,
    Field(max_length=100, description=PAGE_BEFORE),
    Like(r"^[0-9]{1,18}\.[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$", ANSWERED),
]


class Request(BaseModel):
    """The body of a request. Unknown fields and wrong types are refused, never ignored or converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    model_config = ConfigDict(from_attributes=True, hide_input_in_errors=True)


NotesFolderAction = Literal["delete", "restore"]
