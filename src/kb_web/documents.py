"""Show a document, and the list of documents."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Invalid, KbError, NotFound
from kb.api.file_types import KINDS
from kb.api.tag_tree import split_tags, tags_above
from kb.asgi.security_headers import FOREIGN_HEADERS, PAGE_HEADERS, PDF_HEADERS
from kb.folders.safe_names import safe_name
from kb.markdown.note_file import note_file
from kb.markdown.signs import MARKDOWN
from kb_web.document_html import MAIL, SEPARATOR, Row, body, plain, snippet
from kb_web.folder_tree import folder_tree
from kb_web.markdown_links import PICTURES
from kb_web.marking import matched
from kb_web.notices import one_operation, place_in
from kb_web.pages import (
    count,
    day_asked,
    kind,
    language_asked,
    later_page,
    midnight,
    name_pattern,
    path_asked,
    redirect,
    render,
    zone_of,
)
from kb_web.rows import document_row, folders_above, place
from kb_web.sessions import Visit
from kb_web.surroundings import surroundings

WINDOW: Final = 60
"""Number of chunks on a page of a document."""

MOST_OUTLINED: Final = 600
"""If a document has more chunks, the outline only covers the visible ones."""

PAGE: Final = 40
MOST_MARKED, LONGEST_MARKED = 32, 100
"""Words to mark in a picture, and their length."""

BYTES: Final = "application/octet-stream"
ORDERS: Final = ("recent", "oldest", "date", "title", "path")
COUNTED: Final = 500
"""Number of documents of a filtered list whose tags are counted."""

MOST_TAGS: Final = 60
FOUND: Final = 20
SIMILAR: Final = 5
BACKLINKS: Final = 50
LOOKED_AT: Final = 100
"""Number of documents whose links are looked up before a deletion."""

DISK_SECONDS: Final = 0.5
"""The time limit for looking at a folder: its disk may be away."""

VAULT: Final = ".obsidian"
"""The folder that makes a folder a vault."""

_looks: dict[str, Future[bool]] = {}
"""Looks at folders that wait for their disks."""

PARTS: Final = 100


MEDIA_TYPES: Final = {
    **{suffix: f"image/{suffix[1:]}" for suffix in PICTURES},
    **dict.fromkeys((".jpg", ".jpeg"), "image/jpeg"),
    ".svg": "image/svg+xml",
}
"""Media types of pictures by the suffix of their names."""

PDF: Final = "application/pdf"
PLAIN: Final = "text/plain; charset=utf-8"
PLAIN_TYPES: Final = ("code", "csv", "json", "markdown", "text", "xml")
"""Types of files that browsers show as plain text, whatever is in them."""


async def browse(request: Request, visit: Visit) -> Response:
    """List the documents, newest first."""
    params = request.query_params
    asked = documents_asked(params, zone_of(request))
    cursor = params.get("cursor") or None
    pairs = [(name, value) for name, value in params.multi_items() if name != "cursor" and value]
    unsorted = [pair for pair in pairs if pair[0] != "sort"]
    active = active_filters(pairs)
    page, status, tags, tree = await asyncio.gather(
        visit.engine.documents(**asked, limit=PAGE, cursor=cursor, total="true"),
        visit.engine.status(),
        tags_within(visit, asked) if active else all_tags(visit),
        folder_tree(visit, asked["source_prefix"] or ""),
    )
    return render(
        request,
        "documents.html",
        documents=[document_row(document) for document in page["documents"]],
        total=page["total"],
        later=later_page(page, *pairs),
        is_later=bool(cursor),
        where=urlencode(pairs),
        active=active,
        asked=asked,
        name=params.get("name", ""),
        status=status,
        types=sorted((kind(name), name, number) for name, number in status["documents"].items() if number),
        kinds=[(kind(name), name, number) for name, number in kinds_in(status["documents"]).items()],
        tree=tree,
        orders={name: urlencode([*unsorted, ("sort", name)]) for name in ORDERS},
        tags=[
            row | {"query": urlencode([*pairs, ("tag", row["tag"])])} for row in tags if row["tag"] not in asked["tag"]
        ],
    )


def kinds_in(documents: Mapping[str, int]) -> dict[str, int]:
    """Return the kinds that have several types, each with its number of documents, from their numbers by type."""
    numbers = {name: sum(documents.get(each, 0) for each in types) for name, types in KINDS.items() if len(types) > 1}
    return {name: number for name, number in numbers.items() if number}


async def all_tags(visit: Visit) -> list[Row]:
    return sorted((await visit.engine.tags())["tags"], key=lambda row: -row["branch"])[:MOST_TAGS]


async def tags_within(visit: Visit, asked: dict[str, Any]) -> list[Row]:
    """Return the tags that divide a filtered list, each with its number of documents; None in a long list."""
    page = await visit.engine.documents(**asked, limit=COUNTED)
    rows, is_whole = page["documents"], page["next_cursor"] is None
    counts = Counter(each for row in rows for each in {each for tag in row["tags"] for each in (tag, *tags_above(tag))})
    return [
        {"tag": tag, "branch": number if is_whole else None}
        for tag, number in counts.most_common()
        if number < len(rows) or not is_whole
    ][:MOST_TAGS]


def active_filters(pairs: Sequence[tuple[str, str]]) -> list[Row]:
    """Return the filters in use, each with the query of the list without it."""
    words = {"tag": "#{}", "type": "{}", "lang": "{}", "path": "in {}", "name": "named {}"}
    words |= {"after": "from {}", "before": "before {}"}
    return [
        {
            "label": plain(words[name].format(kind(value) if name == "type" else value), 100),
            "query": urlencode([other for other in pairs if other != (name, value)]),
        }
        for name, value in pairs
        if value and name in words
    ]


def documents_asked(params: QueryParams, zone: tzinfo) -> dict[str, Any]:
    """Return the filters and the order of a list of documents, as the API names them; its days are those of a zone."""
    return {
        "tag": [tag for tag in params.getlist("tag") if tag],
        "doc_type": params.get("type") or None,
        "lang": language_asked(params) or None,
        "source_prefix": path_asked(params) or None,
        "name": name_pattern(params.get("name", "")) or None,
        "after": midnight(day_asked(params, "after"), zone),
        "before": midnight(day_asked(params, "before"), zone),
        "sort": sort if (sort := params.get("sort")) in ORDERS else "recent",
    }


async def document(request: Request, visit: Visit) -> Response:
    """Show the text of a document, scrolled to a highlighted passage."""
    document_id, query = request.path_params["id"], request.query_params.get("q", "").strip()
    chunk_number = number_in(request.query_params.get("chunk"))
    first = chunk_number - WINDOW // 4 if chunk_number else number_in(request.query_params.get("from")) or 0
    start = max(0, first)
    try:
        hits = await _found(visit, document_id, query)
        shown = await visit.engine.document(document_id, from_chunk=start, chunks=WINDOW)
    except NotFound:
        return await _gone(request, visit, document_id)
    if not shown["chunks"] and shown["chunk_count"]:  # the document has become shorter
        chunk_number, start = shown["chunk_count"] - 1, max(0, shown["chunk_count"] - WINDOW)
        shown = await visit.engine.document(document_id, from_chunk=start, chunks=WINDOW)
    chunks, count = shown["chunks"], shown["chunk_count"]
    hit = chunk_number if chunk_number is None or chunk_number < count else count - 1
    here = next((chunk for chunk in hits if chunk["index"] == hit), None)
    words = matched(here["text"], here["highlights"]) if here else set()
    end, links = start + len(chunks), await visit.engine.links(document_id)
    about = await surroundings(visit, shown, links)
    about = replace(about, may_write=visit.right != "read")
    file, vault_link = await local_file(visit, shown)
    row = document_row(shown)
    return render(
        request,
        "document.html",
        document=row,
        folders=folders_above(row["path"]),
        tags=shown["tags"],
        body=await asyncio.to_thread(body, shown["doc_type"], chunks, hit, words, about, is_framed=count > 1),
        outline=outline(await _every(visit, document_id, chunks, count)),
        found=_hit_rows(shown["doc_type"], hits) if count > 1 else [],
        hit=hit,
        query=query,
        neighbours=neighbours(hits, hit),
        start=start,
        earlier=max(0, start - WINDOW) if start else None,
        later=end if end < count else None,
        chunks=chunks if request.query_params.get("show") == "chunks" else None,
        chunk_count=count,
        similar=await similar(visit, shown),
        links_to=linked(links["links"], document_id),
        linked_from=[backlink(each) for each in links["linked_from"][:BACKLINKS]],
        linked_from_count=links["linked_from_count"],
        parts=await parts(visit, shown),
        whole=await whole(visit, shown),
        page=await picture(visit, shown, hit, number_in(request.query_params.get("page")), words),
        is_about=request.query_params.get("about", ""),
        is_note=shown["doc_type"] == "note",
        is_picture=media_type_of(shown) is not None,
        opens=opened_as(shown),
        file_path=file,
        vault_link=vault_link,
        file_name=await renamable(visit, shown),
        is_mail=shown["doc_type"] in MAIL,
    )


def _hit_rows(doc_type: str, hits: Sequence[Row]) -> list[Row]:
    return [
        {
            "index": chunk["index"],
            "place": place({**chunk["place"], "line_start": _line_of_words(chunk)}),
            "snippet": snippet(doc_type, chunk["text"], chunk["highlights"]),
        }
        for chunk in hits
    ]


def _line_of_words(chunk: Row) -> int:
    """Return the line of the first marked word, or failing that, of the beginning of the passage."""
    before = min((first for first, _ in chunk["highlights"]), default=0)
    line: int = chunk["place"]["line_start"] + chunk["text"].count("\n", 0, before)
    return line


def linked(links: Sequence[Row], document_id: int) -> list[Row]:
    """Return the other documents that a document links to, each once."""
    ids = {link["document_id"]: link for link in links if link["document_id"] not in (None, document_id)}
    return [{"id": number, "title": plain(link["title"], 200) or "Untitled"} for number, link in ids.items()]


async def _found(visit: Visit, document_id: int, query: str) -> list[Row]:
    """Return the passages of a document with words of the query, in document order, otherwise the nearest passages."""
    if not query:
        return []
    try:
        reply = await visit.engine.search(query=query, document_id=document_id, top=FOUND)
    except Invalid:
        return []
    marked = [chunk for chunk in reply["results"] if chunk["highlights"]]
    return sorted(marked or reply["results"], key=lambda chunk: chunk["index"])


async def _every(visit: Visit, document_id: int, chunks: Sequence[Row], count: int) -> Sequence[Row]:
    if len(chunks) == count or count > MOST_OUTLINED:
        return chunks
    whole: list[Row] = (await visit.engine.document(document_id))["chunks"]
    return whole


async def _gone(request: Request, visit: Visit, document_id: int) -> Response:
    """Show that a document is in the bin, so that links to it stay useful."""
    history = await visit.engine.history(document_id, limit=1)
    if not history["deleted_at"]:
        raise NotFound
    title = plain(history["versions"][0]["title"], 200) if history["versions"] else f"Document {document_id}"
    return render(request, "binned.html", 410, id=document_id, title=title, deleted_at=history["deleted_at"])


def outline(chunks: Sequence[Row]) -> list[Row]:
    """Return the headings, or the pages of a text without headings, each with its first chunk."""
    rows: list[Row] = []
    for before, chunk in pairwise([None, *chunks]):
        assert chunk  # noqa: S101 - only the first of a pair is None
        heading, former = chunk["place"]["heading"], before["place"]["heading"] if before else []
        shared = next(
            (at for at, pair in enumerate(zip(heading, former, strict=False)) if pair[0] != pair[1]),
            min(len(heading), len(former)),
        )
        rows += (
            {"level": min(level, 3), "title": plain(heading[level], 100), "index": chunk["index"]}
            for level in range(shared, len(heading))
            if SEPARATOR not in heading[level]  # the columns of a table
        )
    pages: dict[int, int] = {}
    for chunk in chunks:
        if chunk["place"]["page"]:
            pages.setdefault(chunk["place"]["page"], chunk["index"])
    return rows or [
        {"level": 0, "title": f"Page {page}", "index": index} for page, index in pages.items() if len(pages) > 1
    ]


def backlink(row: Row) -> Row:
    """Return a document that links to the visible one, with the line of the link as plain text."""
    return {
        "id": row["document_id"],
        "title": plain(row["title"], 200) or "Untitled",
        "passage": snippet("note", row["passage"], ()),
    }


def neighbours(hits: Sequence[Row], hit: int | None) -> tuple[int | None, int | None]:
    """Return the matching passages before and after the visible one."""
    before = [chunk["index"] for chunk in hits if hit is not None and chunk["index"] < hit]
    after = [chunk["index"] for chunk in hits if hit is None or chunk["index"] > hit]
    return (before[-1] if before else None), (after[0] if after else None)


async def similar(visit: Visit, shown: Row) -> list[Row]:
    try:
        reply = await visit.engine.similar(shown["id"], top=SIMILAR)
    except Invalid:  # KB_MAX_TOP is lower
        return []
    return [document_row(result) for result in reply["results"]]


async def parts(visit: Visit, shown: Row) -> list[Row]:
    """Return the documents inside this one: attachments of a mail, or parts of an export."""
    page = await visit.engine.documents(part_of=shown["id"], limit=PARTS)
    return [document_row(part) for part in page["documents"]]


async def whole(visit: Visit, shown: Row) -> Row | None:
    """Return the document that contains this one."""
    if not shown["part_of"]:
        return None
    try:
        return document_row(await visit.engine.document(shown["part_of"], chunks=1))
    except NotFound:  # it was just deleted
        return None


async def page_picture(request: Request, visit: Visit) -> Response:
    """Return a picture of a PDF page with a passage marked."""
    chunk = number_in(request.query_params.get("chunk"))
    words = [word for word in request.query_params.getlist("word") if 0 < len(word) <= LONGEST_MARKED][:MOST_MARKED]
    content = await visit.engine.page_picture(request.path_params["id"], request.path_params["number"], chunk, words)
    return Response(content, headers=PAGE_HEADERS, media_type="image/png")


async def thumbnail(request: Request, visit: Visit) -> Response:
    """Return a document in small; the browser keeps it for an hour, or until its reader signs out."""
    content = await visit.engine.thumbnail(request.path_params["id"])
    headers = {**PAGE_HEADERS, **FOREIGN_HEADERS, "Cache-Control": "private, max-age=3600"}
    return Response(content, headers=headers, media_type="image/webp")


async def picture(
    visit: Visit, shown: Row, hit: int | None, chunk_number: int | None, words: Iterable[str]
) -> Row | None:
    """Return the PDF page to show as a picture, and whether another one follows."""
    pages = [chunk["place"]["page"] for chunk in shown["chunks"] if chunk["place"]["page"]]
    if shown["doc_type"] != "pdf" or not pages:
        return None
    at_hit = next((chunk["place"]["page"] for chunk in shown["chunks"] if chunk["index"] == hit), None)
    number, last = chunk_number or at_hit or pages[0], max(pages)
    if number >= last:  # later pages may have no text
        last = await page_count(visit, shown["id"], last)
    number = min(number, last)
    marked = (
        [("chunk", hit), *(("word", word) for word in sorted(words))] if number == at_hit and hit is not None else []
    )
    return {"number": number, "marked": urlencode(marked), "has_next": number < last}


async def page_count(visit: Visit, document_id: int, known: int) -> int:
    """Return the number of pages of a PDF; the known number if they cannot be counted."""
    try:
        return int((await visit.engine.pages(document_id))["pages"])
    except KbError:  # the page works without the number
        return known


async def download(request: Request, visit: Visit) -> Response:
    """Return the original file as a download, or a note as Markdown; the browser must not display it."""
    document_id = request.path_params["id"]
    shown = await visit.engine.document(document_id, chunks=1)  # an error here is shown as a page
    if shown["doc_type"] == "note":
        headers = {"Content-Disposition": f"attachment; filename*=utf-8''{quote(note_name(shown), safe='')}"}
        return Response(await markdown_of(visit, shown), 200, {**PAGE_HEADERS, **FOREIGN_HEADERS, **headers}, BYTES)
    return visit.stream(f"documents/{document_id}/file", {**PAGE_HEADERS, **FOREIGN_HEADERS})


def note_name(note: Row) -> str:
    """Return the name of a note's Markdown file: the name of its file, or its title."""
    stem = PurePath(note["source_path"] or "").stem or note["title"].replace("/", "-") or f"Note {note['id']}"
    return safe_name(f"{stem}.md")


async def markdown_of(visit: Visit, note: Row) -> str:
    """Return a note as a Markdown file."""
    whole = await visit.engine.document(note["id"])
    return await asyncio.to_thread(note_file, whole, "".join(chunk["text"] for chunk in whole["chunks"]))


async def show_picture(request: Request, visit: Visit) -> Response:
    """Return a document that is a picture, to be shown; its type comes from its name.

    Raises:
        NotFound: the document is not a picture.
    """
    shown = await visit.engine.document(request.path_params["id"], chunks=1)
    return shown_as(visit, shown, media_type_of(shown))


async def open_file(request: Request, visit: Visit) -> Response:
    """Return the original file, to be shown by the browser: a picture, a PDF or a plain text.

    Raises:
        NotFound: browsers would not show the file, or it could run scripts.
    """
    shown = await visit.engine.document(request.path_params["id"], chunks=1)
    return shown_as(visit, shown, opened_as(shown))


def shown_as(visit: Visit, shown: Row, media_type: str | None) -> Response:
    if not media_type:
        raise NotFound
    name = (shown["source_path"] or shown["title"]).rpartition("/")[2]
    foreign = PDF_HEADERS if media_type == PDF else FOREIGN_HEADERS
    headers = {"Content-Type": media_type, "Content-Disposition": f"inline; filename*=utf-8''{quote(name, safe='')}"}
    return visit.stream(f"documents/{shown['id']}/file", {**PAGE_HEADERS, **foreign, **headers})


def opened_as(shown: Row) -> str | None:
    """Return the media type under which a browser shows a file; None if it should not."""
    by_type = {"pdf": PDF, **dict.fromkeys(PLAIN_TYPES, PLAIN)}
    return media_type_of(shown) or by_type.get(shown["doc_type"])


async def local_file(visit: Visit, shown: Row) -> tuple[str | None, str | None]:
    """Return the path of a file, and the address that opens it in Obsidian if it is in a vault on this machine."""
    path = shown["source_path"]
    if not path or shown["part_of"]:
        return None, None
    folders = (await visit.engine.folders())["folders"]
    folder = next((folder for folder in folders if path.startswith(folder["prefix"])), None)
    if folder is None:
        return (path if PurePath(path).is_absolute() else None), None
    file = str(PurePath(folder["path"], path.removeprefix(folder["prefix"])))
    is_note = folder["host"] == socket.gethostname() and file.lower().endswith(".md")
    if is_note and await is_seen_as_vault(folder["path"]):
        return file, f"obsidian://open?{urlencode({'path': file}, quote_via=quote)}"
    return file, None


async def is_seen_as_vault(path: str) -> bool:
    """Return whether a folder is a vault, or in one; False if its disk does not respond in time."""
    before = _looks.get(path)
    look = before or Future()
    if before is None:  # one thread per folder at most: a call to a missing disk never returns
        _looks[path] = look
        threading.Thread(target=look_at, args=[path, look], name="kb-vault", daemon=True).start()
    await asyncio.wait([asyncio.wrap_future(look)], timeout=DISK_SECONDS)
    return look.done() and look.result()


def look_at(path: str, look: Future[bool]) -> None:
    """Set the result of a look to whether a folder is a vault."""
    is_found = is_vault(path)
    del _looks[path]
    look.set_result(is_found)


def is_vault(path: str) -> bool:
    """Return whether a folder is a vault, or in one."""
    with suppress(OSError, ValueError):
        return any((folder / VAULT).is_dir() for folder in (Path(path), *Path(path).parents))
    return False


def media_type_of(shown: Row) -> str | None:
    """Return the media type of a picture by its name; None for other documents."""
    name = shown["source_path"] or shown["title"]
    return MEDIA_TYPES.get(f".{name.rpartition('.')[2].lower()}") if shown["doc_type"] not in MARKDOWN else None


async def change_tags(request: Request, visit: Visit) -> Response:
    form, document_id = await visit.form(request), request.path_params["id"]
    added = [tag for text in form.getlist("add") for tag in split_tags(str(text))]
    removed = [str(tag) for tag in form.getlist("remove")]
    if added or removed:
        await visit.engine.change_tags(document_id, add=added, remove=removed)
    return redirect(visit, f"d/{document_id}?about=1")


async def rename(request: Request, visit: Visit) -> Response:
    """Give the file of a document another name in its folder; a name without a suffix keeps the former one."""
    form, document_id = await visit.form(request), request.path_params["id"]
    shown = await visit.engine.document(document_id, chunks=1)
    former, name = await renamable(visit, shown), str(form.get("name", "")).strip()
    if not former:
        raise Invalid("name: it has no file of its own, or the file is in a synced folder. Rename the file there.")
    if not name or "/" in name:
        raise Invalid("name: write the new name of the file, without a folder.")
    suffix = PurePath(former).suffix
    name += "" if name.lower().endswith(suffix.lower()) else suffix
    place = f"d/{document_id}?about=1"
    async with one_operation(visit, place) as outcome:
        await visit.engine.move_document(document_id, shown["source_path"].removesuffix(former) + name)
        outcome.text, outcome.if_unchanged = f"Renamed to “{plain(name, 100)}”.", "The file already had this name."
    return redirect(visit, place)


async def renamable(visit: Visit, shown: Row) -> str | None:
    """Return the name of a document's file; None if it has none of its own, or the file is in a synced folder."""
    path = shown["source_path"] or ""
    if shown["doc_type"] == "note" or shown["part_of"] or "://" in path or visit.right == "read":
        return None
    is_synced = path and folder_of_file(shown, (await visit.engine.folders())["folders"])
    return None if is_synced else path.rpartition("/")[2] or None


async def delete(request: Request, visit: Visit) -> Response:
    """Move a document to the bin; ask first if a sync would add its file again."""
    form, document_id = await visit.form(request), request.path_params["id"]
    if form.get("sure") != "1":
        shown = await visit.engine.document(document_id, chunks=1)
        if folder := folder_of_file(shown, (await visit.engine.folders())["folders"]):
            title = plain(shown["title"], 200) or f"Document {document_id}"
            path, back = plain(shown["source_path"], 500), place_in(form)
            return render(request, "delete.html", id=document_id, title=title, path=path, folder=folder, back=back)
    back, linking = place_in(form, "bin"), await linking_documents(visit, [document_id])
    async with one_operation(visit, back) as outcome:
        deleted = await visit.engine.delete_document(document_id, leave_out=form.get("leave_out") == "1")
        outcome.text = f"Deleted “{plain(deleted['title'], 100) or 'Untitled'}”.{told_of(linking, 'it')}"
    return redirect(visit, back)


class Linking(NamedTuple):
    """The documents with links to others, and whether these are all."""

    documents: list[Row]
    is_whole: bool = True


async def linking_documents(visit: Visit, ids: Sequence[int], kept: int | None = None) -> Linking:
    """Return the documents with links that lead nowhere when other documents are deleted.

    Args:
        ids: the documents to delete; of more than `LOOKED_AT`, only the first ones count.
        kept: the id of a document with the same content that stays: links by a name that it also has then lead to it.
    """
    gone, found, is_whole = set(ids), dict[int, Row](), len(ids) <= LOOKED_AT
    for document_id in ids[:LOOKED_AT]:
        try:
            links = await visit.engine.links(document_id)
        except NotFound:
            continue
        found |= {row["document_id"]: row for row in links["linked_from"] if row["document_id"] not in gone}
        is_whole &= links["linked_from_count"] <= len(links["linked_from"])
    if kept is not None:
        copy = await visit.engine.document(kept, chunks=1)
        found = {number: row for number, row in found.items() if await loses_links(visit, number, ids, copy)}
    return Linking([backlink(row) for row in found.values()], is_whole)


async def loses_links(visit: Visit, document_id: int, ids: Sequence[int], kept: Row) -> bool:
    """Return whether a document links to some of these documents by more than a name that `kept` also has."""
    name = (kept["source_path"] or kept["title"]).rpartition("/")[2].casefold()
    links = (await visit.engine.links(document_id))["links"]
    targets = (unquote(link["target"].partition("#")[0]).casefold() for link in links if link["document_id"] in ids)
    return any(target not in (name, name.removesuffix(".md")) for target in targets)


def told_of(linking: Linking, what: str) -> str:
    """Return the number of documents that had links to `what`, in words."""
    number = count(len(linking.documents), "document")
    least = "" if linking.is_whole else "At least "
    return f" {least}{number} had links to {what}." if linking.documents else ""


def folder_of_file(shown: Row, folders: Sequence[Row]) -> Row | None:
    """Return the folder that contains a document's file, or None."""
    path = shown["source_path"]
    if shown["doc_type"] == "note" or path is None or shown["part_of"]:
        return None
    folder = next((folder for folder in folders if path.startswith(folder["prefix"])), None)
    return folder and {
        "prefix": folder["prefix"],
        "path": plain(folder["path"], 300),
        "host": plain(folder["host"], 100),
    }


def number_in(text: str | None) -> int | None:
    """Return the number in a text; None if it is not a number or too large."""
    return int(text) if text and text.isdecimal() and len(text) < 10 else None
