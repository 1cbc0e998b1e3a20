"""Tools for searching, listing, reading, notes, deletion, status and jobs (requirements G-5, G-6, G-11 to G-16).

Agents read the docstring of a tool as its description.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastmcp.tools import ToolResult
from pydantic import BeforeValidator, Field, WithJsonSchema

from kb.api import fields
from kb.api.date_parsing import day, moment
from kb.api.errors import Changed, Invalid, KbError, NotFound, Unauthorized
from kb.api.limits import DEFAULT_TOP, MAX_ID, MAX_PAGE, MAX_TOP
from kb.api.search_wording import PROBABLY_NOT, has_no_word, written
from kb.client.brief import Brief
from kb.client.client import JSON, EngineClient
from kb_mcp.auth import current_name
from kb_mcp.clients import client_name
from kb_mcp.tools import compact_answers, rendering, token_budget
from kb_mcp.tools.change_conflicts import parse_version, refused_change
from kb_mcp.tools.empty_results import nothing_found, retried, zone_of_days
from kb_mcp.tools.headings import document_under
from kb_mcp.tools.link_walk import MOST_STEPS, WALK_TOKENS, walk, walk_page
from kb_mcp.tools.path_hints import check_path
from kb_mcp.tools.reading import check_number, in_thread, read_several, several_pages
from kb_mcp.tools.reading import outline as make_outline
from kb_mcp.tools.rendering import NOTICE, pending_text, quoted, without_tags
from kb_mcp.tools.shortened_results import best, other_languages_text
from kb_mcp.tools.token_budget import (
    STEP,
    AnswerLimiter,
    check_from_chunk,
    shorten_names,
    tool_result,
    with_notice,
)

WILDCARD: Final = re.compile(r"\s*[\"'.]?[*%?.]{1,2}[\"']?\s*")
"""What agents send to get everything; a search by meaning would find anything."""

WAIT_SECONDS: Final = 1
"""Seconds that an answer waits for the job of a note."""

MAX_ALIKE: Final = 120
"""Maximum characters of a title or a text of a note that says nearly the same."""

CHARACTERS_OF_A_CHUNK: Final = 400
"""Fewer than in most chunks of long documents."""

NO_WORD: Final = "Nothing found: no document contains any word from the query."
LIST_END: Final = "No more documents: the list ended before this cursor."
FRONT_MATTER: Final = ("---\n", "+++\n")
OWN_DATE: Final = re.compile(r"---\ndate: [\d-]+\n---\n")
LINKING_TYPES: Final = (fields.NOTE, "markdown", "eml", "msg")
MAX_LINKS: Final = 8
"""How many links kb_get names in each direction."""

MAX_TAGS: Final = 40
"""Maximum number of tags in kb_status, the most used first."""


def _check_integer(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    if isinstance(value, int) and abs(value) > MAX_ID:
        raise ValueError("is too large")
    return value


WHOLE = BeforeValidator(_check_integer)
"""Refuses true and false. It must follow the bounds of a number, or pydantic omits them from the schema."""

Tag = Annotated[fields.Tag, WithJsonSchema({"type": "string"})]
Tags = Annotated[list[Tag], Field(fail_fast=True)]
DocumentId = Annotated[int, Field(ge=1, description="The document's id."), WHOLE]
AllTags = Annotated[list[str], Field(fail_fast=True, description="Only documents with all of these tags.")]
AnyTags = Annotated[list[str], Field(fail_fast=True, description="Only documents with at least one of these tags.")]
NoTags = Annotated[list[str], Field(fail_fast=True, description="Only documents without any of these tags.")]
TagExact = Annotated[bool, Field(description="Exclude subtags.")]
DocType = Annotated[str, Field(description="A type, such as pdf.")]
SourcePrefix = Annotated[str, Field(description="Path starts with: /docs/.")]
Name = Annotated[str, Field(description="Only files with this name: memo*.")]
After = Annotated[str, Field(description="Dated on or after: 2026-11, monday.")]
Before = Annotated[str, Field(description="Dated before this.")]
UpdatedAfter = Annotated[str, Field(description="Changed since: 2 hours ago.")]
Cursor = Annotated[str, Field(description="The next_cursor from the previous page.")]


class DocumentTools:
    def __init__(self, engine: EngineClient, limiter: AnswerLimiter) -> None:
        self._engine = engine
        self._limiter = limiter

    async def kb_search(
        self,
        query: Annotated[
            str, Field(description="A question or words; tag:x, path:x, by:x, before:2026 and -word narrow it.")
        ],
        top: Annotated[
            int,
            Field(ge=0, le=MAX_TOP, description=f"How many results, up to {MAX_TOP}; by default the best few."),
            WHOLE,
        ] = 0,
        tags: AllTags = [],  # noqa: B006 - pydantic copies it
        tag_any: AnyTags = [],  # noqa: B006 - pydantic copies it
        tag_not: NoTags = [],  # noqa: B006 - pydantic copies it
        tag_exact: TagExact = False,
        doc_type: DocType = "",
        lang: Annotated[str, Field(description="Only documents in this language: en.")] = "",
        source_prefix: SourcePrefix = "",
        name: Name = "",
        document_id: Annotated[int, Field(ge=0, description="Search in this document only."), WHOLE] = 0,
        after: After = "",
        before: Before = "",
        updated_after: UpdatedAfter = "",
        sort: Annotated[Literal["relevance", "recent"], Field(description="The order.")] = "relevance",
        group_by: Annotated[
            Literal["passage", "document"], Field(description="document: one result per document.")
        ] = "passage",
        fts_only: Annotated[bool, Field(description="Search by words only.")] = False,
        vec_only: Annotated[bool, Field(description="Search by meaning only.")] = False,
    ) -> ToolResult:
        """Search the user's notes and files for passages that answer a question, best first.

        Use it before you answer from memory; one search is usually enough. For a complex question, search with 2-3
        variant phrasings, drop duplicates by chunk_id, and rerank. To list documents, use kb_list; to read on, kb_get.
        """
        if WILDCARD.fullmatch(query):
            raise Invalid("query: pass at least one word. kb_list lists all documents, or those with a tag.")
        request: dict[str, Any] = compact_answers.given(
            tags=tags,
            tag_any=tag_any,
            tag_not=tag_not,
            tag_exact=tag_exact or None,
            doc_type=doc_type,
            lang=lang,
            source_prefix=source_prefix,
            name=name,
            document_id=document_id or None,
            after=moment(after, "after"),
            before=moment(before, "before"),
            updated_after=moment(updated_after, "updated_after"),
            group_by="document" if group_by == "document" else "",
        )
        modes = {"query": query, "top": top or DEFAULT_TOP, "sort": sort, "fts_only": fts_only, "vec_only": vec_only}
        reply = await self._engine.search(**modes, **request)
        reply, corrected = await retried(
            self._engine, reply, lambda fixed: self._engine.search(**modes, **fixed), request
        )
        is_ranked = not (fts_only or vec_only or sort == "recent")
        data = self._limiter.search_results(best(reply, top, is_ranked=is_ranked))
        data["results"] = compact_answers.without_own(data["results"], current_name() or client_name())
        for result in data["results"]:
            if result.pop("changed", ""):
                result |= await self._change_of_text(result["document_id"])  # or only its title or tags changed
        weak = [
            *corrected,
            *_operators(reply),
            *map(_misspelling, reply["unknown"]),
            *_as_typed(reply),
            *_unreadable(reply),
            *_weakness(reply, fts_only=fts_only, vec_only=vec_only),
            *other_languages_text(reply),
        ]
        data |= compact_answers.given(weak=" ".join(weak))
        used = _with_operators(request, reply)
        if data["results"]:
            data |= compact_answers.given(rest=zone_of_days(used))
        else:
            data["rest"] = " ".join([await nothing_found(self._engine, used) or NO_WORD, zone_of_days(used)]).strip()
        return tool_result(data, rendering.render("kb_search", without_tags(data, tags)))

    async def kb_list(
        self,
        tags: Annotated[list[Tag], Field(fail_fast=True, description="Only documents with all of these tags.")] = [],  # noqa: B006 - pydantic copies it
        tag_any: AnyTags = [],  # noqa: B006 - pydantic copies it
        tag_not: NoTags = [],  # noqa: B006 - pydantic copies it
        tag_exact: TagExact = False,
        doc_type: DocType = "",
        by: Annotated[str, Field(description="Changed by this key or agent.")] = "",
        source_prefix: SourcePrefix = "",
        name: Name = "",
        after: After = "",
        before: Before = "",
        updated_after: UpdatedAfter = "",
        sort: Annotated[
            Literal["changed", "date", "oldest", "id"],
            Field(description="The order."),
        ] = "changed",
        text: Annotated[int, Field(ge=0, le=2000, description="Show this many characters of each."), WHOLE] = 0,
        deleted: Annotated[bool, Field(description="List the bin instead.")] = False,
        brief: Annotated[str, Field(description="Get a brief on this project instead.")] = "",
        limit: Annotated[int, Field(ge=1, le=200, description="How many, up to 200."), WHOLE] = 50,
        cursor: Cursor = "",
    ) -> ToolResult:
        """List documents by tags, type, folder or date, and count them.

        Use it for everything on a topic, or for the newest documents; to answer a question, use kb_search. To read a
        thread in order, pass its tag, sort=id and text.
        """
        if brief:
            said = await Brief(self._engine, rendering.one_line).text(brief)
            return tool_result({"notice": NOTICE, "brief": said}, said)
        request: dict[str, Any] = compact_answers.given(
            tag=tags,
            tag_any=tag_any,
            tag_not=tag_not,
            tag_exact=tag_exact or None,
            doc_type=doc_type,
            by=by,
            source_prefix=source_prefix,
            name=name,
            after=moment(after, "after"),
            before=moment(before, "before"),
            updated_after=moment(updated_after, "updated_after"),
        )
        if deleted:
            if request:
                raise Invalid(
                    f"{next(iter(request))}: the bin has no filters. Combine deleted with limit and cursor only."
                )
            return rendered(
                "kb_list", self._limiter.bin_list(await self._engine.bin(limit=limit, cursor=cursor or None))
            )
        page = {"sort": "recent" if sort == "changed" else sort, "total": True, "cursor": cursor or None}

        async def documents(filters: JSON, limit: int = limit) -> JSON:
            return await self._engine.documents(**page, **filters, limit=limit)

        reply = await documents(request)
        reply, corrected = await retried(self._engine, reply, documents, request)
        is_by_change = sort == "changed" or bool(updated_after)
        described = partial(self._described, is_by_change=is_by_change, characters=text, has_kinds=bool(updated_after))
        whole = await described(reply)
        data = self._limiter.document_list(whole)
        if len(data["documents"]) < len(whole["documents"]):
            data = self._limiter.document_list(await described(await documents(request, len(data["documents"]))))
        data["total"] = reply["total"]
        data["rest"] = _list_end(data, corrected, sort if sort in ("date", "id") or not is_by_change else "")
        if not data["documents"]:
            data["rest"] = LIST_END if cursor else await self._nothing_listed(request)
        data["rest"] = f"{data['rest']} {zone_of_days(request)}".strip()
        return rendered("kb_list", data)

    async def _change_of_text(self, document_id: int) -> JSON:
        with suppress(NotFound):  # it was just deleted
            return compact_answers.change_of_text((await self._engine.history(document_id))["versions"])
        return {}

    async def _described(self, reply: JSON, *, is_by_change: bool, characters: int, has_kinds: bool) -> JSON:
        """Return a page with the time of each document's last change, its kind, and the first characters."""
        documents = list[JSON]()
        for document in reply["documents"]:
            extra: JSON = {}
            if is_by_change:
                extra["changed"] = document["updated_at"] or document["created_at"]
            with suppress(NotFound):  # it was just deleted
                if has_kinds:
                    versions = (await self._engine.history(document["id"], limit=2))["versions"]
                    extra["change"] = compact_answers.change_between(versions)
                if characters:
                    extra["text"] = await self._beginning(document["id"], characters)
                documents.append(document | extra)
        return reply | {"documents": documents}

    async def _beginning(self, document_id: int, characters: int) -> str:
        chunks = (await self._engine.document(document_id, chunks=1 + characters // CHARACTERS_OF_A_CHUNK))["chunks"]
        text = "".join(chunk["text"] for chunk in chunks)
        shown = compact_answers.passage_text({"text": text, "index": 0})
        return shown if len(shown) <= characters else f"{shown[:characters]}…"

    async def _nothing_listed(self, request: JSON) -> str:
        """Return the reason for an empty list: its filters, or documents that kb is still reading."""
        queue = (await self._engine.status())["queue"]
        reason = await nothing_found(self._engine, request) or "kb has no documents yet."
        return " ".join(filter(None, (reason, pending_text(queue["queued"] + queue["running"]))))

    async def kb_addnote(
        self,
        text: Annotated[str, Field(min_length=1, description="Plain text or Markdown.")],
        title: Annotated[str, Field(description="By default, the first line.")] = "",
        tags: Annotated[Tags, Field(description="Tags, such as work.")] = [],  # noqa: B006 - pydantic copies it
        source_path: Annotated[str, Field(description="Its path: prefs/anna. Replaces any note there.")] = "",
        date: Annotated[str, Field(description="When it happened: yesterday.")] = "",
        thread: Annotated[str, Field(description="Groups notes on one topic: trip-oslo.")] = "",
        source: Annotated[str, Field(description="Who or what says so: Ada.")] = "",
        valid_until: Annotated[str, Field(description="The last day it is true.")] = "",
        replaces: Annotated[int, Field(ge=0, description="The note this one supersedes."), WHOLE] = 0,
        if_new: Annotated[bool, Field(description="Store nothing if a note already says this.")] = False,
    ) -> ToolResult:
        """Store a note that makes sense on its own: a fact, decision or preference, with who, when and why.

        Search first. If a note about it was wrong, correct it with kb_update_note; if it was true and no longer is,
        pass its id as replaces. The response lists similar notes (alike) or the nearest one; existed means kb already
        had this text; stored=false means if_new stored nothing.
        """
        if source_path:
            await check_path(self._engine, source_path, is_note=True)
        accepted = await self._engine.add_note(
            text=dated_text(text, date),
            title=title or None,
            tags=tags,
            source_path=source_path or None,
            valid_until=day(valid_until, "valid_until"),
            **compact_answers.given(thread=thread, source=source, replaces=replaces or None, if_new=if_new or None),
        )
        if accepted["document_id"] is None and accepted["stored"]:  # a note with pictures, which become a file
            accepted |= await self._engine.job(accepted["job_id"], wait=WAIT_SECONDS)
        near = accepted["alike"] or list(filter(None, [accepted.pop("nearest", None)]))
        which = "alike" if accepted.pop("alike") else "nearest"
        named = {which: [_alike(note) for note in near], "likeness": near[0].get("likeness")} if near else {}
        answer = compact_answers.receipt(accepted) | compact_answers.given(**named, date=day(date, "date"))
        return tool_result(with_notice(answer) if near else answer)

    async def kb_update_note(
        self,
        document_id: Annotated[int, Field(ge=0, description="The document's id."), WHOLE] = 0,
        text: Annotated[str, Field(description="The whole text, to replace it.")] = "",
        old: Annotated[str, Field(description="A part to replace; must occur once.")] = "",
        new: Annotated[str, Field(description="What replaces old.")] = "",
        append: Annotated[str, Field(description="Lines to add at the end.")] = "",
        prepend: Annotated[str, Field(description="Lines to add at the start.")] = "",
        title: Annotated[str, Field(description="A new title.")] = "",
        date: Annotated[str, Field(description="When this was said.")] = "",
        valid_until: Annotated[str, Field(description="The last day it is true.")] = "",
        tags_add: Annotated[Tags, Field(description="Tags to add.")] = [],  # noqa: B006 - pydantic copies it
        tags_remove: Annotated[Tags, Field(description="Tags to remove.")] = [],  # noqa: B006 - pydantic copies it
        if_match: Annotated[str, Field(description="The version you read.")] = "",
        document_ids: Annotated[
            list[int], Field(fail_fast=True, description="Change the tags of several documents.")
        ] = [],  # noqa: B006 - pydantic copies it
    ) -> ToolResult:
        """Change the text, title or tags of a note.

        Use it if the note was wrong. If it was true and no longer is, add a note that replaces it with kb_addnote. For
        a file, only tags can change; to replace it, add it again under its path with kb_upload_start.
        """
        if new and not old:
            raise Invalid("new: pass old, the text that new replaces, or pass text to replace the whole note.")
        if text and document_id and not date:
            text = await self._with_own_date(document_id, text)
        change = compact_answers.given(text=text, old=old, append=append, prepend=prepend, title=title)
        change |= {"new": new} if old else {}
        change |= {"once": True} if (append or prepend or old) and not if_match else {}
        change |= compact_answers.given(date=day(date, "date"), valid_until=day(valid_until, "valid_until"))
        tag_changes = compact_answers.given(tags_add=tags_add, tags_remove=tags_remove)
        if bool(document_id) == bool(document_ids):
            raise Invalid("document_id, document_ids: pass exactly one of them.")
        if document_ids:
            if change or if_match or not tag_changes:
                raise Invalid("document_ids: can be combined only with tags_add or tags_remove.")
            return rendered("kb_update_note", await self._change_tags(document_ids, tags_add, tags_remove))
        if not change and not if_match and tag_changes:
            document = await self._engine.change_tags(document_id, add=tags_add, remove=tags_remove)
            return rendered("kb_update_note", with_notice(compact_answers.changed(document)))
        read = parse_version(if_match) if if_match else ""
        expected = await self._full_hash(document_id, read)
        try:
            note = await self._engine.update_note(document_id, if_match=expected, **change, **tag_changes)
        except Changed as error:
            raise await refused_change(self._engine, document_id, error, text, read) from error
        return rendered("kb_update_note", with_notice(compact_answers.changed(note)))

    async def _change_tags(self, ids: list[int], add: list[str], remove: list[str]) -> JSON:
        """Change the tags of several documents; return them, and the reason for each that stays unchanged."""
        check_number(ids)
        documents, refused = list[JSON](), list[str]()
        for document_id in dict.fromkeys(ids):
            try:
                document = await self._engine.change_tags(document_id, add=add, remove=remove)
                documents.append(compact_answers.listed_document(document))
            except KbError as error:
                if isinstance(error, Unauthorized | Invalid) and not documents:
                    raise
                refused.append(f"Document {document_id} is unchanged: {error.detail}")
        return with_notice({"documents": documents} | compact_answers.given(rest=" ".join(refused)))

    async def _with_own_date(self, document_id: int, text: str) -> str:
        """Return a new text with the date that kb_addnote gave the note, unless the text has front matter."""
        if text.startswith(FRONT_MATTER):
            return text
        chunks = (await self._engine.document(document_id, chunks=1))["chunks"]
        own = OWN_DATE.match(chunks[0]["text"]) if chunks else None
        return own[0] + text if own else text

    async def _full_hash(self, document_id: int, version: str) -> str | None:
        """Return the content_hash that begins with a version; any other version unchanged, for the engine to refuse."""
        if not version:
            return None
        present: str = (await self._engine.document(document_id, chunks=1))["content_hash"]
        return present if present.startswith(version) else version

    async def kb_get(
        self,
        document_id: Annotated[int, Field(ge=0, description="The document's id; or pass source_path."), WHOLE] = 0,
        source_path: Annotated[str, Field(description="Its exact path: /docs/plan.pdf.")] = "",
        from_chunk: Annotated[int, Field(ge=0, description="Read on from next_chunk."), WHOLE] = 0,
        chunk_id: Annotated[int, Field(ge=0, description="Read around this result."), WHOLE] = 0,
        page: Annotated[int, Field(ge=0, description="Read this page of a PDF."), WHOLE] = 0,
        heading: Annotated[str, Field(description="Read this section.")] = "",
        query: Annotated[str, Field(description="Read the part that matches this best.")] = "",
        around: Annotated[int, Field(ge=-1, description="How many neighbours to include."), WHOLE] = -1,
        document_ids: Annotated[list[int], Field(fail_fast=True, description="Read several documents.")] = [],  # noqa: B006 - pydantic copies it
        outline: Annotated[bool, Field(description="List only the headings.")] = False,
        links: Annotated[int, Field(ge=0, le=MOST_STEPS, description="List documents 1 or 2 links away."), WHOLE] = 0,
        max_tokens: Annotated[int, Field(ge=0, description="Return at most this many tokens."), WHOLE] = 0,
    ) -> ToolResult:
        """Read a document, whole or at one place.

        Pass document_id and at most one of chunk_id, page, heading, query and from_chunk. A long document comes in
        parts; each says how to read on. To find a document, use kb_search.
        """
        if document_ids:
            if document_id or source_path or from_chunk or chunk_id or page or heading or query or outline or links:
                raise Invalid("document_ids: can be combined only with max_tokens.")
            check_number(document_ids)
            return await self._several(document_ids, max_tokens)
        place = compact_answers.given(page=page or None, heading=heading, chunk_id=chunk_id or None, query=query)
        _check_one_place(document_id, source_path, from_chunk, place)
        if source_path:
            listed = await self._engine.documents(source_path=source_path)
            if len(listed["documents"]) != 1 or not (place or from_chunk or around >= 0 or outline or links):
                return await self._list_path(source_path, listed)
            document_id = listed["documents"][0]["id"]
        if outline:
            if place:
                raise Invalid("outline: cannot be combined with chunk_id, page, heading or query.")
            whole = await self._engine.document(document_id)
            return self._read_within(max_tokens, lambda limiter: make_outline(limiter, whole, from_chunk))
        if links:
            if place or from_chunk:
                raise Invalid("links: cannot be combined with chunk_id, page, heading, query or from_chunk.")
            found = await walk(self._engine, document_id, links)
            first = await self._engine.document(document_id, chunks=1)
            return self._read_within(max_tokens or WALK_TOKENS, lambda limiter: walk_page(limiter, first, found))
        document, hit = await (
            self._read_at(document_id, place, around) if place else self._read(document_id, from_chunk, around)
        )
        if around > 0 and not from_chunk and len(document["chunks"]) == document["chunk_count"]:
            near = await in_thread(self._engine, document, around)
            if len(near) > 1:
                return await self._several(near, max_tokens)
        is_start = not (place or from_chunk)
        linked = await self._links(document_id) if is_start and document["doc_type"] in LINKING_TYPES else {}
        is_window = bool(place) or around >= 0
        return self._read_within(
            max_tokens, lambda limiter: limiter.chunk_page(document, is_window=is_window, place=hit) | linked
        )

    async def _several(self, document_ids: list[int], max_tokens: int) -> ToolResult:
        documents, missing = await read_several(self._engine, self._limiter.max_chunks, document_ids)
        return self._read_within(max_tokens, lambda limiter: several_pages(limiter, documents, missing))

    def _read_within(self, max_tokens: int, make: Callable[[AnswerLimiter], JSON]) -> ToolResult:
        return rendered("kb_get", self._limiter.within(max_tokens, make, rendering.get_text))

    async def _links(self, document_id: int) -> JSON:
        """Return the first documents that a document links to, and the first that link to it."""
        reply = await self._engine.links(document_id)
        found = {
            name: {each["document_id"]: each["title"] for each in reply[name] if each["document_id"]}
            for name in ("links", "linked_from")
        }
        return {
            name: [{"id": other, "title": shorten_names(title, 60)} for other, title in titles.items()][:MAX_LINKS]
            for name, titles in found.items()
            if titles
        }

    async def _read_at(self, document_id: int, place: JSON, around: int) -> tuple[JSON, range]:
        """Return a document at a place, with `around` chunks before and after, and the indices of the place's chunks.

        For -1, a document at a chunk has two chunks before and after.
        """
        if "query" in place:
            place = {"chunk_id": await self._best_chunk(document_id, place["query"])}
        near = around if around >= 0 else STEP if "chunk_id" in place else 0

        async def read(near: int) -> JSON:
            if "heading" in place:
                return await document_under(self._engine, document_id, place["heading"], near)
            return await self._engine.document(document_id, **place, around=near)

        document = await read(near)
        inside = [chunk for chunk in document["chunks"] if chunk["id"] == place.get("chunk_id")]
        if "chunk_id" not in place:
            inside = (await read(0))["chunks"] if near else document["chunks"]
        indices = [chunk["index"] for chunk in inside]
        return document, range(indices[0], indices[-1] + 1) if indices else range(0)

    async def _read(self, document_id: int, from_chunk: int, around: int) -> tuple[JSON, range | None]:
        """Return a document from a chunk on, or with `around` chunks before and after it and its index.

        Raises:
            Invalid: the document has fewer chunks.
        """
        start = max(0, from_chunk - max(around, 0))
        chunks = from_chunk + around + 1 - start if around >= 0 else self._limiter.max_chunks
        document = await self._engine.document(document_id, from_chunk=start, chunks=min(chunks, MAX_ID))
        check_from_chunk(document, from_chunk)
        return document, range(from_chunk, from_chunk + 1) if around >= 0 else None

    async def _best_chunk(self, document_id: int, query: str) -> int:
        """Return the id of the chunk that answers a question best, or failing that, of the first chunk.

        Raises:
            NotFound: the document does not exist.
        """
        results = (await self._engine.search(query=query, document_id=document_id, top=1))["results"]
        if results:
            return int(results[0]["chunk_id"])
        return int((await self._engine.document(document_id, chunks=1))["chunks"][0]["id"])

    async def _list_path(self, source_path: str, reply: JSON) -> ToolResult:
        data = self._limiter.document_list(reply)
        if len(data["documents"]) < len(reply["documents"]) or reply["next_cursor"]:
            data["rest"] = "Other documents have this path too. To list them, pass it to kb_list as source_prefix."
        if not data["documents"]:
            data["rest"] = await nothing_found(self._engine, {"source_path": source_path})
        return rendered("kb_list", data)

    async def kb_delete(self, document_id: DocumentId) -> ToolResult:
        """Move one document to the bin; kb_undo can restore it, usually for 30 days.

        Delete only what the user wants deleted, after checking it with kb_get. To correct a note, use kb_update_note.
        """
        return rendered("kb_delete", with_notice(await self._engine.delete_document(document_id)))

    async def kb_status(self) -> ToolResult:
        """Show how many documents, tags and jobs kb has.

        Use it if a search finds fewer results than expected. For individual jobs, use kb_jobs.
        """
        status = await self._engine.status(top_tags=MAX_TAGS)
        status.pop("doc_types", None)
        status["tags"] = {shorten_names(tag["tag"], 60): tag["documents"] for tag in status.pop("top_tags")}
        return tool_result({"notice": NOTICE, **status})

    async def kb_jobs(
        self,
        status: Annotated[
            Literal["any", "queued", "running", "done", "failed"], Field(description="Only jobs with this status.")
        ] = "any",
        job_id: Annotated[int, Field(ge=0, description="Only this job."), WHOLE] = 0,
        limit: Annotated[int, Field(ge=1, le=MAX_PAGE, description=f"Number of jobs, up to {MAX_PAGE}."), WHOLE] = 20,
        cursor: Cursor = "",
    ) -> ToolResult:
        """Show the progress of added notes and files, newest first.

        A finished job has a document_id; a failed one has an error. To list documents, use kb_list.
        """
        if job_id:
            one = {"jobs": [await self._engine.job(job_id)], "next_cursor": None}
            return rendered("kb_jobs", token_budget.jobs(one))
        query = {"status": None if status == "any" else status, "cursor": cursor or None}
        reply = await self._engine.jobs(limit=limit, **query)
        fitting = self._limiter.count_fitting(token_budget.jobs(reply)["jobs"])
        if fitting < len(reply["jobs"]):
            reply = await self._engine.jobs(limit=fitting, **query)
        return rendered("kb_jobs", token_budget.jobs(reply))


def _check_one_place(document_id: int, source_path: str, from_chunk: int, place: JSON) -> None:
    if not document_id and not source_path and "chunk_id" in place:
        raise Invalid(f"document_id: pass it along with chunk_id: kb_get(document_id=…, chunk_id={place['chunk_id']}).")
    if bool(document_id) == bool(source_path):
        raise Invalid("document_id, source_path: pass exactly one of them.")
    if len(place) + bool(from_chunk) > 1:
        raise Invalid("from_chunk, chunk_id, page, heading, query: pass at most one of them.")


def dated_text(text: str, date: str) -> str:
    """Return the text of a note with its date in front matter, which the engine reads.

    Raises:
        Invalid: the date is invalid, or the text already begins with front matter.
    """
    if not date:
        return text
    if text.startswith(FRONT_MATTER):
        raise Invalid(
            "date: the text already begins with front matter. Add the date there, as a line such as date: 2026-11-17."
        )
    return f"---\ndate: {day(date, 'date') or ''}\n---\n{text}"


def _alike(note: JSON) -> JSON:
    """Return a note that says nearly the same, without a title that its text begins with."""
    is_titled = not note["text"].startswith(note["title"].removesuffix("…"))
    shown = {"title": note["title"] if is_titled else "", "text": note["text"]}
    quotes = {name: quoted(value, MAX_ALIKE)[1:-1] for name, value in shown.items()}
    return compact_answers.given(document_id=note["document_id"], **quotes)


def rendered(tool: str, data: JSON) -> ToolResult:
    return tool_result(data, rendering.render(tool, data))


def _misspelling(unknown: JSON) -> str:
    word, nearest = quoted(unknown["word"], 60), [quoted(word, 60) for word in unknown["nearest"]]
    searched = f"; kb searched for {nearest[0]} instead" if nearest else ""
    others = f" (also similar: {', '.join(nearest[1:])})" if nearest[1:] else ""
    return f"No document contains {word}{searched}{others}."


def _as_typed(reply: JSON) -> list[str]:
    query = reply["as_typed"]
    return [f"To search for the words as typed: query={query!r}."] if query else []


def _operators(reply: JSON) -> list[str]:
    operators = written(reply["operators"])
    return [f"Filters: {quoted(operators)[1:-1]}."] if operators else []


def _with_operators(request: JSON, reply: JSON) -> JSON:
    """Return the filters of a request with those that its query names."""
    typed = [each for each in reply["operators"] if not each["excluded"]]
    tags = [each["value"] for each in typed if each["operator"] == "tag"]
    types = [each["value"] for each in typed if each["operator"] == "type"]
    return request | compact_answers.given(
        tags=[*request.get("tags", ()), *tags],
        doc_type=request.get("doc_type") or next(iter(types), ""),
        operators=written(reply["operators"]),
    )


def _unreadable(reply: JSON) -> list[str]:
    files = reply["unreadable"]
    said = [f"kb could not read {quoted(file['filename'], 80)}: {quoted(file['error'])}." for file in files]
    more = reply["unreadable_count"] - len(files)
    return [*said, f"kb could not read {more} more files with that name."] if more else said


def _weakness(reply: JSON, *, fts_only: bool, vec_only: bool) -> list[str]:
    results = reply["results"]
    if fts_only or vec_only or not results or not has_no_word(results):
        return [f"Weak: {PROBABLY_NOT}."] if reply["weak"] else []
    return ["Weak: no result contains a word from the query; the results are only similar in meaning."]


def _list_end(data: JSON, corrected: list[str], order: str) -> str:
    shown, total = len(data["documents"]), data["total"]
    by = {"date": ", latest date first", "id": ", in order of arrival", "oldest": ", oldest change first"}.get(
        order, ""
    )
    more = "" if data["next_cursor"] is None else f" Next page: cursor={data['next_cursor']!r}."
    return " ".join([*corrected, f"{shown} of {total}{by}.{more}"])
