"""Requests and replies about documents, their tags and their links."""

from typing import Annotated, Literal

from pydantic import Field

from kb.api.fields import (
    Day,
    DocumentId,
    ExactTag,
    ExactTags,
    NoteText,
    Reply,
    Request,
    SourcePath,
    Tag,
    Tags,
    Timestamp,
)
from kb.api.note_fields import OptionalFieldsReply


class Move(Request):
    """The new source path of a document."""

    source_path: SourcePath


class TagChange(Request):
    """Tags to add to a document and to remove from it; a tag in both lists stays."""

    add: Tags = []
    remove: ExactTags = []


class TagRename(Request):
    """The tag to rename, with all tags below it, and its new name."""

    old: ExactTag
    new: Tag


class TagDeletion(Request):
    """The name of the tag to remove from all documents, with all tags below it."""

    name: ExactTag


class Place(Reply):
    """The position of a chunk. Lines and pages count from 1, characters from 0 with the end excluded."""

    page: int | None
    heading: list[str]
    line_start: int
    line_end: int
    char_start: int
    char_end: int


class DocumentState(Reply):
    """The fields that every document has."""

    id: int
    title: str
    source_path: str | None
    doc_type: str
    content_hash: str
    tags: list[str]
    date: str | None
    day: Day
    created_at: Timestamp
    updated_at: Timestamp | None


class Document(OptionalFieldsReply, DocumentState):  # the fields of the last base come first
    """A document without its text. `date` is the document's own date, as written in it.

    `day` is the day that this date names, or else the day of the last change. `source` is the origin of a note, in its
    author's words. `replaces` is the note that this one supersedes, `replaced_by` the latest note that supersedes this
    one. `omitted` counts the content of a file that kb did not read, by kind, such as {"files": 2}; the last line of
    the text says the same in words. `language` is an ISO 639-1 code, or null if the language is not clear, as in a
    short or mixed text.
    """

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


class ChangedNote(DocumentWithChunks):
    """A note after a change. Until it is `embedded`, semantic search does not find all of its new passages."""

    embedded: bool


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


class DuplicateGroup(Reply):
    """Documents with the same content, or with nearly the same text, oldest first; at most 100 of all `total`.

    `shared` is the least share of runs of words that two of the documents have in common.
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


class Dismissal(Request):
    """Documents of a group of near duplicates, and whether kb leaves the group out."""

    document_ids: Annotated[
        list[DocumentId],
        Field(min_length=2, max_length=50, description="All documents of the group, such as `[3, 8]`."),
    ]
    dismissed: Annotated[
        bool, Field(description="Whether kb leaves the group out: `true`, or `false` to show it again.")
    ] = True


class DismissedGroup(Reply):
    """A group of near duplicates, and whether kb leaves it out of the list."""

    document_ids: list[int]
    dismissed: bool


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


class PathFolder(Reply):
    """A folder in the paths of documents: its name, the beginning of the paths in it, and its number of documents."""

    name: str
    prefix: str
    documents: int


class PathFolders(Reply):
    """The folders right below a beginning of paths, in the order of their names; at most the first 500."""

    folders: list[PathFolder]


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


class LinksRequest(Request):
    """A text in Markdown whose links are looked up."""

    text: NoteText
    document_id: Annotated[DocumentId | None, Field(description="The document that will have this text.")] = None


class LinkList(Reply):
    """The links in a text, each target once."""

    links: list[Link]


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
