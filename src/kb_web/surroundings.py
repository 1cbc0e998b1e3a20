"""Fetch the surroundings of a Markdown document: its links, embedded notes, and front matter."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kb.api.errors import KbError, NotFound
from kb.markdown.signs import MARKDOWN
from kb_web.document_html import Row
from kb_web.markdown_html import LONGEST_MATTER
from kb_web.markdown_links import Destination, Surroundings
from kb_web.markdown_syntax import embeds_in
from kb_web.sessions import Visit

MOST_EMBEDDED: Final = 20
EMBEDDED_CHUNKS: Final = 40


async def surroundings(visit: Visit, shown: Row, links: Row) -> Surroundings:
    about = _own(visit.root, shown, links)
    if shown["doc_type"] not in MARKDOWN:
        return about
    text = "".join(chunk["text"] for chunk in shown["chunks"])
    about = await _with_embedded(visit, about, text, shown["id"])
    return replace(about, beginning=await _beginning(visit, shown["id"], shown["chunks"]))


async def surroundings_of_text(visit: Visit, text: str, document_id: int | None) -> Surroundings:
    """Return the surroundings of a text that is not saved yet, of a document or of a new note."""
    about = Surroundings(visit.root if document_id is None else f"../../{visit.root}")  # shown on /d/42/edit
    if not text.strip():
        return about
    try:
        links = await visit.engine.look_up_links(text, document_id)
    except KbError:  # the note was just deleted, or has a text that kb will not save
        return about
    return await _with_embedded(visit, replace(about, links=_known(links)), text, document_id)


async def _with_embedded(visit: Visit, about: Surroundings, text: str, own_id: int | None) -> Surroundings:
    """Return surroundings with the documents that a text embeds."""
    to = (about.destination(target) for target in embeds_in(text) if not about.picture(target))
    ids = list(dict.fromkeys(each.document_id for each in to if each and each.document_id != own_id))
    texts = await asyncio.gather(*(_embedded(visit, document_id, about.root) for document_id in ids[:MOST_EMBEDDED]))
    return replace(about, embedded={number: found for number, found in zip(ids, texts, strict=False) if found})


def _own(root: str, shown: Row, links: Row) -> Surroundings:
    return Surroundings(root, shown["title"], _known(links), frozenset(tag.lower() for tag in shown["tags"]))


def _known(links: Row) -> dict[str, Destination | None]:
    """Return the documents by the targets of links."""
    return {
        link["target"]: link["document_id"] and Destination(link["document_id"], link["title"])
        for link in links["links"]
    }


async def _embedded(visit: Visit, document_id: int, root: str) -> tuple[str, Surroundings] | None:
    """Return the text of a document with its surroundings; None if it is not Markdown."""
    try:
        shown = await visit.engine.document(document_id, chunks=EMBEDDED_CHUNKS)
        if shown["doc_type"] not in MARKDOWN:
            return None
        about = _own(root, shown, await visit.engine.links(document_id))
    except NotFound:  # it was just deleted
        return None
    return "".join(chunk["text"] for chunk in shown["chunks"]), about


async def _beginning(visit: Visit, document_id: int, chunks: Sequence[Row]) -> str:
    """Return the beginning of a file if its text begins with the empty lines that kb keeps for front matter."""
    if not chunks or chunks[0]["index"] or not chunks[0]["text"].startswith("\n\n"):
        return ""
    try:
        data = await visit.engine.file(document_id)
    except KbError:  # kb does not keep files, or it is a note
        return ""
    return data[:LONGEST_MATTER].decode("utf-8-sig", "replace").replace("\r\n", "\n")
