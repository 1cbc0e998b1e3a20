"""Requests and replies about notes."""

from typing import Annotated

from pydantic import ConfigDict, Field

from kb.api.fields import (
    THREAD,
    DocumentId,
    ExactTags,
    GivenDay,
    NoteText,
    Reply,
    Request,
    SourcePath,
    Tag,
    Tags,
    Title,
)
from kb.api.note_fields import OptionalFieldsRequest


class NoteContent(Request):
    """The text of a new note, its title and its place."""

    text: NoteText
    title: Title | None = None
    tags: Tags = []
    source_path: SourcePath | None = None
    thread: Annotated[
        Tag | None, Field(description="The note's thread: related notes help find it. Becomes the tag `thread:…`.")
    ] = None


class NoteRequest(OptionalFieldsRequest, NoteContent):  # the fields of the last base come first
    """A new note."""

    replaces: Annotated[DocumentId | None, Field(description="The id of the note that this note supersedes.")] = None
    if_new: Annotated[
        bool,
        Field(
            description="Store nothing if a note already says this, perhaps in other words. `alike` names that note."
        ),
    ] = False
    inline_tags: Annotated[bool, Field(description="Also add the #tags in the text, as in Markdown files.")] = False

    @property
    def all_tags(self) -> list[str]:
        """The tags, including the tag of the thread."""
        return [*self.tags, f"{THREAD}{self.thread}"] if self.thread else self.tags


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
    date: Annotated[
        GivenDay | None, Field(description="The new date, in the front matter: when this was said or happened.")
    ] = None
    valid_until: Annotated[GivenDay | None, Field(description="The last day on which the note is true.")] = None
    tags_add: Tags = []
    tags_remove: ExactTags = []
    inline_tags: Annotated[bool, Field(description="Also add any #tags that the edit adds to the text.")] = False
    once: Annotated[
        bool,
        Field(
            description="Refuse an edit of a part that the same key and program made less than ten minutes ago, if its"
            " words are still there. For clients that may retry a call whose response they missed."
        ),
    ] = False


class Alike(Reply):
    """A note that is similar to a new one, with the beginning of its text.

    `likeness` is from 0 to 1: of the meanings, or of the words as long as the new note has no vector.
    """

    document_id: int
    title: str
    text: str
    likeness: float = 0.0
