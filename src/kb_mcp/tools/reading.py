"""Read several documents, the notes around a note in its thread, or the outline of a document."""

from itertools import islice
from typing import Final

from kb.api.errors import Invalid, NotFound
from kb.api.fields import NOTE, THREAD
from kb.client.client import JSON, EngineClient
from kb_mcp.tools import compact_answers
from kb_mcp.tools.headings import HEADING_LINE
from kb_mcp.tools.rendering import NOTICE
from kb_mcp.tools.token_budget import AnswerLimiter, shorten_names

MOST_DOCUMENTS: Final = 50
"""Maximum number of documents to read at once."""

MOST_IN_THREAD: Final = 5000


def check_number(ids: list[int]) -> None:
    """Refuse too many documents.

    Raises:
        Invalid: there are more than `MOST_DOCUMENTS`.
    """
    if len(ids) > MOST_DOCUMENTS:
        raise Invalid(f"document_ids: {len(ids)} are too many. Pass at most {MOST_DOCUMENTS} at once.")


async def read_several(engine: EngineClient, chunks: int, ids: list[int]) -> tuple[list[JSON], list[int]]:
    """Return documents with at most so many chunks each, and the ids that do not exist.

    Raises:
        NotFound: none of them exists.
    """
    documents, missing, refused = list[JSON](), list[int](), NotFound()
    for document_id in dict.fromkeys(ids):
        try:
            document = await engine.document(document_id, chunks=chunks)
            texts = [chunk | {"text": compact_answers.passage_text(chunk)} for chunk in document["chunks"]]
            documents.append(document | {"chunks": texts})
        except NotFound as error:
            missing.append(document_id)
            refused = error
    if not documents:
        raise refused
    return documents, missing


def several_pages(limiter: AnswerLimiter, documents: list[JSON], missing: list[int]) -> JSON:
    """Return documents with as much of their text as fits, and the calls that read on."""
    pages = limiter.chunk_pages(documents)
    later = [document["id"] for document in documents[len(pages) :]]
    rest = [f"More did not fit: kb_get(document_ids={later})."] if later else []
    rest += [f"These documents do not exist or are in the bin: {', '.join(map(str, missing))}."] if missing else []
    return {"notice": NOTICE, "documents": pages, **compact_answers.given(rest=" ".join(rest))}


async def in_thread(engine: EngineClient, document: JSON, around: int) -> list[int]:
    """Return the ids of a note and of `around` notes before and after it in its thread, by date and arrival.

    The list is empty if the note has no thread.
    """
    threads = [tag for tag in document["tags"] if tag.startswith(THREAD)]
    if document["doc_type"] != NOTE or not threads:
        return []
    notes = [note async for note in engine.iter_documents(tag=threads[:1], sort="id")]
    notes.sort(key=lambda note: (note["day"], note["date"] or "", note["id"]))
    ids = [note["id"] for note in islice(notes, MOST_IN_THREAD)]
    place = ids.index(document["id"]) if document["id"] in ids else 0
    return ids[max(0, place - around) : place + around + 1]


def outline(limiter: AnswerLimiter, document: JSON, start: int = 0) -> JSON:
    """Return the headings from a chunk on, otherwise the first line of each page, with the numbers of their chunks."""
    listed = _headings(document["chunks"]) or _first_lines(document["chunks"])
    entries = [entry for entry in listed if entry["chunk"] >= start]
    head = shorten_names(compact_answers.document(document))
    shown = limiter.fitting([shorten_names(entry) for entry in entries], head)
    number = document["id"]
    rest = f"Read a section with kb_get(document_id={number}, from_chunk=…, around=2), or with its heading."
    if len(shown) < len(entries):
        following = entries[len(shown)]["chunk"]
        shown = [entry for entry in shown if entry["chunk"] < following] or shown
        following = max(following, shown[-1]["chunk"] + 1)
        rest += (
            f" {len(entries) - len(shown)} more: kb_get(document_id={number}, outline=true, from_chunk={following})."
        )
    return {"notice": NOTICE, **head, "outline": shown, "chunk_count": document["chunk_count"], "rest": rest}


def _headings(chunks: list[JSON]) -> list[JSON]:
    """Return the headings of chunks, as kb read them from the file, otherwise as the text has them in Markdown."""
    entries, before = list[JSON](), list[str]()
    for chunk in chunks:
        path = chunk["place"]["heading"]
        if path and path != before:
            entries.append(_entry(chunk, heading=path[-1], depth=len(path)))
        before = path
    return entries or [
        _entry(chunk, heading=line[2].strip(), depth=len(line[1]))
        for chunk in chunks
        for line in HEADING_LINE.finditer(chunk["text"])
    ]


def _first_lines(chunks: list[JSON]) -> list[JSON]:
    """Return the first line of each page; without pages, of each chunk."""
    first = {chunk["place"]["page"] or -chunk["index"]: chunk for chunk in reversed(chunks)}
    shown = sorted(first.values(), key=lambda chunk: chunk["index"])
    texts = [compact_answers.passage_text(chunk) for chunk in shown]
    lines = [next(filter(str.strip, text.splitlines()), "").strip() for text in texts]
    return [_entry(chunk, line=line) for chunk, line in zip(shown, lines, strict=True)]


def _entry(chunk: JSON, **name: object) -> JSON:
    return {"chunk": chunk["index"], **compact_answers.given(page=chunk["place"]["page"]), **name}
