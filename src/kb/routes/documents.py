"""Documents and their tags."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.background import BackgroundTask

from kb.api.document_models import (
    Backlink,
    Chunk,
    Deleted,
    Document,
    DocumentLinks,
    DocumentList,
    DocumentPages,
    DocumentText,
    DocumentWithChunks,
    Link,
    LinkList,
    LinksRequest,
    Move,
    PathFolder,
    PathFolders,
    RenamedTag,
    TagBranch,
    TagChange,
    TagDeletion,
    TagList,
    TagRename,
)
from kb.api.errors import Invalid
from kb.api.fields import DocumentId, DocumentsCursor, ExactTag, ListSorted
from kb.api.file_types import named_type
from kb.api.filters import ALL_TAGS, ANY_TAG, NO_TAG, SHARED, Filters, IdPrefix, PathFilters, SourcePart
from kb.api.limit_errors import check_note, check_tags
from kb.api.limits import DEFAULT_PAGE, MAX_ID, MAX_NAME, MAX_PATH
from kb.api.search_models import SearchRequest
from kb.api.tag_tree import clean_tag, meant_tag
from kb.documents import tags
from kb.documents.delete import delete, purge
from kb.documents.excerpts import excerpt, excerpt_of_characters, requested_target, window
from kb.documents.lookup import author_of, existing_document, existing_version
from kb.documents.write_document import move
from kb.formats.installed_types import DOC_TYPES
from kb.routes.dependencies import (
    READ,
    WRITE,
    AuthorDep,
    Id,
    PageLimit,
    QueryModel,
    Services,
    ServicesDep,
    check_right,
    turn,
)
from kb.routes.error_replies import links_to_document, problems
from kb.routes.thread_route import ThreadRoute
from kb.store import rows
from kb.store.protocol import Store, Transaction
from kb.store.row_mapping import cursor_after

Word = Annotated[str, Field(min_length=1, max_length=100)]
MOST_MARKED: Final = 32
MOST_FOLDERS: Final = 500
MOST_BACKLINKS: Final = 200

router = APIRouter(route_class=ThreadRoute)
TURN: Any = turn(lambda services: services.picture_queue)


class TextQuery(QueryModel):
    """The excerpt to return, with both ends included for lines and pages, and the end excluded for characters."""

    unit: Literal["lines", "characters", "pages"] = "lines"
    start: Annotated[int | None, Field(alias="from", ge=0, le=MAX_ID)] = None
    end: Annotated[int | None, Field(alias="to", ge=0, le=MAX_ID)] = None


class ChunksQuery(QueryModel):
    """The chunks to return."""

    from_chunk: Annotated[int, Field(ge=0, le=MAX_ID, description="The index of the first chunk.")] = 0
    chunks: Annotated[int | None, Field(ge=1, le=MAX_ID, description="The number of chunks; by default all.")] = None
    version: Annotated[
        int | None, Field(ge=1, le=MAX_ID, description="The version to read; by default the newest.")
    ] = None
    chunk_id: Annotated[int | None, Field(ge=1, le=MAX_ID, description="Only the chunk with this id.")] = None
    page: Annotated[int | None, Field(ge=1, le=MAX_ID, description="Only the chunks on this page.")] = None
    heading: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=MAX_NAME,
            description="Only the chunks under this heading, or the first similar one.",
        ),
    ] = None
    around: Annotated[int, Field(ge=0, le=MAX_ID, description="Also return this many chunks before and after.")] = 0


class ListFilters(PathFilters, QueryModel):
    """The filters by path, id and tag."""

    source_part: SourcePart | None = None
    id_prefix: IdPrefix | None = None
    tag: Annotated[list[ExactTag], ALL_TAGS, Field(default_factory=list)]
    tag_any: Annotated[list[ExactTag], ANY_TAG, Field(default_factory=list)]
    tag_not: Annotated[list[ExactTag], NO_TAG, Field(default_factory=list)]


class DocumentsQuery(Filters, ListFilters):  # the fields of the last base come first
    """The filters and the order of a list of documents."""

    part_of: Annotated[DocumentId | None, Field(description="Only documents inside this one: attachments.")] = None
    sort: ListSorted = "id"
    limit: PageLimit = DEFAULT_PAGE
    cursor: DocumentsCursor | None = None
    total: Annotated[bool, Field(description="Also count the documents on all pages (`total`).")] = False


@router.get("/documents", tags=["documents"], summary="List documents", dependencies=[READ])
def list_documents(services: ServicesDep, query: Annotated[DocumentsQuery, Query()]) -> DocumentList:
    """Return a page of documents, without their text."""
    limit = query.limit
    check_tags(tag=query.tag, tag_any=query.tag_any, tag_not=query.tag_not)
    source_parts = tuple(filter(None, [query.source_part]))
    where = replace(to_filter(services.store, query.tag, query), source_parts=source_parts, id_prefix=query.id_prefix)
    with services.store.view() as tx:
        if query.part_of:
            parts = tx.documents.parts(query.part_of) if tx.documents.get(query.part_of) else []
            where = replace(where, among=tuple(part for part, _ in parts))
        page = tx.documents.page(where, sort=query.sort, limit=limit + 1, cursor=query.cursor)
        more = len(page) > limit
        next_cursor = cursor_after(page[limit - 1], query.sort) if more else None
        total = tx.documents.count(where) if query.total else None
        documents = to_models(tx, page[:limit])
    return DocumentList(documents=documents, next_cursor=next_cursor, total=total)


@router.get(
    "/documents/{document_id}",
    tags=["documents"],
    summary="Get a document",
    dependencies=[READ],
    responses={200: links_to_document("/id"), **problems(404)},
)
def get_document(document_id: Id, services: ServicesDep, query: Annotated[ChunksQuery, Query()]) -> DocumentWithChunks:
    """Return a document with its text in chunks: all chunks, some, or the chunks at a chunk id, page or heading."""
    with services.store.view() as tx:
        if query.version is not None:
            version = existing_version(tx, document_id, query.version)
            every = tx.history.chunks(version)
            places = [rows.ChunkPlace(chunk.id, chunk.index, chunk.place.heading, chunk.place.page) for chunk in every]
            start, limit = _stretch(query, document_id, lambda: places)
            end = None if limit is None else start + limit
            [former] = to_models(tx, [version.document])
            return with_chunks(former, every[start:end], len(every), version.author)
        document = existing_document(tx, document_id)
        start, limit = _stretch(query, document_id, lambda: tx.documents.chunk_places(document_id))
        chunks = tx.documents.chunks(document_id, start, limit)
        count = tx.documents.extent(document_id).chunks
        [model] = to_models(tx, [document])
        author = author_of(tx, document_id)
        part_of = tx.documents.part_of(document_id)
    return with_chunks(model, chunks, count, author, part_of)


def tags_in_use(store: Store) -> list[str]:
    with store.view() as tx:
        return [tag for tag, _ in tx.documents.tags()]


def to_filter(store: Store, tags: Sequence[str], request: SearchRequest | DocumentsQuery) -> rows.Filter:
    """Return the filters of a request for the store."""
    asked = (tags, request.tag_any, request.tag_not)
    known = () if all(clean_tag(tag) == tag for each in asked for tag in each) else tags_in_use(store)
    of_all, of_any, of_none = (tuple(meant_tag(tag, known) for tag in each) for each in asked)
    return rows.Filter(
        tags=of_all,
        tag_any=of_any,
        tag_not=of_none,
        **{name: getattr(request, name) for name in SHARED}
        | {"doc_type": request.doc_type and named_type(request.doc_type, DOC_TYPES)},
    )


def _stretch(
    query: ChunksQuery, document_id: int, places: Callable[[], Sequence[rows.ChunkPlace]]
) -> tuple[int, int | None]:
    """Return the first chunk and the number of requested chunks; None for all."""
    if place := requested_target(query.chunk_id, query.page, query.heading):
        if query.model_fields_set & {"from_chunk", "chunks"}:
            raise Invalid("from_chunk, chunks: cannot be combined with chunk_id, page or heading.")
        return window(places(), document_id, place, query.around)
    if query.around:
        raise Invalid("around: needs chunk_id, page or heading as well.")
    return query.from_chunk, query.chunks


@router.get(
    "/documents/{document_id}/text",
    tags=["documents"],
    summary="Get an excerpt of a document's text",
    dependencies=[READ],
    responses=problems(404, 409),
)
def get_text(document_id: Id, services: ServicesDep, query: Annotated[TextQuery, Query()]) -> DocumentText:
    """Return some lines, characters or pages of a document."""
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
        if query.unit == "characters":
            asked = excerpt_of_characters(tx.documents, document_id, query.start, query.end)
        else:
            chunks = tx.documents.chunks(document_id)
    if query.unit != "characters":
        asked = excerpt(chunks, query.unit, query.start, query.end)
    return DocumentText(document_id=document_id, title=document.title, unit=query.unit, **asdict(asked))


@router.get(
    "/documents/{document_id}/links",
    tags=["documents"],
    summary="List a document's links",
    dependencies=[READ],
    responses=problems(404),
)
def get_links(document_id: Id, services: ServicesDep) -> DocumentLinks:
    """Return the links in a note, a Markdown file or an email, and the documents that link to a document.

    Links are `[[Note]]`, `![[embed]]`, Markdown links to files, `kb://documents/ID`, and web addresses of documents. A
    name leads to the nearest document, as in Obsidian. An email links to the ones it replies to. kb keeps at most
    1,000 links of a document, and lists at most 200 documents in `linked_from`.
    """
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
        links, complete = tx.links.outgoing(document), tx.links.is_complete
        backlinks, count = tx.links.incoming(document, MOST_BACKLINKS)
    return DocumentLinks(
        document_id=document_id,
        links=[Link(**link._asdict()) for link in links],
        linked_from=[Backlink(**backlink._asdict()) for backlink in backlinks],
        linked_from_count=count,
        complete=complete,
    )


@router.post("/links", tags=["documents"], summary="Look up links", dependencies=[READ], responses=problems(404, 413))
def look_up_links(request: LinksRequest, services: ServicesDep) -> LinkList:
    """Return the links in a Markdown text that kb does not have yet, and the documents that they lead to.

    With `document_id`, kb resolves them as links of this document.
    """
    check_note(request.text, services.settings.max_note_chars)
    with services.store.view() as tx:
        document = None if request.document_id is None else existing_document(tx, request.document_id)
        links = tx.links.in_text(request.text, document)
    return LinkList(links=[Link(**link._asdict()) for link in links])


@router.get(
    "/documents/{document_id}/file",
    tags=["documents"],
    summary="Get a document's file",
    dependencies=[READ],
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The uploaded file."},
        **problems(404),
    },
)
def get_file(document_id: Id, services: ServicesDep) -> StreamingResponse:
    """Return the original file of a document, if it was added as a file and kb keeps files."""
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
        path_name = (document.source_path or "").rpartition("/")[2]
        name = path_name or document.filename or document.title
    file = services.originals.open(document)
    return StreamingResponse(
        file.blocks,
        media_type="application/octet-stream",
        headers={"Content-Length": str(file.size), "Content-Disposition": as_attachment(name)},
        background=BackgroundTask(file.close),
    )


def as_attachment(filename: str) -> str:
    """Return the Content-Disposition header of a download (RFC 6266)."""
    return f"attachment; filename*=utf-8''{quote(filename, safe='')}"


@router.patch(
    "/documents/{document_id}",
    tags=["documents"],
    summary="Move a document",
    dependencies=[WRITE],
    responses=problems(400, 404, 409, 413, 507),
)
def move_document(document_id: Id, change: Move, services: ServicesDep, author: AuthorDep) -> Document:
    """Change the source path of a document after its file was renamed or moved.

    The document keeps its id, dates, tags and text. If its title is the name of its file, it gets the file's new name.
    """
    return to_model(services, move(services.store, document_id, change.source_path, author, services.originals))


@router.delete(
    "/documents/{document_id}",
    tags=["documents"],
    summary="Delete a document",
    dependencies=[WRITE],
    responses=problems(404, 409, 507),
)
def delete_document(
    document_id: Id,
    services: ServicesDep,
    author: AuthorDep,
    request: Request,
    purge_: Annotated[bool, Query(alias="purge", description="Delete it for good, even from the bin.")] = False,
    only_binned: Annotated[bool, Query(description="Purge it only if it is in the bin.")] = False,
    leave_out: Annotated[bool, Query(description="Make `kb sync` skip its file from now on.")] = False,
) -> Deleted:
    """Move a document and its attachments to the bin.

    `purge` deletes it for good at once, with all versions and its file; this needs a key with the `admin` right. kb
    also purges documents after their time in the bin.
    """
    if purge_:
        check_right(request, "admin")
        blobs = services.originals.blobs
        which = {"leave_out": leave_out, "only_binned": only_binned}
        document = purge(services.store, services.originals, blobs, document_id, **which)
    else:
        document = delete(services.store, services.originals, document_id, author, leave_out=leave_out)
    return Deleted(document_id=document_id, title=document.title)


@router.patch(
    "/documents/{document_id}/tags",
    tags=["tags"],
    summary="Change a document's tags",
    dependencies=[WRITE],
    responses=problems(400, 404, 409, 413, 507),
)
def change_tags(document_id: Id, change: TagChange, services: ServicesDep, author: AuthorDep) -> Document:
    """Add tags to a document and remove tags, in one step."""
    check_tags(add=change.add, remove=change.remove)
    document = tags.change_tags(services.store, document_id, add=change.add, remove=change.remove, author=author)
    return to_model(services, document)


@router.get("/paths", tags=["documents"], summary="List the folders of paths", dependencies=[READ])
def list_paths(services: ServicesDep, prefix: Annotated[str, Query(max_length=MAX_PATH)] = "") -> PathFolders:
    """Return the folders right below a beginning of paths, such as `vault/`, each with its number of documents."""
    with services.store.view() as tx:
        found = tx.documents.folders(prefix, MOST_FOLDERS)
    folders = [PathFolder(name=name, prefix=f"{prefix}{name}/", documents=number) for name, number in found]
    return PathFolders(folders=folders)


@router.get("/tags", tags=["tags"], summary="List tags", dependencies=[READ])
def list_tags(services: ServicesDep) -> TagList:
    """Return all tags in use and the tags above them, with their numbers of documents."""
    with services.store.view() as tx:
        counts, branches = dict(tx.documents.tags()), tx.documents.branches()
    return TagList(
        tags=[
            TagBranch(tag=tag, documents=counts.get(tag, 0), branch=branches.get(tag, counts.get(tag, 0)))
            for tag in sorted({*counts, *branches})
        ]
    )


@router.post(
    "/tags/rename",
    tags=["tags"],
    summary="Rename a tag",
    dependencies=[WRITE],
    responses=problems(400, 403, 404, 409, 413, 507),
)
def rename_tag(change: TagRename, services: ServicesDep, author: AuthorDep) -> RenamedTag:
    """Rename a tag and all tags below it in all documents, in one step.

    If the new tag is in use, the two are merged. kb also renames the tags in the front matter of notes, but does not
    change files: `from_text` counts the documents whose text still sets the old tag. `POST /undo` undoes the whole
    change.
    """
    check_tags(old=[change.old], new=[change.new])
    renamed = tags.rename_tag(services.store, services.embedder, change.old, change.new, services.stop.check, author)
    return RenamedTag(documents=renamed.documents, from_text=renamed.from_text)


@router.post(
    "/tags/delete",
    tags=["tags"],
    summary="Delete a tag",
    dependencies=[WRITE],
    responses=problems(400, 403, 404, 413, 507),
)
def delete_tag(deletion: TagDeletion, services: ServicesDep, author: AuthorDep) -> RenamedTag:
    """Remove a tag and all tags below it from all documents, in one step. `POST /undo` undoes this as a whole."""
    check_tags(name=[deletion.name])
    deleted = tags.delete_tag(services.store, deletion.name, author)
    return RenamedTag(documents=deleted.documents, from_text=deleted.from_text)


@router.get(
    "/documents/{document_id}/pages",
    summary="Count a document's pages",
    responses=problems(404, 409),
    tags=["documents"],
    dependencies=[READ, TURN],
)
def get_pages(document_id: Id, services: ServicesDep) -> DocumentPages:
    """Return the number of pages of a PDF whose file kb keeps, including pages without text."""
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
    return DocumentPages(document_id=document_id, pages=services.pages.count(document))


@router.get(
    "/documents/{document_id}/pages/{number}.png",
    summary="Get a picture of a page",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "The page as PNG."}, **problems(404, 409)},
    tags=["documents"],
    dependencies=[READ, TURN],
)
def get_page_picture(
    document_id: Id,
    number: Annotated[int, Path(ge=1, le=MAX_ID, description="The number of the page, from 1.")],
    services: ServicesDep,
    chunk: Annotated[int | None, Query(ge=0, le=MAX_ID, description="The index of a chunk to mark.")] = None,
    word: Annotated[list[Word], Query(max_length=MOST_MARKED, description="A word to mark in the chunk.")] = [],  # noqa: B006
) -> Response:
    """Return a page of a PDF as a picture. If the chunk is on this page, it is marked, or only the words in it."""
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
    return Response(services.pages.draw(document, number, chunk, word), media_type="image/png")


@router.get(
    "/documents/{document_id}/thumbnail",
    summary="Get a thumbnail",
    response_class=Response,
    responses={200: {"content": {"image/webp": {}}, "description": "The thumbnail as WebP."}, **problems(404)},
    tags=["documents"],
    dependencies=[READ, turn(lambda services: services.thumbnail_queue)],
)
def get_thumbnail(document_id: Id, services: ServicesDep) -> Response:
    """Return a picture, or the first page of a PDF, at most 192 pixels wide and high."""
    with services.store.view() as tx:
        document = existing_document(tx, document_id)
    return Response(services.pages.thumbnail(document), media_type="image/webp")


def to_models(tx: Transaction, documents: Sequence[rows.Document]) -> list[Document]:
    """Return the responses for documents, each with the note that supersedes it."""
    successors = tx.documents.successors([document.id for document in documents])
    models = [Document.model_validate(document) for document in documents]
    for model in models:
        if model.replaces and not (tx.documents.get(model.replaces) or tx.history.binned(model.replaces)):
            model.replaces = None
        model.replaced_by = successors[model.id][-1] if model.id in successors else None
    return models


def to_model(services: Services, document: rows.Document) -> Document:
    """Return the response for a document in its current state."""
    with services.store.read() as tx:
        [model] = to_models(tx, [document])
        return model


def with_chunks(
    document: Document, chunks: Sequence[rows.Chunk], count: int, author: rows.Author, part_of: int | None = None
) -> DocumentWithChunks:
    """Return the response for a document with chunks, their total number, its last author and its container."""
    models = [Chunk.model_validate(chunk) for chunk in chunks]
    by = {"by": author.by, "client": author.client}
    return DocumentWithChunks(**dict(document), **by, chunks=models, chunk_count=count, part_of=part_of)
