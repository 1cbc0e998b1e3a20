"""Fetch the surroundings of a Markdown document: its links, embedded notes, and front matter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kb.api.errors import KbError, NotFound
from kb.api.markdown_signs import MARKDOWN
from kb.web.document_html import Row
from kb.web.markdown_html import LONGEST_MATTER
from kb.web.markdown_links import Destination, Surroundings
from kb.web.markdown_syntax import embeds_in
from kb.web.sessions import Visit

MOST_EMBEDDED: Final = 20
EMBEDDED_CHUNKS: Final = 40


async def surroundings(visit: Visit, shown: Row, links: Row) -> Surroundings:
    """Return the surroundings of the visible text of a document."""
    about = _own(visit, shown, links)
    if shown["doc_type"] not in MARKDOWN:
        return about
    text = "".join(chunk["text"] for chunk in shown["chunks"])
    to = (about.destination(target) for target in embeds_in(text) if not about.picture(target))
    ids = list(dict.fromkeys(each.document_id for each in to if each and each.document_id != shown["id"]))
    texts = await asyncio.gather(*(_embedded(visit, document_id) for document_id in ids[:MOST_EMBEDDED]))
    embedded = {document_id: found for document_id, found in zip(ids, texts, strict=False) if found}
    return replace(about, embedded=embedded, beginning=await _beginning(visit, shown["id"], shown["chunks"]))


def _own(visit: Visit, shown: Row, links: Row) -> Surroundings:
    known = {
        link["target"]: link["document_id"] and Destination(link["document_id"], link["title"])
        for link in links["links"]
    }
    return Surroundings(visit.root, shown["title"], known, frozenset(tag.lower() for tag in shown["tags"]))


async def _embedded(visit: Visit, document_id: int) -> tuple[str, Surroundings] | None:
    """Return the text of a document with its surroundings; None if it is not Markdown."""
    try:
        shown = await visit.engine.document(document_id, chunks=EMBEDDED_CHUNKS)
        if shown["doc_type"] not in MARKDOWN:
            return None
        about = _own(visit, shown, await visit.engine.links(document_id))
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
